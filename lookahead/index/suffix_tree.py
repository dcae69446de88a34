"""The index over one token stream: exact longest suffix match of any length, kept up to date token by token."""

from collections.abc import Sequence
from operator import index
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import suffix_tree_kernels as kernels
from . import text_kernels

CANDIDATE = kernels.CANDIDATE
LARGEST_TOKEN = 2**31 - 1
GROWTH = 1.25
LARGEST_GROWTH = 4.0
_BORDER = -1


def token_array(tokens: ArrayLike | Sequence[int]) -> NDArray[np.int32]:
    """Give token ids as a contiguous int32 vector.

    Raises
    ------
    ValueError
        When the ids are not integers, not one-dimensional, or outside 0..2**31 - 1.

    """
    array = np.asarray(tokens)
    if array.ndim != 1:
        raise ValueError(
            f"token ids have shape {array.shape}; one dimension is allowed: pass one sequence, e.g. ids[0]"
        )
    if array.size == 0:
        return np.empty(0, np.int32)
    if array.dtype.kind not in "iu":
        raise ValueError(f"token ids have dtype {array.dtype}; integers are allowed: convert with ids.astype('int32')")
    if array.astype(np.int64, copy=False).view(np.uint64).max() > LARGEST_TOKEN:  # negative ids become large ones
        raise ValueError(
            f"token ids run from {array.min()} to {array.max()}; 0 to {LARGEST_TOKEN} is allowed: "
            "remove padding and masks (-100)"
        )
    return np.array(array, np.int32)  # always a copy: a read-only array would compile each kernel once more


class SuffixTree:
    """Suffix tree of a growing token stream, built online (Ukkonen 1995).

    A position is counted from the first token ever appended and stays valid until `forget` drops it. Documents are kept
    apart by `border`, which takes one position; no match runs across it. Reading changes nothing; one writer at a time,
    and no reader beside it. What begins inside the longest match, at the end of the stream, repeats the place matched
    and is no candidate of its own.
    """

    def __init__(self, capacity: int = 1024) -> None:
        """Make an empty tree with room for `capacity` tokens; it grows by itself.

        Raises
        ------
        ValueError
            When `capacity` is negative.

        """
        if capacity < 0:
            raise ValueError(f"capacity is {capacity}; 0 or more is allowed: leave it out to start small")
        self._first = 0
        self._reset(capacity)

    def _reset(self, capacity: int) -> None:
        capacity = max(capacity, 64)
        self._state = np.zeros(kernels.STATE_FIELDS, np.int64)
        self._state[kernels.NODES] = 1
        self._text = np.empty(capacity, np.int32)
        self._nodes: NDArray[np.void] = np.empty(capacity // 2, kernels.NODE)
        self._nodes[0] = (0, 0, 0, -1, _BORDER, 0, _BORDER, 0)
        self._edges: NDArray[np.void] = np.zeros(capacity // 4, kernels.EDGE)

    # ---- Writing ----

    def append(self, token: int) -> None:
        """Add one token id.

        Raises
        ------
        ValueError
            When the id is outside 0..2**31 - 1.
        TypeError
            When it is no integer.

        """
        value = index(token)
        if not 0 <= value <= LARGEST_TOKEN:
            raise ValueError(f"token id is {value}; 0 to {LARGEST_TOKEN} is allowed: remove padding and masks (-100)")
        while not kernels.step(self._state, self._text, self._nodes, self._edges, value):
            self._grow(1)

    def extend(self, tokens: ArrayLike | Sequence[int]) -> None:
        """Add token ids [n] in turn, the same as n times `append` and faster.

        Raises
        ------
        ValueError
            When the ids are not integers, not one-dimensional, or outside 0..2**31 - 1.

        """
        self.take(token_array(tokens))

    def take(self, left: NDArray[np.int32]) -> None:
        """Add token ids, int32 [n], that are as `token_array` gives them."""
        while left.size:
            left = left[kernels.extend(self._state, self._text, self._nodes, self._edges, left) :]
            if left.size:
                self._grow(left.size)

    def border(self) -> None:
        """End the document; does nothing where none has begun."""
        held = int(self._state[kernels.LENGTH])
        if held == 0 or self._text[held - 1] < 0:
            return
        self.take(np.full(1, _BORDER, np.int32))

    def forget(self, position: int) -> None:
        """Drop all tokens before `position` and build the tree anew from the rest; later positions keep their numbers.

        Raises
        ------
        ValueError
            When `position` lies outside what is held.

        """
        if not self._first <= position <= len(self):
            raise ValueError(f"position is {position}; {self._first} to {len(self)} is allowed: see `first` and `len`")
        kept = self._text[position - self._first : len(self) - self._first]
        self._first = position
        self._reset(kept.size)
        self.take(kept)

    def _grow(self, coming: int) -> None:
        """Enlarge the tables that are full, to what `coming` tokens need if they are like the ones held."""
        held = int(self._state[kernels.LENGTH])
        share = min(LARGEST_GROWTH, max(GROWTH, 1.05 * (held + coming) / max(held, 1)))
        if held == self._text.size:
            text = np.empty(max(held + coming, int(held * GROWTH)), np.int32)
            text[:held] = self._text
            self._text = text
        used = int(self._state[kernels.NODES])
        if used == self._nodes.size:
            nodes: NDArray[np.void] = np.empty(int(used * share) + 16, kernels.NODE)
            nodes[:used] = self._nodes
            self._nodes = nodes
        if int(self._state[kernels.EDGES]) * 4 >= self._edges.size * 3:
            edges: NDArray[np.void] = np.zeros(int(self._edges.size * share) + 16, kernels.EDGE)
            kernels.rehash(self._nodes, used, self._edges, edges)
            self._edges = edges

    def copy(self) -> "SuffixTree":
        """Fork: a tree with the same contents that goes its own way."""
        other = SuffixTree.__new__(SuffixTree)
        other._first = self._first
        other._state = self._state.copy()
        other._text = self._text.copy()
        other._nodes = self._nodes.copy()
        other._edges = self._edges.copy()
        return other

    # ---- What is held ----

    def __len__(self) -> int:
        """Position of the end of the stream: tokens and borders ever appended."""
        return self._first + int(self._state[kernels.LENGTH])

    @property
    def first(self) -> int:
        """Position of the oldest token held."""
        return self._first

    @property
    def tokens(self) -> NDArray[np.int32]:
        """Tokens held, int32 [len - first], read-only; borders are negative. Goes stale with the next write."""
        view = self._text[: int(self._state[kernels.LENGTH])]
        view.flags.writeable = False
        return view

    @property
    def tables(self) -> tuple[NDArray[np.int32], NDArray[np.void], NDArray[np.void]]:
        """Text, nodes and edges, for a cursor; go stale with the next write."""
        return self._text, self._nodes, self._edges

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return self._state.nbytes + self._text.nbytes + self._nodes.nbytes + self._edges.nbytes

    # ---- Matches ----

    @property
    def match_length(self) -> int:
        """Length of the longest suffix of the stream that occurred before; the two may overlap (a a a a: 3)."""
        return int(self._state[kernels.LENGTH] - self._state[kernels.LEAF])

    @property
    def match_position(self) -> int:
        """Position right after an earlier occurrence of that suffix, -1 without one.

        It is a border where every earlier occurrence ended its document (256 branches are looked at).
        """
        length, rows = self.match_length, self.candidates(1, 1)
        if not length or (rows.size and rows["match_length"][0] == length):
            return int(rows["position"][0]) if length else -1
        below, node = self._state[kernels.BELOW], self._state[kernels.ACTIVE]
        start = ~below if below < 0 else self._nodes[below or node]["start"]
        return int(start) + length + self._first

    def candidates(self, limit: int = 16, per_token: int = 4) -> NDArray[np.void]:
        """Places to copy from, CANDIDATE [at most limit]: by distinct next token, the longest suffix that it followed.

        Of each next token up to `per_token` positions come, the latest first; next tokens come by falling match length,
        then the latest first. `count` tells how often the token followed that suffix, up to 32. The work is bounded: of
        suffixes shorter than the longest match, those of 24 tokens and less are looked at; of a suffix, 32 branches,
        the newest and the two oldest; of a branch, 32 occurrences; and 64 nodes are opened in all. Where a bound is
        met, `count` is a lower bound, and the positions are real but need not be the latest.

        Raises
        ------
        ValueError
            When `limit` is below 1 or `per_token` is not within 1..32.

        """
        if limit < 1 or not 1 <= per_token <= kernels.COUNT_CAP:
            raise ValueError(
                f"limit is {limit} and per_token is {per_token}; 1 or more and 1 to {kernels.COUNT_CAP} is allowed"
            )
        rows: NDArray[Any] = np.empty(limit, CANDIDATE)
        rows = rows[: kernels.candidates(self._state, self._text, self._nodes, self._edges, rows, int(per_token))]
        if self._first:
            rows["position"] += self._first
        return rows

    def match_at(self, position: int, limit: int = 64) -> int:
        """Count the tokens right before `position`, up to `limit`, that equal the end of the stream.

        Raises
        ------
        ValueError
            When `position` lies outside what is held.

        """
        held = int(self._state[kernels.LENGTH])
        return int(text_kernels.common_suffix(self._text, self._local(position), held, int(limit)))

    def nearest(self, position: int, behind: int, ahead: int) -> tuple[int, int]:
        """Scan [position - behind, position + ahead] for the longest common suffix with the stream: (place, length).

        Lengths are told apart up to 32; the nearest to `position` wins among equals, the earlier one at equal distance;
        (-1, 0) when there is none. A place has a token, no border.
        """
        held = int(self._state[kernels.LENGTH])
        local = int(position) - self._first
        place, length = text_kernels.nearest(self._text, held, local, local - int(behind), local + int(ahead) + 1)
        return (int(place) + self._first if length else -1), int(length)

    def nearest_each(self, places: Sequence[tuple[int, int]], ahead: int) -> list[tuple[int, int]]:
        """Return what `nearest` finds around each (position, tokens before it), where it finds something."""
        if not places:
            return []
        wanted = np.array(places, np.int64)
        wanted[:, 0] -= self._first
        found = np.empty_like(wanted)
        text_kernels.nearest_each(self._text, int(self._state[kernels.LENGTH]), wanted, int(ahead), found)
        first = self._first
        return [(place + first, length) for place, length in found.tolist() if length]

    def continuation(self, position: int, length: int) -> NDArray[np.int32]:
        """Copy up to `length` tokens from `position` on, int32.

        Past the end of the stream the copy goes on with its own tokens (Ziv and Lempel 1977); it stops at a border.

        Raises
        ------
        ValueError
            When `position` lies outside what is held or `length` is negative.

        """
        if length < 0:
            raise ValueError(f"length is {length}; 0 or more is allowed")
        held = int(self._state[kernels.LENGTH])
        local = self._local(position)
        out = np.empty(length if local < held else 0, np.int32)
        return out[: text_kernels.continuation(self._text, held, local, out)]

    def _local(self, position: int) -> int:
        if not self._first <= position <= len(self):
            raise ValueError(f"position is {position}; {self._first} to {len(self)} is allowed: see `first` and `len`")
        return int(position) - self._first


def warm_up() -> None:
    """Compile all kernels, or load them from the disk cache."""
    tree = SuffixTree(0)
    tree.extend(np.arange(200, dtype=np.int32) % 67 * 5 % 23)
    tree.append(1)
    tree.border()
    tree.extend([1, 2, 3, 1, 2])
    tree.candidates()
    tree.match_at(tree.match_position)
    tree.nearest(3, 2, 2)
    tree.nearest_each([(3, 2)], 2)
    tree.continuation(3, 4)

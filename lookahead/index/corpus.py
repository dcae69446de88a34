"""Many documents in one token stream: where each passage came from, and a cap on the bytes."""

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .suffix_tree import SuffixTree, token_array

SMALLEST_CAP = 65_536  # bytes; about a thousand tokens stay after an eviction
_CHUNK = 64  # bytes of the cap for one token taken in before the cap is looked at again


class Corpus:
    """Documents in one suffix tree, each passage with its source; beyond `max_bytes` the oldest are evicted.

    Positions and queries are those of `SuffixTree`; no match runs from one document into another. `begin` comes before
    the first token. After each call the tree is within the cap; while its tables grow, the old and the new one coexist.
    """

    def __init__(self, max_bytes: int | None = None) -> None:
        """Make an empty corpus.

        Raises
        ------
        ValueError
            When `max_bytes` is below 65,536.

        """
        if max_bytes is not None and max_bytes < SMALLEST_CAP:
            raise ValueError(f"max_bytes is {max_bytes}; {SMALLEST_CAP} or more is allowed, or None for no cap")
        self.max_bytes = max_bytes
        self._tree = SuffixTree()
        self._starts: list[int] = []
        self._sources: list[str] = []

    # ---- Writing ----

    def begin(self, source: str) -> None:
        """Open a new document from `source`."""
        self._tree.border()
        self.relabel(source)
        self.evict()

    def relabel(self, source: str) -> None:
        """Go on with the same document, from here under another source."""
        end = len(self._tree)
        if self._starts and self._starts[-1] == end:
            self._starts.pop()
            self._sources.pop()
        if not self._sources or self._sources[-1] != source:
            self._starts.append(end)
            self._sources.append(source)

    def append(self, token: int) -> None:
        """Add one token id to the open document.

        Raises
        ------
        ValueError
            When the id is outside 0..2**31 - 1.
        RuntimeError
            When no document is open.

        """
        self._check_open()
        self._tree.append(token)
        self.evict()

    def extend(self, tokens: ArrayLike | Sequence[int]) -> None:
        """Add token ids [n] to the open document.

        Raises
        ------
        ValueError
            When the ids are not integers, not one-dimensional, or outside 0..2**31 - 1.
        RuntimeError
            When no document is open.

        """
        self._check_open()
        array = token_array(tokens)
        if self.max_bytes is None:
            self._tree.take(array)
            return
        chunk = max(1, self.max_bytes // _CHUNK)
        for begin in range(0, array.size, chunk):
            self._tree.take(array[begin : begin + chunk])
            self.evict()

    def _check_open(self) -> None:
        if not self._sources:
            raise RuntimeError("no document is open; call begin(source) first")

    def evict(self) -> None:
        """Where the bytes pass the cap, forget the oldest, down to half the cap or to the document that begins next.

        Where that would leave less than a quarter of the cap, a part of a document stays. Building anew costs as much
        as taking in what stays; as half the cap has to fill before the next time, that is a constant per token.
        """
        if self.max_bytes is None:
            return
        aim = self.max_bytes // 2
        while self._tree.nbytes > self.max_bytes:
            tokens = self._tree.tokens
            keep = min(int(tokens.size * aim / self._tree.nbytes), tokens.size - 1)
            borders = np.flatnonzero(tokens[tokens.size - keep - 1 :] < 0)
            if borders.size and 2 * int(borders[0]) <= keep:
                keep -= int(borders[0])
            self._tree.forget(len(self._tree) - keep)
            aim //= 2
        gone = bisect_right(self._starts, self._tree.first) - 1
        if gone > 0:
            del self._starts[:gone], self._sources[:gone]

    def copy(self) -> "Corpus":
        """Fork: a corpus with the same contents that goes its own way."""
        other = Corpus(self.max_bytes)
        other._tree = self._tree.copy()
        other._starts = self._starts.copy()
        other._sources = self._sources.copy()
        return other

    # ---- What is held ----

    def __len__(self) -> int:
        """Position of the end of the stream: tokens and borders ever appended."""
        return len(self._tree)

    @property
    def first(self) -> int:
        """Position of the oldest token held."""
        return self._tree.first

    @property
    def tokens(self) -> NDArray[np.int32]:
        """Tokens held, int32 [len - first], read-only; borders are negative. Goes stale with the next write."""
        return self._tree.tokens

    @property
    def nbytes(self) -> int:
        """Bytes allocated for the tree."""
        return self._tree.nbytes

    def local(self, places: NDArray[np.void]) -> NDArray[np.void]:
        """Return places with `position` counted within `tokens`; the same array where nothing was evicted."""
        if not self.first:
            return places
        local = places.copy()
        local["position"] -= self.first
        return local

    def source(self, position: int) -> str:
        """Name the source of the token at `position`.

        Raises
        ------
        ValueError
            When `position` lies outside what is held.

        """
        return self.sources([position])[0]

    def sources(self, positions: Sequence[int]) -> list[str]:
        """Name the source of the token at each position.

        Raises
        ------
        ValueError
            When a position lies outside what is held.

        """
        if positions and not self.first <= min(positions) <= max(positions) < len(self):
            wrong = next(one for one in positions if not self.first <= one < len(self))
            raise ValueError(f"position is {wrong}; {self.first} to {len(self) - 1} is allowed: see `first`, `len`")
        starts, sources = self._starts, self._sources
        return [sources[bisect_right(starts, position) - 1] for position in positions]

    def offset(self, position: int, source: str) -> int:
        """Count the tokens from the start of a source to `position`, in its first passage or the one that goes on.

        -1 for a later passage, and where tokens were evicted.
        """
        if self.first or source not in self._sources:
            return -1
        number = self._sources.index(source)
        near = bisect_right(self._starts, position) - 1 - number in (0, 1)
        return position - self._starts[number] if near else -1

    # ---- Matches: see SuffixTree ----

    @property
    def match_length(self) -> int:
        """Length of the longest suffix of the stream that occurred before."""
        return self._tree.match_length

    @property
    def match_position(self) -> int:
        """Position right after an earlier occurrence of that suffix, -1 without one."""
        return self._tree.match_position

    def candidates(self, limit: int = 16, per_token: int = 4) -> NDArray[np.void]:
        """Places to copy from, one group for each distinct next token."""
        return self._tree.candidates(limit, per_token)

    def match_at(self, position: int, limit: int = 64) -> int:
        """Count the tokens right before `position`, up to `limit`, that equal the end of the stream."""
        return self._tree.match_at(position, limit)

    def nearest(self, position: int, behind: int, ahead: int) -> tuple[int, int]:
        """Find the place around `position` with the longest common suffix with the stream: (place, match length)."""
        return self._tree.nearest(position, behind, ahead)

    def nearest_each(self, places: Sequence[tuple[int, int]], ahead: int) -> list[tuple[int, int]]:
        """Return what `nearest` finds around each (position, tokens before it), where it finds something."""
        return self._tree.nearest_each(places, ahead)

    def continuation(self, position: int, length: int) -> NDArray[np.int32]:
        """Copy up to `length` tokens from `position` on."""
        return self._tree.continuation(position, length)

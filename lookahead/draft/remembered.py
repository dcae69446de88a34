"""Texts of earlier requests, each passage once, the least recently useful forgotten first."""

from __future__ import annotations

from bisect import bisect_right

import numpy as np
from numpy.typing import NDArray

from ..index.cursor import Cursor
from ..index.suffix_tree import SuffixTree

__all__ = ["Remembered"]

_KNOWN = 512  # tokens in a row that are known already are not taken in again
_LEAST = 4  # bytes that a token takes at least: a text of which more tokens are than fit is cut before it is taken in
_BEFORE = 256  # but so many before what is new, and so many behind it: copies of the older passage meet the newer there


class Remembered:
    """A suffix tree over what was new in each text, within `max_bytes`; a position names a token until `epoch` changes.

    One thread at a time.

    Attributes
    ----------
    epoch : int
        How often old passages were forgotten, and all others moved.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes, self._most = max_bytes, max(1, max_bytes // _LEAST)
        self.epoch = 0
        self._begin()

    def _begin(self) -> None:
        """Start with nothing."""
        self._tree = SuffixTree()
        self._starts: list[int] = []
        self._used: list[int] = []
        self._clock = 0

    @property
    def nbytes(self) -> int:
        """Bytes of the tree."""
        return self._tree.nbytes

    @property
    def tokens(self) -> NDArray[np.int32]:
        """All passages, int32 [n], each closed with a border; stale after the next `add`."""
        return self._tree.tokens

    def __len__(self) -> int:
        """Count the passages."""
        return len(self._starts)

    def cursor(self) -> Cursor:
        """Return a cursor at the beginning of a stream; void when `epoch` has changed."""
        return Cursor(self._tree)

    def touch(self, position: int) -> None:
        """Note that the passage of a position was useful just now."""
        self._clock += 1
        if self._starts:
            self._used[bisect_right(self._starts, position) - 1] = self._clock

    def add(self, ids: NDArray[np.int32]) -> None:
        """Take in what is new in a text, int32 [n]; what is known in it counts as useful just now."""
        ids = ids[-self._most :]
        places, lengths = self.cursor().advance(ids)
        known = np.zeros(ids.size, np.bool_)
        ends = np.flatnonzero((lengths >= _KNOWN) & (np.append(lengths[1:], 0) != lengths + 1))
        for end in ends.tolist():
            self.touch(int(places[end]) - 1)
            begin = end + 1 - int(lengths[end])
            known[begin + _BEFORE if begin else 0 : end + 1] = True
        wanted = ~known
        for begin, end in _runs(wanted):
            wanted[max(0, begin - _BEFORE) : end] = True
        for begin, end in _runs(wanted):
            self._append(ids[begin:end])
        self._fit()

    def _append(self, passage: NDArray[np.int32]) -> None:
        """Add a passage as it is."""
        self._clock += 1
        self._starts.append(len(self._tree))
        self._used.append(self._clock)
        self._tree.take(passage)
        self._tree.border()

    def passages(self) -> list[NDArray[np.int32]]:
        """Return all passages, int32 [n] each, the least recently useful first."""
        ends = [*self._starts[1:], len(self._tree)]
        tokens, order = self.tokens, np.argsort(self._used, kind="stable").tolist()
        return [tokens[self._starts[one] : ends[one] - 1].copy() for one in order]

    def fill(self, passages: list[NDArray[np.int32]]) -> None:
        """Take in passages as they are, the least recently useful first, as less useful than all that is known."""
        self._rebuild(_latest([*passages, *self.passages()], self._most))
        self._fit()

    def _rebuild(self, passages: list[NDArray[np.int32]]) -> None:
        """Hold these passages, the least recently useful first, and nothing else."""
        self._begin()
        self.epoch += 1
        for passage in passages:
            self._append(passage)

    def _fit(self) -> None:
        """Where the bytes pass the cap, keep of the passages that were useful last as many as fill half of it.

        Building anew costs as much as taking in what stays; as the other half has to fill before the next time, that is
        a constant for each token.
        """
        aim = self._max_bytes / 2
        while self.nbytes > self._max_bytes:
            self._rebuild(_latest(self.passages(), int(len(self._tree) * aim / self.nbytes)))
            aim /= 2


def _latest(passages: list[NDArray[np.int32]], left: int) -> list[NDArray[np.int32]]:
    """Return the last passages that have so many tokens together, of one that is too long alone its end."""
    kept = list[NDArray[np.int32]]()
    for passage in reversed(passages):
        if passage.size < left or not kept:
            kept.append(passage[-left:])
        left -= passage.size + 1
        if left <= 0:
            break
    return kept[::-1]


def _runs(marked: NDArray[np.bool_]) -> list[list[int]]:
    """Return where runs of marked places begin and end."""
    borders = np.flatnonzero(np.diff(marked, prepend=False, append=False))
    found: list[list[int]] = borders.reshape(-1, 2).tolist()
    return found

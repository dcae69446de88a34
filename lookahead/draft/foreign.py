"""Other texts that a sequence may copy from: earlier requests, corpora on disk."""

from __future__ import annotations

import threading
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..index.cursor import Cursor
from ..index.static_corpus import StaticCorpus, StaticCursor
from ..index.text_kernels import nearest
from .remembered import Remembered

__all__ = ["Foreign", "Offer", "Recalled"]

_TAIL = 256  # tokens of the sequence that are kept; a longer match counts as one of that length
_PLACES = 4
_AHEAD = 64  # tokens behind the last copy in which it is expected to go on
_COMPARED = 33  # tokens before a place, and at the sequence's end, that tell how well they match
_LONGEST = 64  # tokens that are counted of a copy that goes on
_CERTAIN = 32  # a copy that goes on after so many is looked for nowhere else


class Offer(NamedTuple):
    """A place in another text: its position there, its match length, and what stands there, int32 [n]."""

    position: int
    match_length: int
    excerpt: NDArray[np.int32]


class Foreign:
    """Follows one sequence through another text; what was said is looked up when something is asked.

    Attributes
    ----------
    source : str
        What a token copied from here has as its source.
    """

    def __init__(self, source: str, text: StaticCorpus | Remembered) -> None:
        self.source = source
        self._text = text
        self._cursor: StaticCursor | Cursor = text.cursor()
        self._said = np.empty(0, np.int32)
        self._behind = -1
        self._waiting = 0

    _settled = True  # nothing newer comes

    def hear(self, ids: list[int]) -> None:
        """Take in what the sequence went on with."""
        self._said = np.append(self._said, np.asarray(ids[-_TAIL:], np.int32))[-_TAIL:]
        self._waiting += len(ids)

    def offers(self, least: int, length: int) -> list[Offer]:
        """Return places to copy from, the best guess first, each with up to `length` tokens.

        In a corpus a copy that has gone on for long goes on, and nothing else is looked at. Otherwise the first place
        is where the last copy may go on, if anything there matches; `least` is the match length that makes another one
        worth a look.
        """
        tokens = self._text.tokens
        behind = self._behind + 1  # the model's own token follows the last one that was copied
        going_on = self._match_at(behind, tokens) if self._settled else 0
        if going_on >= _CERTAIN:
            found = [(behind, going_on)]
        else:
            self._follow()
            found = self._nearest(tokens)
            if self._cursor.match_length >= least:
                rows = self._cursor.candidates(_PLACES, 1).tolist()
                found += [(position, match) for position, match, _ in rows if match >= least]
        return [Offer(place, match, self._cursor.continuation(place, length)) for place, match in found]

    def took(self, position: int) -> None:
        """Note that the token at a position was copied, and right."""
        self._behind = position + 1

    def _follow(self) -> None:
        """Look up what waits."""
        if self._waiting > len(self._said):
            self._cursor = self._text.cursor()
        if self._waiting:
            self._cursor.advance(self._said[-self._waiting :])
            self._waiting = 0

    def _match_at(self, place: int, tokens: NDArray[np.int32]) -> int:
        """Count the tokens, up to 64, that stand before a place and at the sequence's end; 0 where no token follows."""
        size = min(place, len(self._said), _LONGEST)
        if size <= 0 or place >= len(tokens) or tokens[place] < 0:
            return 0
        differ = np.flatnonzero(tokens[place - size : place] != self._said[-size:])
        return size - 1 - int(differ[-1]) if differ.size else size

    def _nearest(self, tokens: NDArray[np.int32]) -> list[tuple[int, int]]:
        """Return the place close behind the last copy that matches best, if any does, and its match length."""
        behind, tail = self._behind, self._said[-_COMPARED:]
        if behind < 0:
            return []
        begin = max(0, behind - _COMPARED)
        window = tokens[begin : behind + _AHEAD + 1]
        joined = np.concatenate((window, [-1], tail)).astype(np.int32)
        place, length = nearest(joined, len(joined), behind - begin, behind - begin, len(window))
        return [(begin + int(place), int(length))] if length else []


class Recalled(Foreign):
    """Follows one sequence through what is remembered of others, which goes on changing meanwhile.

    Parameters
    ----------
    source : str
    texts : Remembered
    lock : RLock
        Held by whoever reads or changes the texts.
    """

    _settled = False

    def __init__(self, source: str, texts: Remembered, lock: threading.RLock) -> None:
        with lock:
            super().__init__(source, texts)
            self._texts, self._epoch = texts, texts.epoch
        self._lock = lock

    def offers(self, least: int, length: int) -> list[Offer]:
        """Return places to copy from, as `Foreign.offers` does."""
        with self._lock:
            if self._epoch != self._texts.epoch:
                self._cursor, self._epoch = self._texts.cursor(), self._texts.epoch
                self._behind, self._waiting = -1, len(self._said)
            return super().offers(least, length)

    def took(self, position: int) -> None:
        """Note that the token at a position was copied, and right; it is remembered longer."""
        with self._lock:
            if self._epoch == self._texts.epoch:
                self._texts.touch(position)
                super().took(position)

"""The views of known passages: where each stands in the corpus, and which places in them correspond."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..index.corpus import Corpus
from ..views.tokens import Tokens

__all__ = ["Shelf", "Surface", "View"]

_TAIL = 64  # tokens of the sequence that are said again behind a new document, for matches to run on
_PART = 4096  # characters that are encoded at once, at least
_PATIENCE = 200  # looks at a view that was never right before it is looked at no more


class View(NamedTuple):
    """Lines of a passage in one surface form, from `first` on.

    `lines` tells where each begins in the corpus, and where the last one ends.
    """

    passage: int
    form: str
    lines: list[int]
    first: int = 0

    def line(self, position: int) -> int:
        """Return the line that a position lies in."""
        return self.first + bisect_right(self.lines, position) - 1

    def place(self, line: int) -> int:
        """Return the position at which a line begins, -1 for one that is not written here."""
        return self.lines[line - self.first] if 0 <= line - self.first < len(self.lines) - 1 else -1


class Surface(NamedTuple):
    """Lines of a passage, from `first` on, as text in some form, and where they start there."""

    passage: int
    form: str
    source: str
    text: str
    starts: list[int]
    first: int = 0

    def parts(self) -> list[str]:
        """Cut the text at lines into parts that a tokenizer encodes side by side; at a cut a token may be another."""
        cuts = [0]
        for start in self.starts:
            if start - cuts[-1] >= _PART and len(self.text) - start >= _PART:
                cuts.append(start)
        return [self.text[begin:end] for begin, end in zip(cuts, [*cuts[1:], len(self.text)], strict=True)]


class Shelf:
    """Puts texts into the corpus as documents of their own, and remembers the places that were copied from lately.

    While a sequence runs, new documents are written `aside`: it goes on behind them by saying its last tokens again.
    """

    def __init__(self, corpus: Corpus, tokens: Tokens) -> None:
        self._corpus = corpus
        self._tokens = tokens
        self.views: list[View] = []
        self._bounds: list[tuple[int, int]] = []
        self._looks: list[int] = []
        self._of: dict[int, list[int]] = {}  # the views of each passage that are looked at
        self._recent: dict[int, int] = {}

    def fork(self, corpus: Corpus) -> Shelf:
        """Return a shelf of the same views in a copy of the corpus, of which nothing was copied yet."""
        other = Shelf(corpus, self._tokens)
        for view in self.views:
            other.register(view)
        return other

    # ---- Writing ----

    def write_fixed(self, text: str, source: str = "format") -> int:
        """Add a document of words that a format dictates; return its position."""
        return self.write(self._tokens.encode_fixed(text), source)

    def write(self, ids: NDArray[np.int32], source: str) -> int:
        """Add a document; return its position."""
        self._corpus.begin(source)
        begin = len(self._corpus)
        self._corpus.extend(ids)
        return begin

    def add(self, surfaces: list[Surface]) -> int:
        """Add views, in this order; return the number of the last one."""
        parts = [surface.parts() for surface in surfaces]
        encoded = iter(self._tokens.encode_all([text for part in parts for text in part]))
        for surface, part in zip(surfaces, parts, strict=True):
            ids = np.concatenate([next(encoded) for _ in part])
            begin, offsets = self.write(ids, surface.source), character_offsets(self._tokens.pieces(ids.tolist()))
            at = np.append(np.searchsorted(offsets, surface.starts), len(offsets)) + begin
            self.register(View(surface.passage, surface.form, at.tolist(), surface.first))
        return len(self.views) - 1

    def register(self, view: View) -> None:
        """Remember a view that stands in the corpus."""
        self.views.append(view)
        self._bounds.append((view.lines[0], view.lines[-1]))
        self._looks.append(0)
        self._of.setdefault(view.passage, []).append(len(self.views) - 1)

    @contextmanager
    def aside(self, source: str = "output") -> Iterator[None]:
        """Interrupt the sequence for new documents, and go on with it behind them if any were written."""
        before, tail = len(self._corpus), self._corpus.tokens[-_TAIL:].copy()
        yield
        if len(self._corpus) > before:
            self._corpus.begin(source)
            self._corpus.extend(tail[np.append(np.flatnonzero(tail < 0), -1).max() + 1 :])

    # ---- Places ----

    def at(self, position: int) -> int:
        """Return the number of the view that a position lies in, -1 for none."""
        for number in range(len(self._bounds) - 1, -1, -1):
            first, last = self._bounds[number]
            if first <= position <= last:
                return number
        return -1

    def remember(self, position: int, size: int = 3) -> int:
        """Note a place that was copied from, and return the number of its view, -1 for none.

        The last `size` views are remembered, each with its last place.
        """
        number = self.at(position)
        if number >= 0:
            if self._looks[number] >= _PATIENCE:
                insort(self._of[self.views[number].passage], number)
            self._looks[number] = -(2**30)  # a view that was right once is looked at for ever
            self._recent.pop(number, None)
            self._recent[number] = position
            if len(self._recent) > size:
                del self._recent[next(iter(self._recent))]
        return number

    def dismiss(self, number: int) -> None:
        """Look at a view no more."""
        if self._looks[number] < _PATIENCE:
            self._of[self.views[number].passage].remove(number)
        self._looks[number] = _PATIENCE

    def corresponding(self) -> list[int]:
        """Return the places in other views of the same passages that correspond to the places of the last copies."""
        found: dict[int, None] = {}
        for recent, position in self._recent.items():
            passage, line = self.views[recent].passage, self.views[recent].line(position)
            for number in self._of[passage].copy():
                if number != recent:
                    self._looks[number] += 1
                    found[self.views[number].place(line)] = None
                    if self._looks[number] >= _PATIENCE:
                        self._of[passage].remove(number)
        found.pop(-1, None)
        return list(found)

    def line(self, form: str, number: int) -> int:
        """Return the place of a line in some form, of the passage copied from last or else the longest; -1 if none."""
        views = [view for view in self.views if view.form == form and view.place(number) >= 0]
        passages = [self.views[recent].passage for recent in reversed(self._recent)]
        known = [view for passage in passages for view in views if view.passage == passage]
        best = known[0] if known else max(views, key=lambda view: len(view.lines), default=None)
        return -1 if best is None else best.place(number)


def character_offsets(pieces: list[bytes]) -> NDArray[np.int64]:
    """Return for each token the number of characters before it, int64 [n]."""
    ends = np.cumsum(np.fromiter(map(len, pieces), np.int64, len(pieces)))
    begins_character = (np.frombuffer(b"".join(pieces), np.uint8) & 0xC0) != 0x80
    characters = np.concatenate([[0], np.cumsum(begins_character)])
    return characters[np.concatenate([[0], ends[:-1]])] if pieces else ends

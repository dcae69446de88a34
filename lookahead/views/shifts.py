"""Notices that an answer writes known lines with another indentation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

__all__ = ["Shifts"]

_LEAST = 8  # characters of a line that say where it is from
_CONFIRMED = 2


class Shifts:
    """Compares each line of an answer with the lines of known passages that hold the same text.

    Parameters
    ----------
    passages : iterable of sequences of str
        The lines of each passage.
    """

    def __init__(self, passages: Iterable[Sequence[str]] = ()) -> None:
        self._places: dict[str, tuple[tuple[int, int], ...]] = {}
        self._passages = 0
        self._seen: dict[tuple[int, int], int] = {}
        for lines in passages:
            self.add(lines)

    def add(self, lines: Sequence[str]) -> None:
        """Know the lines of one passage more; passages are numbered in turn."""
        for line in lines:
            text, place = line.strip(), (self._passages, _depth(line))
            places = self._places.get(text, ()) if len(text) >= _LEAST else (place,)
            if place not in places:
                self._places[text] = (*places, place)
        self._passages += 1

    def fork(self) -> Shifts:
        """Return one that knows the same passages, for another answer."""
        other = Shifts()
        other._places, other._passages = dict(self._places), self._passages
        return other

    def holders(self, line: str) -> list[int]:
        """Return the passages that hold a line as it is, where it is long enough to tell them from others."""
        places = self._places.get(line.strip(), ()) if len(line.strip()) >= _LEAST else ()
        return [passage for passage, depth in places if depth == _depth(line)]

    def learn(self, line: str) -> list[tuple[int, int]]:
        """Take in a line; return the passages that it and another line in a row were shifted from, and by how much.

        Returns
        -------
        list of (passage, columns)
            Columns are never 0; below 0 the answer is indented less.
        """
        places = self._places.get(line.strip(), ()) if len(line.strip()) >= _LEAST else ()
        if not places:
            return []
        shifts = {(passage, _depth(line) - depth) for passage, depth in places}
        self._seen = {shift: self._seen.get(shift, 0) + 1 for shift in shifts}
        if any(columns == 0 for _, columns in shifts):
            return []
        return [shift for shift, count in self._seen.items() if count == _CONFIRMED]


def _depth(line: str) -> int:
    """Return how many blanks a line begins with."""
    return len(line) - len(line.lstrip(" \t"))

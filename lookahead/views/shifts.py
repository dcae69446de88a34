"""Notices that an answer writes known lines with another indentation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

__all__ = ["Shifts"]

_LEAST = 8  # characters of a line that say where it is from
_CONFIRMED = 2


class Shifts:
    """Compares each line of an answer with the lines of known passages that hold the same text.

    Parameters
    ----------
    passages : sequence of sequences of str
        The lines of each passage.
    """

    def __init__(self, passages: Sequence[Sequence[str]]) -> None:
        self._places: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
        for passage, lines in enumerate(passages):
            for line in lines:
                text = line.strip()
                if len(text) >= _LEAST and (passage, _depth(line)) not in self._places[text]:
                    self._places[text].append((passage, _depth(line)))
        self._seen: dict[tuple[int, int], int] = {}

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

"""Notices that an answer writes known lines with numbers before them, from whatever number on and however padded."""

from __future__ import annotations

from collections.abc import Sequence

from .forms.numbered import Listed, listed

__all__ = ["Listings"]

_PART = 128  # lines that are numbered at once: what is inserted or removed later changes all numbers behind it
_AHEAD = 4  # lines before the end of a part at which the next one is wanted
_MOST = 256  # parts in one answer


class Listings:
    """Compares the numbers of the lines of an answer with where these lines stand in known passages."""

    def __init__(self) -> None:
        self._ends: dict[tuple[str, int, int], int] = {}
        self._parts = 0

    def learn(self, line: str) -> list[Listed]:
        """Take in a line; return what it may be with its number taken away."""
        return listed(line) if self._parts < _MOST else []

    def part(self, said: Listed, passage: int, lines: Sequence[str], usual: bool) -> slice | None:
        """Return the lines of a passage that are to be numbered as one of them was said, if any.

        None where the usual form was written and has the same number there.
        """
        if lines.count(said.content) != 1:
            return None
        at = lines.index(said.content)
        alike = said.style, said.number - at, passage
        if usual and said.number == at + 1:
            return None
        if at + _AHEAD < self._ends.get(alike, 0) or at + 1 == len(lines):
            return None
        self._ends[alike] = end = min(len(lines), at + _PART)
        self._parts += 1
        return slice(at, end)

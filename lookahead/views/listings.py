"""Notices that an answer writes known lines with numbers before them, from whatever number on and however padded."""

from __future__ import annotations

from collections.abc import Sequence

from .forms.numbered import Listed, listed

__all__ = ["Listings"]

_FIRST, _LAST = 16, 128  # lines that are numbered at once, more with each part whose numbers held
_AHEAD = 4  # lines before the end of a part at which the next one is wanted
_MOST = 256  # parts in one answer


class Listings:
    """Compares the numbers of the lines of an answer with where these lines stand in known passages."""

    def __init__(self) -> None:
        self._written: dict[tuple[str, int, int], slice] = {}
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
        before = self._written.get(alike, slice(0, 0))
        if (usual and said.number == at + 1) or at + _AHEAD < before.stop or at + 1 == len(lines):
            return None
        size = min(_LAST, max(_FIRST, 2 * (before.stop - before.start)))
        self._written[alike] = part = slice(at, min(len(lines), at + size))
        self._parts += 1
        return part

"""Follows a unified diff as it is written: its headers say where its lines come from and when they end."""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["Hunks", "Line", "Say"]

_HEADER = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_HALF_HEADER = re.compile(rb"@@ -(\d+)(?:,\d+)? \+\Z")


class Say(NamedTuple):
    """The format says that this text comes next."""

    text: str


class Line(NamedTuple):
    """The format says that this line (from 0) of the old file comes next, in some form."""

    form: str
    number: int


class Hunks:
    """Reads a diff in whatever pieces it comes.

    ``@@ -a,b +c,d @@`` promises b lines of the old file from line a on and d of the new one from line c on; c is a,
    moved by what earlier hunks of the file added and removed.
    """

    def __init__(self) -> None:
        self._line = bytearray()
        self._moved = 0
        self._left = [0, 0]

    def feed(self, piece: bytes) -> Say | Line | None:
        """Read on; return what comes next, if the format says it."""
        *ended, rest = piece.split(b"\n")
        guess: Say | Line | None = None
        for part in ended:
            self._line += part
            guess = self._end_line(bytes(self._line))
            self._line.clear()
        self._line += rest
        if ended and not rest.strip():
            return guess
        half = _HALF_HEADER.search(self._line) if rest.endswith(b"+") else None
        return Say(f"{int(half[1]) + self._moved},") if half else None

    def _end_line(self, line: bytes) -> Say | Line | None:
        """Take in a whole line."""
        if header := _HEADER.match(line):
            start, old, _, new = (int(number) if number else 1 for number in header.groups())
            self._left = [old, new]
            self._moved += new - old
            return Line("context", start - 1) if old else None
        if line.startswith((b"--- ", b"+++ ")) and self._left == [0, 0]:
            self._moved = 0
            return None
        if self._left == [0, 0] or line.startswith(b"\\"):
            return None
        sides = {b"-": (1, 0), b"+": (0, 1)}.get(line[:1], (1, 1))
        self._left = [max(0, left - side) for left, side in zip(self._left, sides, strict=True)]
        return Say("@@ -") if self._left == [0, 0] else None

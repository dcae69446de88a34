"""Follows a unified diff as it is written: its headers say where its lines come from and when they end."""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["HEADER", "Hunks", "Line", "Say"]

HEADER = "@@ "  # begins a line that says, as a rule, which lines follow

_HEADER = re.compile(rb"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")
_OPEN_HEADER = re.compile(rb"@@ -(?P<start>\d{1,9})(?P<old>,\d+)?(?P<plus> \+)?(?P<moved>\d+)?(?P<new>,\d+)?\Z")


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
    moved by what earlier hunks of the file added and removed. Lines that are added behind removed ones mostly resemble
    these.

    Attributes
    ----------
    promised : range
        The lines of the old file (from 0) that the last header promised; another object for each header.
    """

    def __init__(self) -> None:
        self._line = bytearray()
        self.promised = range(0)
        self._moved = 0
        self._left = [0, 0]
        self._old = 0
        self._resembled = -1
        self._sign = b""

    @property
    def inside(self) -> bool:
        """Whether lines of a hunk are still to come."""
        return self._left != [0, 0]

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
        if self._line == b"+" and self._resembled >= 0:
            return Line("added", self._resembled)
        return self._go_on() if self._line.startswith(b"@@ -") else None

    def _go_on(self) -> Say | None:
        """Say how an open header goes on."""
        header = _OPEN_HEADER.match(self._line)
        if header is None:
            return None
        if header["new"]:
            return Say(" @@\n")
        if header["moved"]:
            return Say(",")
        moved = f"{int(header['start']) + self._moved},"
        if header["plus"]:
            return Say(moved)
        return Say(f" +{moved}") if header["old"] else Say(",")

    def _end_line(self, line: bytes) -> Say | Line | None:
        """Take in a whole line."""
        if line.startswith(b"@@ -") and (header := _HEADER.match(line)):
            start, old, _, new = (int(number) if number else 1 for number in header.groups())
            self._left, self._old, self._resembled = [old, new], start - 1, -1
            self._moved += new - old
            self.promised = range(start - 1, start - 1 + old)
            return Line("context", start - 1) if old else None
        if line.startswith((b"--- ", b"+++ ")) and not self.inside:
            self._moved = 0
            return None
        if not self.inside or line.startswith(b"\\"):
            return None
        self._count(line[:1])
        return None if self.inside else Say("@@ -")

    def _count(self, sign: bytes) -> None:
        """Take in the sign of a line of a hunk."""
        if sign == b"-" and (self._resembled < 0 or self._sign == b"+"):
            self._resembled = self._old
        elif sign == b"+" and self._resembled >= 0:
            self._resembled += 1
        elif sign not in (b"-", b"+"):
            self._resembled = -1
        self._sign = sign
        old, new = {b"-": (1, 0), b"+": (0, 1)}.get(sign, (1, 1))
        self._old += old
        self._left = [max(0, self._left[0] - old), max(0, self._left[1] - new)]

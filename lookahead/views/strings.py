"""Follows the strings of an answer: which plain line ends at an escaped newline, and between which quotes it stands."""

from __future__ import annotations

import re

from .forms.escapes import unescape

__all__ = ["Strings"]

_MARK = re.compile(rb"""\\\\(?:\\.|[^"'\\])|\\.|["']""", re.DOTALL)  # what two backslashes begin is one mark in both
_NEWLINES = {rb"\n": 1, rb"\\\n": 1, rb"\\n": 2}
_TWICE = r"\""  # the quote of a string within a string


class Strings:
    """Reads an answer up to each escaped newline, none of its bytes twice.

    A string ends with its line at the latest, and within one the quotes of the other kind count for nothing.
    """

    def __init__(self) -> None:
        self._read = 0
        self._quote = b""
        self._begins = [0, 0]  # of the line of a string, and of that of a string within it

    def line(self, text: bytearray, end: int) -> tuple[str, str]:
        r"""Return the quote and the plain line before the ``\n`` that ends at a byte; no quote outside of strings.

        Within a string in a string the quote is an escaped one.
        """
        newline = text.rfind(b"\n", self._read, end)
        if newline >= 0:
            self._read, self._quote = newline + 1, b""
        before, within = self._begins, b""
        for mark in _MARK.finditer(text, self._read, end):
            before, within = self._begins.copy(), mark[0]
            self._take(within, mark.end())
        self._read = end
        depth = _NEWLINES.get(within, 0)
        if not depth or not self._quote or (depth == 2 and self._quote != b'"'):
            return "", ""
        line = bytes(text[before[depth - 1] : end - depth - 1]).decode("utf-8", "replace")
        for _ in range(depth):
            line = unescape(line)
        return (_TWICE if depth == 2 else self._quote.decode()), line

    def _take(self, mark: bytes, end: int) -> None:
        """Take in a quote or an escape."""
        if mark in (b'"', b"'"):
            if self._quote and mark != self._quote:
                return
            self._quote = b"" if self._quote else mark
        elif mark in (rb"\\n", b'\\"'):
            self._begins[1] = end
            return
        elif mark not in _NEWLINES:
            return
        self._begins = [end, end]

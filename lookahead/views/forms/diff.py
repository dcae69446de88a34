"""Lines of a diff: unified, in a fence, or between ``*** Begin Patch`` and its end.

Both sides are read as they were written where a line was removed or added, and no ``--- `` stands right before a
``+++ `` as between two files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial

from ..hunks import HEADER
from .form import Form, Passage, passages

_HEAD = re.compile(
    r"\n(?:@@(?=[ \r\n]|\Z)|\*\*\* (?:Begin Patch|Update File|Add File)|(?:```+|~~~+)(?:diff|patch)\b)[^\n]*"
)
_OPENINGS = (HEADER, "\n@@\n")


def read(text: str) -> list[Passage]:
    """Find the hunks; those that follow each other give two passages: the old side, then the new side."""
    found: list[Passage] = []
    hunks: list[tuple[int, str]] = []
    end = -1
    for head in _HEAD.finditer("\n" + text):
        if head.start() != end or not head[0].startswith("\n@@"):
            found += _sides(hunks)
            hunks = []
        lines = list(_body(text, head.end()))
        end = lines[-1][0] + len(lines[-1][1]) + 1 if lines else head.end()
        while lines and lines[-1][1] in ("", "\r"):
            lines.pop()
        hunks += lines
    return found + _sides(hunks)


def _body(text: str, at: int) -> Iterator[tuple[int, str]]:
    """Go through the lines of a hunk from offset `at` on: (offset, line)."""
    while at <= len(text):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        if text[at : at + 1] not in ("", " ", "+", "-", "\\", "\n", "\r"):
            return
        if text.startswith("--- ", at) and text.startswith("+++ ", end + 1):
            return  # the next file
        yield at, text[at:end]
        at = end + 1


def _sides(hunks: Sequence[tuple[int, str]]) -> list[Passage]:
    if not any(line[:1] in ("+", "-") for _, line in hunks):
        return []
    return [side for name, other in (("removed", "+"), ("added", "-")) for side in _side(hunks, name, other)]


def _side(hunks: Sequence[tuple[int, str]], name: str, other: str) -> list[Passage]:
    kept = [(at, line) for at, line in hunks if line[:1] not in (other, "\\")]
    return passages(name, [line if line == "\r" else line[1:] for _, line in kept], [at for at, _ in kept])


def _write(lines: Sequence[str], sign: str) -> list[str]:
    return [sign + line for line in lines]


CONTEXT = Form("context", partial(_write, sign=" "), "\n", read, _OPENINGS, "\n")
REMOVED = Form("removed", partial(_write, sign="-"), "\n", read, _OPENINGS, "\n")
ADDED = Form("added", partial(_write, sign="+"), "\n", read, (*_OPENINGS, "*** Add File: "), "\n")

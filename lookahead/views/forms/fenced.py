"""Text as it is, in a Markdown fence: read as it was where no line begins with that fence."""

from __future__ import annotations

import re

from .form import Form, Passage, offsets, passages

_FENCE = re.compile(r"\n[ \t]*(`{3,}(?=[^`\n]*(?:\n|\Z))|~{3,})([^\n]*)")
_OPENINGS = ("```", "~~~", "<<<<<<< SEARCH", "<file", "<content>")


def read(text: str) -> list[Passage]:
    """Find fenced blocks; a block whose end is missing goes to the end of the text.

    Behind the end of a block a tag may follow, as the last token of a chat's turn does.
    """
    found: list[Passage] = []
    fence = ""
    begin = 0
    for line in _FENCE.finditer("\n" + text):
        behind = line[2].lstrip()[:1]
        if not fence and behind != "<":
            fence, begin = line[1], line.end()
        elif fence and behind in ("", "<") and line[1].startswith(fence):
            found += _inside(text, begin, line.start() - 1)
            fence = ""
    return found + (_inside(text, begin, len(text)) if fence else [])


def _inside(text: str, begin: int, end: int) -> list[Passage]:
    lines = text[begin : max(begin, end)].split("\n")
    return passages("plain", lines, offsets(lines, begin))


PLAIN = Form("plain", list, "\n", read, _OPENINGS, "\n")

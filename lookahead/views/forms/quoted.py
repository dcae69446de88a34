"""Text quoted as in mails and Markdown: what is written is read as it was."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .form import Form, Passage, passages

_LINE = re.compile(r"\n>(?: ([^\n]*)|(\r?)(?=\n|\Z))")


def read(text: str) -> list[Passage]:
    """Find runs of lines that begin with ``>`` and a space, or hold nothing but ``>``."""
    found: list[Passage] = []
    run: list[re.Match[str]] = []
    for line in _LINE.finditer("\n" + text):
        if run and line.start() != run[-1].end():
            found += _passage(run)
            run = []
        run.append(line)
    return found + _passage(run)


def _passage(run: Sequence[re.Match[str]]) -> list[Passage]:
    return passages("quoted", [line[1] or line[2] or "" for line in run], [line.start() for line in run])


def _write(lines: Sequence[str]) -> list[str]:
    return ["> " + line if line else ">" for line in lines]


QUOTED = Form("quoted", _write, "\n", read, ("\n> ",), "\n")

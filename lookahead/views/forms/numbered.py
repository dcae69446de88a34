"""Numbered listings: ``cat -n`` and its relatives.

What is written is read as it was. With a colon for the mark that needs an empty line, or a smallest indentation of an
even number of spaces; where no space stands behind the colon, the latter.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from .form import Form, Passage, passages

_ALONE = re.compile(r"( *)(L?)([0-9]{1,7})(\t|→| ?\||:)(.*)", re.DOTALL)
_LIKE = "numbered like "
_LINE = re.compile(r"\n *(L?)([0-9]{1,7})(\t|→| ?\||:)([^\n]*)")


def read(text: str) -> list[Passage]:
    """Find runs of lines with rising numbers and the same mark behind them.

    A space after ``:`` or `` |`` belongs to the mark where each line of the run has one, empty lines aside.
    """
    found: list[Passage] = []
    run: list[re.Match[str]] = []
    style = None
    number = end = -1
    for line in _LINE.finditer("\n" + text):
        if line.start() != end or int(line[2]) <= number or line.group(1, 3) != style:
            found += _passage(run)
            run = []
            style = line.group(1, 3)
        run.append(line)
        number, end = int(line[2]), line.end()
    return found + _passage(run)


def _passage(run: Sequence[re.Match[str]]) -> list[Passage]:
    name = _NAMES.get(run[0][1] + run[0][3]) if run else None
    if name is None:
        return []
    lines = [line[4] for line in run]
    if run[0][3] in (":", " |") and _has_space(run[0][3], lines):
        lines = [line.removeprefix(" ") for line in lines]
    return passages(name, lines, [line.start() for line in run])


def _has_space(mark: str, lines: Sequence[str]) -> bool:
    """Whether the mark has a space behind it; after ``:`` all lines may be indented: by an even number, as usual."""
    least = min((len(line) - len(line.lstrip(" ")) for line in lines if line not in ("", "\r")), default=0)
    return least > 0 if mark == " |" else least % 2 == 1


def _write(lines: Sequence[str], pattern: str) -> list[str]:
    width = len(str(len(lines)))
    return [pattern.format(number, width) + line for number, line in enumerate(lines, 1)]


def _form(name: str, pattern: str) -> Form:
    return Form(name, partial(_write, pattern=pattern), "\n", read, ("\n" + pattern.format(1, 1),), "\n")


NUMBERED = _form("numbered", "{:6d}\t")
ARROW = _form("numbered_arrow", "{:6d}→")
BAR = _form("numbered_bar", "{}|")
COLUMN = _form("numbered_column", "{:{}d} | ")
COLON = _form("numbered_colon", "{}: ")
LETTER = _form("numbered_letter", "L{}:")

_NAMES = {
    "\t": NUMBERED.name,
    "→": ARROW.name,
    "|": BAR.name,
    " |": COLUMN.name,
    ":": COLON.name,
    "L:": LETTER.name,
}
_USUAL = {"6\t": NUMBERED.name, "6→": ARROW.name, "0|": BAR.name, "0: ": COLON.name, "0L:": LETTER.name}


class Listed(NamedTuple):
    """A line with a number, as an answer has it.

    Attributes
    ----------
    content : str
        The plain line.
    number : int
        Its number.
    style : str
        Alike for numbers that are written alike.
    form : str
        Name of the form that numbers lines like this, the first one with this number.
    usual : str
        Name of the form that writes numbers alike, from 1 on; empty where none does.
    """

    content: str
    number: int
    style: str
    form: str
    usual: str


def listed(line: str) -> list[Listed]:
    """Return what a line may be that has a number; a space behind the mark may belong to either."""
    match = _ALONE.fullmatch(line)
    if match is None or match[2] + match[4] not in _NAMES:
        return []
    blanks, letter, number, mark, content = match.groups()
    width = len(blanks + number) if blanks else 0
    marks = [mark, mark + " "] if mark in (":", " |") and content.startswith(" ") else [mark]
    return [
        Listed(
            content=content[len(each) - len(mark) :],
            number=int(number),
            style=f"{width}{letter}{each}",
            form=f"{_LIKE}{blanks}{letter}{number}{each}",
            usual=_USUAL.get(f"{width}{letter}{each}", ""),
        )
        for each in marks
    ]


def named(name: str) -> Form | None:
    """Return the form that numbers lines like one that was met, None for another name."""
    match = _ALONE.fullmatch(name.removeprefix(_LIKE)) if name.startswith(_LIKE) else None
    if match is None:
        return None
    blanks, letter, number, mark, space = match.groups()
    width = len(blanks + number) if blanks else 0

    def write(lines: Sequence[str]) -> list[str]:
        return [f"{letter}{count:{width}d}{mark}{space}{line}" for count, line in enumerate(lines, int(number))]

    return Form(name, write, "\n", read, (), "\n")

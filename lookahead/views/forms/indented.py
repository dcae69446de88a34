"""Text shifted to the right.

What is written is read as it was where the first and the last line have content, a line with content is not indented,
and no line of spaces alone begins with the indentation that is taken away.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from os.path import commonprefix

from .form import Form, Passage, offsets, passages

_BORDER = re.compile(r"\s*\Z|(?:```|~~~)|<[^<>]*>\s*\Z|[A-Z][^(){}=]*:\s*\Z")
_EMPTY = ("", "\r")


def read(text: str) -> list[Passage]:
    """Find blocks whose lines share an indentation, and that do not just continue a line of code above them.

    Above such a block stands nothing, an empty line, a fence, a tag, or a sentence that ends with a colon.
    """
    if "\n " not in text and "\n\t" not in text and text[:1] not in (" ", "\t"):
        return []
    lines = text.split("\n")
    starts = offsets(lines)
    found = []
    for begin, end, prefix in _blocks(lines):
        if begin == 0 or _BORDER.match(lines[begin - 1]):
            inside = [line.removeprefix(prefix) for line in lines[begin:end]]
            found += passages(_name(prefix), inside, starts[begin:end])
    return found


def _blocks(lines: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    """Go through the longest runs of lines that share an indentation: (begin, end, indentation)."""
    begin = end = 0
    prefix = ""
    for number, line in enumerate(lines):
        content = line.lstrip(" \t")
        if content in _EMPTY:
            continue
        indentation = line[: len(line) - len(content)]
        shared = prefix if indentation.startswith(prefix) else commonprefix([prefix, indentation])
        if shared:
            prefix, end = shared, number + 1
            continue
        if prefix:
            yield begin, end, prefix
        begin, end, prefix = number, number + 1, indentation
    if prefix:
        yield begin, end, prefix


def _name(prefix: str) -> str:
    return f"indented_{len(prefix)}" + ("t" if "\t" in prefix else "")


def _write(lines: Sequence[str], prefix: str) -> list[str]:
    return [line if line.lstrip(" \t") in _EMPTY else prefix + line for line in lines]


def indented(by: int | str) -> Form:
    """Make the form of text shifted by a number of spaces, or by a prefix of spaces and tabs.

    Lines without content stay as they are.
    """
    prefix = by if isinstance(by, str) else " " * by
    return Form(_name(prefix), partial(_write, prefix=prefix), "\n", read, (), "\n")


def dedented(by: int) -> Form:
    """Make the form of text shifted to the left, as far as its lines can be; it is only written."""
    blanks = re.compile(rf"[ \t]{{0,{by}}}")
    return Form(
        f"dedented_{by}", lambda lines: [blanks.sub("", line, count=1) for line in lines], "\n", _nothing, (), "\n"
    )


def _nothing(text: str) -> list[Passage]:
    return []


def named(name: str) -> Form | None:
    """Return the form of such a name, None where it is none of these."""
    if parts := re.fullmatch(r"dedented_([0-9]{1,6})", name):
        return dedented(int(parts[1]))
    parts = re.fullmatch(r"indented_([0-9]{1,6})(t?)", name)
    return indented(int(parts[1]) * ("\t" if parts[2] else " ")) if parts else None


INDENTED = indented(4)

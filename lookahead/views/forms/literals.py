r"""String literals of Python and JavaScript on one line, their newlines escaped; between double quotes as in JSON.

What is written is read as it was, but for two lone surrogates side by side that make one character.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from .escapes import LEAST, NEWLINE, read_lines, wide_lines
from .form import Form, Passage, passages

_QUOTE = re.compile(r"""\\.|["']""", re.DOTALL)
_SPECIAL = re.compile("[\\\\\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_SHORT = {"\\": "\\\\", "\t": "\\t", "\r": "\\r"}


def read(text: str) -> list[Passage]:
    """Find long literals between single quotes; those between double quotes are read as JSON's strings are."""
    found = []
    for begin, end in wide_lines(text):
        line = text[begin:end]
        for start, stop in _bodies(line):
            if line.count(NEWLINE, start, stop) >= LEAST:
                lines, starts = read_lines(line[start:stop])
                found += passages("single", lines, [begin + start + at for at in starts])
    return found


def _bodies(line: str) -> Iterator[tuple[int, int]]:
    """Go through what stands between single quotes, unless within double quotes; the last may be cut off.

    Escaped double quotes are a sign of JSON whose beginning is out of sight: no literal of Python or JavaScript.
    """
    if "'" not in line:
        return
    quote, begin = "", 0
    for mark in _QUOTE.finditer(line):
        if not quote and len(mark[0]) == 1:
            quote, begin = mark[0], mark.end()
        elif mark[0] == quote:
            if quote == "'":
                yield begin, mark.start()
            quote = ""
        elif mark[0] == '\\"' and quote == "'":
            quote = '"'
    if quote == "'":
        yield begin, len(line)


def _write(lines: Sequence[str]) -> list[str]:
    return [_SPECIAL.sub(_escape, line).replace("'", "\\'") for line in lines]


def _escape(special: re.Match[str]) -> str:
    number = ord(special[0])
    return _SHORT.get(special[0]) or (f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}")


SINGLE = Form("single", _write, NEWLINE, read, (), "('", "'")

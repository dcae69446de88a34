r"""Strings of JSON: in UTF-8, in ASCII, and a string within a string, as tool calls carry their arguments.

What is written is read as it was, but for two lone surrogates side by side that make one character.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import partial

from .escapes import LEAST, NEWLINE, line_starts, read_lines, spans, wide_lines
from .form import Form, Passage, passages

_KEYS = (
    *("content", "contents", "text", "file_text", "new_str", "old_str", "new_string", "old_string", "insert_text"),
    *("code", "code_edit", "input", "patch", "diff", "search", "replace", "body", "source", "new_source"),
)


def _write(lines: Sequence[str], ascii_only: bool = False, depth: int = 1) -> list[str]:
    quote = json.encoder.encode_basestring_ascii if ascii_only else json.encoder.encode_basestring
    written = list(lines)
    for _ in range(depth):
        written = [quote(line)[1:-1] for line in written]
    return written


def read(text: str) -> list[Passage]:
    """Find long strings wherever they stand, also where the JSON around is invalid, or cut off at either end."""
    found = []
    for begin, end in wide_lines(text):
        for start, depth, body in _bodies(text[begin:end], 1):
            lines, starts = read_lines(body, depth)
            name = "json2" if depth > 1 else "json"
            if depth == 1 and body.isascii() and not all(map(str.isascii, lines)):
                name = "json_ascii"
            found += passages(name, lines, [begin + start + at for at in starts])
    return found


def _bodies(line: str, depth: int) -> Iterator[tuple[int, int, str]]:
    """Cut one line of depth `depth` - 1 at its quotes: (offset, depth, body) of each long string, and within it."""
    newline = "\\" * (2 ** (depth - 1)) + "n"
    for begin, end in spans(line, "\\" * (2 ** (depth - 1) - 1) + '"', depth):
        if line.count(newline, begin, end) < LEAST:
            continue
        body = line[begin:end]
        yield begin, depth, body
        if depth == 1 and body.count("\\" + NEWLINE) >= LEAST:
            starts = line_starts(body)
            for start, stop in zip(starts, [*starts[1:], end - begin], strict=True):
                if body.count("\\" + NEWLINE, start, stop) >= LEAST:
                    inside = _bodies(body[start:stop], 2)
                    yield from ((begin + start + at, deeper, inner) for at, deeper, inner in inside)


def _openings(before: str) -> tuple[str, ...]:
    quote = before + '"'
    return tuple(f"{quote}{key}{quote}:{space}{quote}" for key in _KEYS for space in (" ", ""))


JSON = Form("json", _write, NEWLINE, read, _openings(""), '"content": "', '"')
JSON_ASCII = Form("json_ascii", partial(_write, ascii_only=True), NEWLINE, read, _openings(""), '"content": "', '"')
JSON_TWICE = Form(
    "json2",
    partial(_write, depth=2),
    "\\" + NEWLINE,
    read,
    _openings("\\"),
    r"\"content\": \"",
    r"\"",
)

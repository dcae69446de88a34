r"""Strings with escapes such as ``\n``, as JSON, Python and JavaScript write them: where they are, and what they say.

At depth 1 a string stands in the text itself, at depth 2 within a string of depth 1, so that all its own escapes are
escaped once more. A mark (a quote, a newline) counts where the run of backslashes right before it is a multiple of
``2 ** depth``: these are escaped backslashes, all others belong to the mark.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

NEWLINE = "\\n"  # two characters
LEAST = 3  # newlines in a string that is worth reading
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|U([0-9a-fA-F]{8})|(.))", re.DOTALL)
_PAIR = re.compile("([\ud800-\udbff])([\udc00-\udfff])")
_SHORT = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "a": "\a", "0": "\0"}
_SHORT.update({character: character for character in "\\\"'/`"})


def spans(text: str, mark: str, depth: int = 1) -> list[tuple[int, int]]:
    """Cut a text at each mark that counts: (begin, end) of what stands between."""
    found = []
    begin = at = 0
    for part in text.split(mark):
        at += len(part)
        if not part.endswith("\\") or (len(part) - len(part.rstrip("\\"))) % 2**depth == 0 or at == len(text):
            found.append((begin, at))
            begin = at + len(mark)
        at += len(mark)
    return found


def wide_lines(text: str) -> Iterator[tuple[int, int]]:
    """Find the physical lines with escaped newlines enough for a passage: (begin, end)."""
    at = text.find(NEWLINE)
    while at >= 0:
        begin = text.rfind("\n", 0, at) + 1
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        if text.count(NEWLINE, at, end) >= LEAST:
            yield begin, end
        at = text.find(NEWLINE, end)


def line_starts(body: str, depth: int = 1) -> list[int]:
    """Return where the lines of a string's body begin, which escaped newlines separate."""
    return [begin for begin, _ in spans(body, "\\" * (2 ** (depth - 1)) + "n", depth)]


def read_lines(body: str, depth: int = 1) -> tuple[list[str], list[int]]:
    """Unescape the body of a string: its plain lines and the offset of each in `body`."""
    starts = line_starts(body, depth)
    lines = _unescape(body, depth).split("\n")
    if len(lines) == len(starts):
        return lines, starts
    lines = []
    inner = []
    joint = 2 ** (depth - 1) + 1
    for begin, end in zip(starts, [*(start - joint for start in starts[1:]), len(body)], strict=True):
        some = _unescape(body[begin:end], depth).split("\n")  # several where a newline came in another guise: \u000a
        lines += some
        inner += [begin] * len(some)
    return lines, inner


def _unescape(body: str, depth: int) -> str:
    for _ in range(depth):
        body = unescape(body)
    return body


def unescape(body: str) -> str:
    """Undo the escapes of a string; what is no valid escape stays as it is."""
    if "\\" not in body:
        return body
    try:
        return str(json.loads(f'"{body}"', strict=False))
    except ValueError:
        plain = _ESCAPE.sub(_character, body)
        return _PAIR.sub(_join, plain)


def _character(escape: re.Match[str]) -> str:
    code = escape[1] or escape[2] or escape[3]
    if code:
        number = int(code, 16)
        return chr(number) if number <= 0x10FFFF else escape[0]
    return _SHORT.get(escape[4], escape[0])


def _join(pair: re.Match[str]) -> str:
    return chr(0x10000 + ((ord(pair[1]) - 0xD800) << 10) + ord(pair[2]) - 0xDC00)

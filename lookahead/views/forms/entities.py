"""Text in which XML and HTML have their own characters escaped.

What is written is read as it was where entities are frequent, and a tag or an end of the text stands on both sides.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from functools import partial

from .form import Form, Passage, offsets, passages

_PLAIN = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'"}
_PLAIN.update({"#x27": "'", "#39": "'", "#x22": '"', "#34": '"'})
_ENTITY = re.compile(f"&({'|'.join(_PLAIN)});")
_QUOTE = re.compile("&(?:quot|apos|#x27|#39|#x22|#34);")
_TAG = re.compile("[<>]")
_LEAST = 3  # entities in a passage
_NEAR = 20  # lines without entity between two that belong together, and around them


def read(text: str) -> list[Passage]:
    """Find stretches with entities at least every 20 lines, three in all, in which no character is left unescaped."""
    if text.count("&") < _LEAST or not _ENTITY.search(text):
        return []
    lines = text.split("\n")
    starts = offsets(lines)
    found = []
    for begin, end in _stretches(lines):
        written = "\n".join(lines[begin:end])
        if len(_ENTITY.findall(written)) >= _LEAST:
            name = "entities_quoted" if _QUOTE.search(written) else "entities"
            found += passages(name, _unescape(written).split("\n"), starts[begin:end])
    return found


def _stretches(lines: Sequence[str]) -> list[tuple[int, int]]:
    """Return the lines, from begin to end, in which entities are near and no character of a tag stands."""
    found: list[tuple[int, int]] = []
    begin, last = 0, -1  # of the stretch: its first line, and its last one with an entity
    for number, line in enumerate([*lines, "<"]):
        if _TAG.search(line):
            if last >= begin:
                found.append((max(begin, _first(lines, begin) - _NEAR), min(number, last + _NEAR + 1)))
            begin = number + 1
        elif "&" in line and _ENTITY.search(line):
            if last >= begin and number - last > _NEAR:
                found.append((max(begin, _first(lines, begin) - _NEAR), last + _NEAR + 1))
                begin = number - _NEAR
            last = number
    return found


def _first(lines: Sequence[str], begin: int) -> int:
    while not _ENTITY.search(lines[begin]):
        begin += 1
    return begin


def _unescape(text: str) -> str:
    return _ENTITY.sub(lambda entity: _PLAIN[entity[1]], text)


def _write(lines: Sequence[str], quote: bool) -> list[str]:
    return [html.escape(line, quote) for line in lines]


ENTITIES = Form("entities", partial(_write, quote=False), "\n", read, ("&lt;", "&gt;", "&amp;"), "\n")
ENTITIES_QUOTED = Form("entities_quoted", partial(_write, quote=True), "\n", read, ("&quot;", "&#x27;", "&#39;"), "\n")

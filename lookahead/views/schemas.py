"""The tools that a prompt offers: their names, and the keys of their arguments in the order of the schema."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Schema", "tools"]

_PROPERTIES = '"properties"'
_ARGUMENTS = ("parameters", "input_schema", "inputSchema", "schema")
_BEGINS = {"string": '"', "object": "{", "array": "["}
_BACK, _TRIES = 20_000, 64  # characters and braces before a schema among which its tool begins
_AHEAD = 100_000  # characters behind it in which the tool ends
_WORK = 4_000_000  # characters that are read as JSON in vain
_FAILED = 500  # as many are as dear as a failure
_RECENT = 32_000  # characters at the end of a text in which tools may have been called
_DEPTH = 4  # schemas within schemas that are looked at
_DECODER = json.JSONDecoder()
_TAGGED, _TAGGED_END = re.compile(r"<function>\s*<name>([^<]+)</name>"), "</function>"
_TAGGED_KEY = re.compile(r"<parameter>\s*<name>([^<]+)</name>\s*(?:<type>([^<]*)</type>)?")
_TAGGED_REQUIRED = re.compile(r"<required>(\[[^<]*\])</required>")


@dataclass(frozen=True)
class Schema:
    """What a JSON schema says of how a value is written.

    Attributes
    ----------
    begins : str
        What it begins with: a quote, a bracket, or nothing where this is open.
    keys : dict of str to Schema
        The keys of an object, in their order.
    required : frozenset of str
        Those that have to be there.
    """

    begins: str = ""
    keys: dict[str, Schema] = field(default_factory=dict)
    required: frozenset[str] = frozenset()

    def ahead(self, said: Sequence[str]) -> list[str | None]:
        """Return the keys that may come after those that were said, None for the end, the likeliest first.

        A key that has to come comes before one that may, and the end before that. Without keys nothing is known.
        """
        if not self.keys:
            return []
        order = list(self.keys)
        last = max((order.index(key) for key in said if key in self.keys), default=-1)
        left = [key for key in order[last + 1 :] if key not in said]
        needed = [key for key in left if key in self.required]
        lacking = any(key in self.required and key not in said for key in order)
        found: list[str | None] = [*needed[:1]] if lacking else [None]
        return [*found, *(key for key in left[:1] if key not in found)]


def tools(text: str, most: int = 64) -> dict[str, Schema]:
    """Return the tools that a text offers and the schemas of their arguments, the tool that it names last first.

    Knows JSON, as the chat templates write it for all families, and the tags that those of Qwen's coders write.
    Whatever else the text holds is passed over, in bounded time.
    """
    found: dict[str, Schema] = {}
    end, left = 0, _WORK
    while left > 0 and len(found) < most and (at := text.find(_PROPERTIES, end)) >= 0:
        name, schema, end, spent = _tool(text, at, end)
        left -= spent
        if name:
            found[name] = schema
    end = 0
    while len(found) < most and (match := _TAGGED.search(text, end)):
        begin, end = match.end(), text.find(_TAGGED_END, match.end())
        if end < 0:  # nor does a later one end: looking for it from each would take the square of the text's length
            break
        found[match[1].strip()] = _tagged(text[begin:end])
    recent = text[-_RECENT:]
    return dict(sorted(found.items(), key=lambda tool: -_named(recent, tool[0])))


def _named(text: str, tool: str) -> int:
    """Return where a text calls a tool for the last time, or offers it; -1 where it does neither."""
    return max(text.rfind(f'"{tool}"'), text.rfind(f"={tool}>"), text.rfind(f"{tool}("))


def _tool(text: str, at: int, begin: int) -> tuple[str, Schema, int, int]:
    """Return name, schema and end of the tool whose properties stand at a place; no name where there is none.

    And how many characters were read in vain.
    """
    spent = 0
    for value, end, read in _around(text, at, begin):
        spent += read
        name = value.get("name")
        given = next((value[key] for key in _ARGUMENTS if isinstance(value.get(key), dict)), None)
        if isinstance(name, str) and name and given is not None and end > at:
            return name, _schema(given), end, spent - read
    return "", Schema(), at + len(_PROPERTIES), spent


def _around(text: str, at: int, begin: int) -> Iterator[tuple[dict[str, Any], int, int]]:
    """Yield the objects that begin before a place, the last first: value, end and characters read.

    What is none comes as an empty one.
    """
    first = max(begin, at - _BACK)
    near = text[first : at + _AHEAD]  # an error counts the lines before it, which takes long in a long text
    start = at - first
    for _ in range(_TRIES):
        start = near.rfind("{", 0, start)
        if start < 0:
            return
        try:
            value, end = _DECODER.raw_decode(near, start)
            yield value, first + end, end - start
        except json.JSONDecodeError as error:
            yield {}, start, error.pos - start + _FAILED
        except RecursionError:  # what is around it would be one, too
            yield {}, start, _BACK
            return


def _schema(given: Any, depth: int = _DEPTH) -> Schema:
    """Read a JSON schema, whatever it holds."""
    if not isinstance(given, dict):
        return Schema()
    kind, properties, required = given.get("type"), given.get("properties"), given.get("required")
    kinds = kind if isinstance(kind, list) else [kind]
    begins = next((_BEGINS[one] for one in kinds if isinstance(one, str) and one in _BEGINS), "")
    if not isinstance(properties, dict) or not depth:
        return Schema(begins)
    keys = {key: _schema(value, depth - 1) for key, value in properties.items()}
    names = required if isinstance(required, list) else []
    return Schema("{", keys, frozenset(name for name in names if isinstance(name, str)))


def _tagged(text: str) -> Schema:
    """Read the parameters of a tool that are written with tags."""
    keys = {name.strip(): Schema(_BEGINS.get(kind.strip(), "")) for name, kind in _TAGGED_KEY.findall(text)}
    named = _TAGGED_REQUIRED.findall(text)
    try:
        required = json.loads(named[-1]) if named else []
    except ValueError:
        required = []
    return Schema("{", keys, frozenset(name for name in required if isinstance(name, str)))

"""Calls of tools whose arguments stand in tags, as Qwen3-Coder writes them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["forced_tags", "tagged_calls"]

_CALL = re.compile(r"\s*<function=([^>\n]+)>(.*?)(?:</function>|\Z)", re.DOTALL)
_ARGUMENT = re.compile(r"\s*<parameter=([^>\n]+)>(.*?)(?:</parameter>|(?=<parameter=)|\Z)", re.DOTALL)
_NO_TYPE = {"enum", "const", "anyOf", "oneOf", "allOf", "$ref"}  # without `type` they may mean any
_PYTHON = {"True": "true", "False": "false", "None": "null"}  # chat templates write values of earlier calls so


def tagged_calls(text: str, schemas: Mapping[str, Mapping[str, Any] | None]) -> list[tuple[str, dict[str, Any]]] | None:
    """Return the calls that a text is, as names and arguments; None where it is something else.

    A value is a text, but where its schema knows no strings and it is JSON.

    Parameters
    ----------
    text : str
    schemas : mapping of str to (mapping or None)
        For each function the JSON schema of its arguments.
    """
    calls, at = [], 0
    while call := _CALL.match(text, at):
        arguments, end, name = {}, call.start(2), call[1].strip()
        schema = schemas.get(name)
        known = schema.get("properties") if schema else None
        while found := _ARGUMENT.match(text, end, call.end(2)):
            key = found[1].strip()
            about = known.get(key) if isinstance(known, Mapping) else None
            arguments[key] = _value(found[2], about if isinstance(about, Mapping) else {})
            end = found.end()
        if text[end : call.end(2)].strip():
            return None
        calls.append((name, arguments))
        at = call.end()
    return calls if calls and not text[at:].strip() else None


def _value(text: str, schema: Mapping[str, Any]) -> Any:
    """Return an argument; the line ends next to its tags are not of it."""
    text = text.removeprefix("\n").removesuffix("\n")
    kinds = schema.get("type", None if _NO_TYPE & schema.keys() else "string")
    allowed = schema.get("enum")
    if "string" in (kinds if isinstance(kinds, list) else [kinds]) or (isinstance(allowed, list) and text in allowed):
        return text
    try:
        return json.loads(_PYTHON.get(text, text))
    except (ValueError, RecursionError):
        return text


def forced_tags(tools: Sequence[tuple[str, dict[str, Any] | None]]) -> dict[str, Any]:
    """Return the structural tag of xgrammar for what follows ``<tool_call>`` in an answer that has to call a tool."""
    calls = [
        {
            "type": "tag",
            "begin": f"<function={name}>\n",
            "content": {"type": "json_schema", "json_schema": parameters or {"type": "object"}, "style": "qwen_xml"},
            "end": "\n</function>\n</tool_call>",
        }
        for name, parameters in tools
    ]
    return {"type": "structural_tag", "format": {"type": "or", "elements": calls} if len(calls) > 1 else calls[0]}

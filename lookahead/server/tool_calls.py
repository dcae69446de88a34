"""Calls of tools, found in what a model writes: the forms of Hermes and Qwen, Qwen3-Coder, Llama, and Mistral."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from .tagged_calls import forced_tags, tagged_calls
from .text import held_back

__all__ = ["Form", "FoundCall", "ToolStream", "form_of", "forced", "marks"]


class FoundCall(NamedTuple):
    """A call: the name of the function, and its arguments as a JSON text."""

    name: str
    arguments: str


@dataclass(frozen=True)
class Form:
    """How a family of models writes calls.

    Attributes
    ----------
    opening : str
        What stands before the first call; where it is empty, an answer that begins with a brace is calls.
    closing : str
        What stands behind each call; where it is empty, the rest of the answer is calls.
    arguments : str
        The key of the arguments.
    mark : str
        What, beside the opening, tells of the form in a chat template.
    has_tags : bool
        Whether arguments stand in tags, not in JSON.
    """

    opening: str
    closing: str
    arguments: str
    mark: str
    has_tags: bool = False


_CODER = Form("<tool_call>", "</tool_call>", "arguments", "<function=", has_tags=True)
_HERMES = Form("<tool_call>", "</tool_call>", "arguments", "<tool_call>")
_MISTRAL = Form("[TOOL_CALLS]", "", "arguments", "[TOOL_CALLS]")
_LLAMA = Form("", "", "parameters", '"parameters"')
_PYTHON_TAG = "<|python_tag|>"
_MARKS = (_PYTHON_TAG, "[ARGS]", "[CALL_ID]")
_NAMED = re.compile(r"\s*([a-zA-Z0-9_.-]+)\s*(?:\[CALL_ID\][^\[{]*)?(?:\[ARGS\])?\s*(?=\{)")  # newer ones of Mistral


def form_of(template: str) -> Form | None:
    """Return the form of calls that a chat template tells the model, None where it knows no tools."""
    if not re.search(r"\btools\b", template):
        return None
    forms = (_CODER, _HERMES, _MISTRAL, _LLAMA)
    return next((form for form in forms if form.mark in template and form.opening in template), None)


def forced(form: Form, tools: list[tuple[str, dict[str, Any] | None]]) -> tuple[str, dict[str, Any]]:
    """Return how an answer that has to call one of the tools begins, and the form of what follows.

    That is a JSON schema, or a structural tag of xgrammar where the form has tags.

    Parameters
    ----------
    form : Form
    tools : list of (str, dict or None)
        The names of the functions, and the JSON schemas of their arguments.
    """
    if form.has_tags:
        return f"{form.opening}\n", forced_tags(tools)
    shared: dict[str, Any] = {
        name: _moved(parameters, f"#/$defs/{name}") for name, parameters in tools if _refers(parameters)
    }
    calls: list[dict[str, Any]] = [
        {
            "type": "object",
            "properties": {
                "name": {"const": name},
                form.arguments: {"$ref": f"#/$defs/{name}"} if name in shared else parameters or {"type": "object"},
            },
            "required": ["name", form.arguments],
            "additionalProperties": False,
        }
        for name, parameters in tools
    ]
    call: dict[str, Any] = calls[0] if len(calls) == 1 else {"anyOf": calls}
    if form is _MISTRAL:
        call = {"type": "array", "items": call, "minItems": 1, "maxItems": 1}
    opening = f"{form.opening}\n" if form.closing else form.opening
    return opening, {**call, "$defs": shared} if shared else call


def _refers(parameters: dict[str, Any] | None) -> bool:
    """Return whether a JSON schema refers to parts of itself."""
    return '"$ref"' in json.dumps(parameters)


def _moved(parameters: Any, root: str) -> Any:
    """Return a JSON schema as it stands at `root` of another: it refers to its own parts there."""

    def moved(part: dict[str, Any]) -> dict[str, Any]:
        target = part.get("$ref")
        if isinstance(target, str) and target.startswith("#"):
            return {**part, "$ref": f"{root}{target[1:]}"}
        return part

    return json.loads(json.dumps(parameters), object_hook=moved)


def marks(form: Form, tokenizer: Any) -> frozenset[int]:
    """Return the special tokens by which calls are known."""
    known = tokenizer.get_vocab()
    return frozenset(known[mark] for mark in (form.opening, form.closing, *_MARKS) if mark in known)


class ToolStream:
    """Splits the text of an answer, as it comes, into what is said and what is called.

    What looks like a call and is none is said.

    Parameters
    ----------
    form : Form
        How the model writes calls.
    text : str
        What the answer begins with and the model did not write.
    tools : sequence of (str, dict or None)
        The names of the functions, and the JSON schemas of their arguments.
    is_single : bool
        Whether what follows the first call is left out.
    """

    def __init__(
        self,
        form: Form,
        text: str = "",
        tools: Sequence[tuple[str, Mapping[str, Any] | None]] = (),
        is_single: bool = False,
    ) -> None:
        self._form, self._schemas, self._is_single = form, dict(tools), is_single
        self._has_called = False
        self._text = text  # not told yet
        self._has_begun = self._is_inside = False
        self._opening = form.opening or _PYTHON_TAG

    def feed(self, text: str) -> list[str | FoundCall]:
        """Return what has become certain."""
        self._text += text
        found: list[str | FoundCall] = []
        while (part := self._next()) is not None:
            found.append(part)
        return self._wanted(found)

    def end(self) -> list[str | FoundCall]:
        """Return the rest."""
        text, self._text = self._text, ""
        if not self._is_inside:
            return self._wanted([text])
        calls = self._parsed(text)
        return self._wanted([self._form.opening + text] if calls is None else calls)

    def _wanted(self, found: Sequence[str | FoundCall]) -> list[str | FoundCall]:
        """Return what is told of what was found: nothing behind the first call where it has to be the only one."""
        told: list[str | FoundCall] = []
        for part in found:
            if part != "" and not (self._is_single and self._has_called):
                told.append(part)
            self._has_called |= isinstance(part, FoundCall)
        return told

    def _next(self) -> str | FoundCall | None:
        """Return the next part that is certain, None where there is none."""
        return self._called() if self._is_inside else self._said()

    def _said(self) -> str | None:
        """Return text before a call."""
        if not self._form.opening and not self._has_begun:
            start = self._text.lstrip()
            if start.startswith("{"):
                self._is_inside, self._text = True, start
                return None
        said, opening, inside = self._text.partition(self._opening)
        if opening:
            self._text, self._is_inside = inside, True
            return said.rstrip()
        said = self._text[: len(self._text) - held_back(self._text, [self._opening])].rstrip()
        self._text = self._text[len(said) :]
        self._has_begun = self._has_begun or bool(said.strip())
        return said or None

    def _called(self) -> str | FoundCall | None:
        """Return a call that is complete, or its text where it is none."""
        if not self._form.closing:
            return None
        inside, closing, rest = self._text.partition(self._form.closing)
        if not closing:
            return None
        self._text, self._is_inside = rest, False
        calls = self._parsed(inside)
        return calls[0] if calls else f"{self._form.opening}{inside}{closing}"

    def _parsed(self, text: str) -> list[FoundCall] | None:
        """Return the calls that a text is, None where it is something else."""
        if self._form.has_tags:
            tagged = tagged_calls(text, self._schemas)
            return None if tagged is None else [FoundCall(name, json.dumps(given)) for name, given in tagged]
        calls: list[FoundCall] = []
        text = text.strip()
        while text:
            named = _NAMED.match(text) if self._form is _MISTRAL else None
            try:
                value, end = json.JSONDecoder().raw_decode(text, named.end() if named else 0)
            except (json.JSONDecodeError, RecursionError):
                return None
            values = (
                [{"name": named[1], "arguments": value}] if named else value if isinstance(value, list) else [value]
            )
            found = [_call(one) for one in values]
            if not found or None in found:
                return None
            calls += [one for one in found if one is not None]
            text = text[end:].lstrip(" \n;,").removeprefix(self._form.opening).strip()
        return calls or None


def _call(value: Any) -> FoundCall | None:
    """Return the call that a JSON value is."""
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        return None
    arguments = value.get("arguments", value.get("parameters", {}))
    return FoundCall(value["name"], arguments if isinstance(arguments, str) else json.dumps(arguments))

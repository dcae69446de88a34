"""Follows the calls of tools in an answer: which tools there are, and which keys come next, stands in the prompt."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from .arguments import Arguments, Frame, Tags
from .dialects import ANTHROPIC, DIALECTS, LLAMA, PYTHONIC, QWEN_CODER, Dialect
from .openings import Opening
from .schemas import Schema, tools

__all__ = ["CALLS", "Calls"]

_NAMED = ('{"name": "', '{"name":"', "<function=", "<invoke name=")  # begin a call that nothing else opens
CALLS: frozenset[str] = frozenset({*(dialect.opening for dialect in DIALECTS if dialect is not PYTHONIC), *_NAMED})
"""Openings of calls."""

_MOST = 8  # tools that are thought of before one is named
_LONGEST = 256  # bytes before the first key
_JSON_HEAD = re.compile(rb'\s*(\[?)\s*\{(\s*)"name"(\s*:\s*)"([^"\\]+)"')
_HEADS = {
    "named": re.compile(rb"\s*([\w.-]+)\[ARGS\]\s*\{"),
    "pythonic": re.compile(rb"\s*\[?([A-Za-z_][\w.]*)\("),
    "tags": re.compile(rb'\s*<(function=|invoke name=")([^">]+)"?>'),
}


class _Head(NamedTuple):
    """The beginning of a call, while its tool is not known."""

    opening: str
    said: bytes


class Calls:
    """Watches one answer for calls; reads the tools out of the prompt when the first one opens.

    Parameters
    ----------
    prompt : str
        The text that offers the tools.
    """

    def __init__(self, prompt: str) -> None:
        self._prompt = prompt
        self._tools: dict[str, Schema] | None = None
        self._dialects: list[Dialect] = []
        self._head: _Head | None = None
        self._call: Arguments | Tags | None = None

    def begin(self, dialects: list[Dialect]) -> list[str]:
        """Look forward to an answer, which may be a call that nothing opens; return how it may begin."""
        self._dialects = dialects
        bare = [dialect for dialect in dialects if dialect in (LLAMA, PYTHONIC)]
        if not bare or not self._known():
            return []
        self._head = _Head("", b"")
        return self._foreseen()

    def feed(self, piece: bytes, openings: Iterable[Opening], text: bytearray) -> list[str]:
        """Read on; return what may come next, the likeliest first.

        Parameters
        ----------
        piece : bytes
            What was said.
        openings : iterable of Opening
            Those that end in it.
        text : bytearray
            All that was said, the piece included.
        """
        found: list[str] = []
        if self._head is not None:
            found = self._read_head(_Head(self._head.opening, self._head.said + piece))
        elif self._call is not None:
            found = self._read(piece)
        for opening in openings:
            if opening.text in CALLS and self._may_begin(opening.text) and self._known():
                said = opening.text.encode() if opening.text in _NAMED else b""
                self._call = None
                found = self._read_head(_Head(opening.text, said + bytes(text[opening.end :])))
        return found

    def _known(self) -> bool:
        """Whether there are tools; the prompt is read once, for the first call."""
        if self._tools is None:
            self._tools = tools(self._prompt)
            self._prompt = ""
        return bool(self._tools)

    def _may_begin(self, opening: str) -> bool:
        """Whether a call may begin here: none within the text of another, and none that has just begun."""
        if self._call is not None:
            return not self._call.inside and opening not in _NAMED
        return self._head is None or self._head.opening == "" or opening not in _NAMED

    def _read(self, piece: bytes) -> list[str]:
        """Read on in the arguments."""
        found = [] if self._call is None else self._call.feed(piece)
        if self._call is not None and self._call.ended:
            self._call = None
        return found

    # ---- The tool ----

    def _read_head(self, head: _Head) -> list[str]:
        """Read up to the tool's name; return what comes next, there or in its arguments."""
        self._head = None
        for name, call, rest in self._begun(head):
            if self._tools is not None and name in self._tools:
                self._call = call
                return self._read(rest)
            return []
        if len(head.said) > _LONGEST:
            return []
        self._head = head
        found = self._foreseen()
        if not head.opening and not found:
            self._head = None  # the answer is no call
        return found

    def _foreseen(self) -> list[str]:
        """Return how the call that begins may go on, for the tools named last."""
        if self._head is None or self._tools is None:
            return []
        said = self._head.said.decode("utf-8", "replace").lstrip()
        found: dict[str, None] = {}
        for name, schema in [*self._tools.items()][:_MOST]:
            for dialect in self._spoken(self._head.opening):
                text = _opened(dialect, name, schema, self._head.opening == dialect.opening)
                blanks = "" if self._head.said else text[: len(text) - len(text.lstrip())]
                text = text.lstrip()
                if text.startswith(said) and text != said:
                    found[blanks + text[len(said) :]] = None
        return list(found)

    def _spoken(self, opening: str) -> list[Dialect]:
        """Return the dialects in which a call with this opening goes on."""
        if not opening:
            return [dialect for dialect in self._dialects if dialect in (LLAMA, PYTHONIC)]
        if opening in _NAMED:
            fits = [one for one in DIALECTS if opening.rstrip('"').replace(" ", "") in one.head.replace(" ", "")]
        else:
            fits = [one for one in DIALECTS if one.opening == opening]
        return [one for one in self._dialects if one in fits] or fits[:1]

    def _begun(self, head: _Head) -> Iterable[tuple[str, Arguments | Tags, bytes]]:
        """Yield, once it was said, the tool's name, what reads its arguments, and what of these was said."""
        known = self._tools or {}
        if found := _JSON_HEAD.match(head.said):
            name, colon, gap = found[4].decode("utf-8", "replace"), found[3].decode(), found[2].decode()
            key = "parameters" if LLAMA in self._spoken(head.opening)[:1] else "arguments"
            whole = Schema("{", {"name": Schema('"'), key: known.get(name, Schema("{"))}, frozenset({"name", key}))
            tail = "]" if found[1] else "\n</tool_call>" if head.opening == "<tool_call>" else ""
            yield name, Arguments(Frame("}", whole, ["name"], gap), colon, tail), head.said[found.end() :]
        elif found := _HEADS["named"].match(head.said):
            name = found[1].decode("utf-8", "replace")
            yield name, Arguments(Frame("}", known.get(name, Schema())), ": ", ""), head.said[found.end() :]
        elif not head.opening and (found := _HEADS["pythonic"].match(head.said)):
            name = found[1].decode("utf-8", "replace")
            yield name, Arguments(Frame(")", known.get(name, Schema())), ": ", "]"), head.said[found.end() :]
        elif found := _HEADS["tags"].match(head.said):
            name = found[2].decode("utf-8", "replace")
            dialect = QWEN_CODER if found[1] == b"function=" else ANTHROPIC
            tail = dialect.tail.partition("</parameter>\n")[2]
            yield name, Tags(known.get(name, Schema()), dialect.key, tail), head.said[found.end() :]


def _opened(dialect: Dialect, tool: str, schema: Schema, opened: bool) -> str:
    """Write the beginning of a call up to its first value, without what opens it where that was said."""
    first = schema.ahead([])[0] if schema.keys else None
    head = dialect.head.replace("{name}", tool)
    if dialect is PYTHONIC and not opened:
        head = dialect.opening + head
    if first is None:
        return head
    key = dialect.key.replace("{key}", first)
    return head + (key[:-1] + schema.keys[first].begins if key.endswith('"') else key)

"""Follows the arguments of a call as they are written: where a value has ended, the schema says what comes next."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from .schemas import Schema

__all__ = ["Arguments", "Frame", "Tags"]

_KEY = re.compile(rb'(\s*)(?:(,)(\s*))?(?:"((?:[^"\\]|\\.)*)"(\s*:\s*)|([A-Za-z_]\w*)(\s*=\s*))(?=\S)', re.DOTALL)
_ELEMENT = re.compile(rb"\s*(?:,\s*)?(?=[^\s,\]])")
_CLOSE = re.compile(rb"\s*[}\])]")
_STRING = {
    quote: re.compile(rb"[^%b\\]*(?:\\.[^%b\\]*)*%b" % (quote, quote, quote), re.DOTALL) for quote in (b'"', b"'")
}
_WORD = re.compile(rb"[^\s,\]})]*(?=[\s,\]})])|true\Z|false\Z|null\Z|True\Z|False\Z|None\Z")

_LONGEST = 1024  # bytes of a key with its punctuation, and of a number


@dataclass
class Frame:
    """An object, a list, or a call with its parentheses, that is being written.

    Attributes
    ----------
    close : str
        The bracket that closes it.
    schema : Schema
        What is known of its keys.
    said : list of str
        The keys that were said.
    gap : str or None
        The blanks before its first key, None before that.
    """

    close: str
    schema: Schema
    said: list[str] = field(default_factory=list)
    gap: str | None = None


class Arguments:
    """Reads JSON, or the arguments of a call in Python, in whatever pieces they come.

    Parameters
    ----------
    frame : Frame
        What is open.
    colon : str
        What stands between a key and its value; what was said last counts.
    tail : str
        What stands behind the outermost bracket.
    """

    def __init__(self, frame: Frame, colon: str, tail: str) -> None:
        self._frames = [frame]
        self._rest = b""
        self._quote = b""
        self._in_word = False
        self._colon, self._equals, self._comma = colon, "=", " " if colon != ":" else ""
        self._tail = tail

    @property
    def ended(self) -> bool:
        """Whether the call is complete."""
        return not self._frames

    @property
    def inside(self) -> bool:
        """Whether a text is being said, in which anything may stand."""
        return bool(self._quote)

    def feed(self, piece: bytes) -> list[str]:
        """Read on; return what may come next by the schema, the likeliest first."""
        self._rest += piece
        while self._frames and self._advance():
            pass
        if len(self._rest) > _LONGEST:
            self._frames.clear()  # this is something else
        if not self._frames or self._quote or self._in_word:
            return []
        frame, rest = self._frames[-1], self._rest.decode("utf-8", "replace")
        if frame.gap is None:
            ahead = self._after(len(self._frames) - 1, _blanks(rest) if rest else None)
        else:
            ahead = self._after(len(self._frames) - 1)
        return [text[len(rest) :] for text in ahead if text.startswith(rest) and text != rest]

    # ---- Reading ----

    def _advance(self) -> bool:
        """Read one thing; return whether there was a whole one."""
        if self._quote:
            return self._end_string()
        if self._in_word:
            found = _WORD.match(self._rest)
            self._in_word = found is None
            return found is not None and self._cut(found)
        if found := _CLOSE.match(self._rest):
            self._frames.pop()
            return self._cut(found)
        frame = self._frames[-1]
        if frame.close == "]":
            found = _ELEMENT.match(self._rest)
            return found is not None and self._cut(found) and self._begin(Schema())
        found = _KEY.match(self._rest)
        if found is None:
            return False
        before, comma, behind, quoted, colon, bare, equals = (
            part.decode("utf-8", "replace") for part in found.groups(b"")
        )
        frame.said.append(quoted or bare)
        frame.gap = before + behind if frame.gap is None else frame.gap
        self._colon, self._equals = colon or self._colon, equals or self._equals
        self._comma = behind if comma else self._comma
        return self._cut(found) and self._begin(frame.schema.keys.get(quoted or bare, Schema()))

    def _cut(self, found: re.Match[bytes]) -> bool:
        """Leave behind what was read."""
        self._rest = self._rest[found.end() :]
        return True

    def _end_string(self) -> bool:
        """Read to the end of a string, if it is there."""
        found = _STRING[self._quote].match(self._rest)
        if found:
            self._quote = b""
            return self._cut(found)
        slashes = len(self._rest) - len(self._rest.rstrip(b"\\"))
        self._rest = b"\\" * (slashes % 2)  # may escape what comes next
        return False

    def _begin(self, schema: Schema) -> bool:
        """Begin the value whose first character comes next."""
        first = self._rest[:1]
        if first in (b'"', b"'"):
            self._quote, self._rest = first, self._rest[1:]
        elif first in (b"{", b"["):
            self._frames.append(Frame("}" if first == b"{" else "]", schema))
            self._rest = self._rest[1:]
        else:
            self._in_word = True
        return True

    # ---- Foreseeing ----

    def _after(self, depth: int, gap: str | None = None) -> list[str]:
        """Return what may follow a value, or the opening bracket, in the frame at a depth, the likeliest first."""
        if depth < 0:
            return [self._tail]
        frame = self._frames[depth]
        if frame.close == "]":
            return []
        begin = self._gap(depth) if frame.gap is None and gap is None else gap
        if frame.gap is not None:
            begin = "," + (frame.gap if "\n" in frame.gap else self._comma)
        return [
            f"{begin}{self._pair(frame, key, depth)}" if key is not None else self._closed(depth)
            for key in frame.schema.ahead(frame.said)
        ]

    def _pair(self, frame: Frame, key: str, depth: int) -> str:
        """Write a key up to where its value begins; of an object up to where its first value begins."""
        schema = frame.schema.keys[key]
        text = f'"{key}"{self._colon}{schema.begins}' if frame.close == "}" else f"{key}{self._equals}{schema.begins}"
        first = schema.ahead([])[0] if schema.keys else None
        if first is None or "\n" in self._gap(depth):
            return text
        return text + self._pair(Frame("}", schema), first, depth)

    def _closed(self, depth: int) -> str:
        """Write the end of the frame at a depth, and what follows that."""
        frame = self._frames[depth]
        outer = self._gap(depth - 1) if depth else "\n"
        blanks = outer if "\n" in (frame.gap or "") else ""
        return blanks + frame.close + (self._after(depth - 1) or [""])[0]

    def _gap(self, depth: int) -> str:
        """Return the blanks before the first key of the frame at a depth, a guess where none was said."""
        frame = self._frames[depth]
        if frame.gap is not None:
            return frame.gap
        outer, beyond = (self._gap(depth - back) if depth >= back else "" for back in (1, 2))
        return outer + outer[max(1, len(beyond)) :] if "\n" in outer else ""


class Tags:
    """Reads the parameters of a call that are written with tags, in whatever pieces they come.

    Parameters
    ----------
    schema : Schema
        The keys.
    key : str
        How one is written; ``{key}`` stands for its name.
    tail : str
        What closes the call.
    """

    _CLOSE = b"</parameter>"
    _KEY = re.compile(rb'\s*<parameter(?:=|\s+name=")([^">]*)"?>')
    _END = re.compile(rb"\s*</(?:function|invoke)>")

    def __init__(self, schema: Schema, key: str, tail: str) -> None:
        self._schema, self._key, self._tail = schema, key, tail
        self._said: list[str] = []
        self._rest = b""
        self.ended = self.inside = False

    def feed(self, piece: bytes) -> list[str]:
        """Read on; return what may come next by the schema, the likeliest first."""
        self._rest += piece
        while not self.ended and self._advance():
            pass
        self.ended = self.ended or len(self._rest) > _LONGEST
        if self.ended or self.inside:
            return []
        rest = self._rest.decode("utf-8", "replace")
        ahead = self._schema.ahead(self._said)
        texts = ["\n" + (self._tail if key is None else self._key.replace("{key}", key)) for key in ahead]
        return [text[len(rest) :] for text in texts if text.startswith(rest) and text != rest]

    def _advance(self) -> bool:
        """Read one tag; return whether there was a whole one."""
        if self.inside:
            at = self._rest.find(self._CLOSE)
            self.inside = at < 0
            self._rest = self._rest[at + len(self._CLOSE) :] if at >= 0 else self._rest[-len(self._CLOSE) :]
            return at >= 0
        if found := self._KEY.match(self._rest):
            self._said.append(found[1].decode("utf-8", "replace"))
            self._rest, self.inside = self._rest[found.end() :], True
            return True
        self.ended = self._END.match(self._rest) is not None
        return False


def _blanks(text: str) -> str:
    """Return the blanks that a text begins with."""
    return text[: len(text) - len(text.lstrip())]

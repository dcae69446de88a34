"""From tokens to text as it streams: whole characters only, and nothing that may still become a stop sequence."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

__all__ = ["TextStream", "held_back"]

_BROKEN = "\ufffd"  # what a decoder writes for bytes that are no character, or not yet
_LONGEST = 8  # tokens after which such bytes are taken for no character


class TextStream:
    """The text of one answer.

    Parameters
    ----------
    tokenizer : PreTrainedTokenizerBase
    stops : sequence of str
        The text ends before the first of them.
    hidden : collection of int
        Tokens that are not shown.

    Attributes
    ----------
    is_stopped : bool
        Whether a stop sequence was met.
    """

    def __init__(self, tokenizer: Any, stops: Sequence[str] = (), hidden: Collection[int] = ()) -> None:
        self._tokenizer, self._stops, self._hidden = tokenizer, [stop for stop in stops if stop], hidden
        self._ids: list[int] = []
        self._start = 0  # from here on tokens are decoded together: a token's text may depend on the one before
        self._read = 0  # tokens that were told
        self._held = ""
        self.is_stopped = False

    def feed(self, token: int) -> str:
        """Return the text that is certain since this token."""
        if self.is_stopped or token in self._hidden:
            return ""
        self._ids.append(token)
        return self._told(self._decoded(final=False), final=False)

    def end(self) -> str:
        """Return the rest of the text."""
        return "" if self.is_stopped else self._told(self._decoded(final=True), final=True)

    def _decoded(self, final: bool) -> str:
        """Return the text of the tokens that were not decoded yet, nothing while a character is not complete."""
        before = self._tokenizer.decode(self._ids[self._start : self._read])
        text: str = self._tokenizer.decode(self._ids[self._start :])
        waits = text.endswith(_BROKEN) and len(self._ids) - self._read < _LONGEST
        if waits and not final:
            return ""
        self._start, self._read = self._read, len(self._ids)
        return text[len(before) :]

    def _told(self, text: str, final: bool) -> str:
        """Return what of the text may be told: up to a stop sequence, or without what may become one."""
        text = self._held + text
        found = [place for place in (text.find(stop) for stop in self._stops) if place >= 0]
        if found:
            self.is_stopped, self._held = True, ""
            return text[: min(found)]
        kept = 0 if final else held_back(text, self._stops)
        self._held = text[len(text) - kept :]
        return text[: len(text) - kept]


def held_back(text: str, marks: Sequence[str]) -> int:
    """Return the length of the longest end of a text with which one of the marks may begin."""
    longest = max((len(mark) - 1 for mark in marks), default=0)
    for length in range(min(longest, len(text)), 0, -1):
        if any(mark.startswith(text[-length:]) for mark in marks):
            return length
    return 0

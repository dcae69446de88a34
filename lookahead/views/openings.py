"""Watches text as it streams for the openings that matter."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple

import ahocorasick

__all__ = ["Opening", "Watcher"]


class Opening(NamedTuple):
    """An opening that was met: its text, and where the text behind it begins, in bytes from the start of the stream."""

    text: str
    end: int


class Watcher:
    """Finds strings in a stream of bytes, whatever pieces it comes in (Aho and Corasick 1975).

    The cost is linear in the stream and does not depend on how many strings are watched for. An opening may begin in
    what stands before the stream.
    """

    def __init__(self, openings: Iterable[str], before: bytes = b"") -> None:
        self._automaton = _automaton(frozenset(openings))
        self._search = self._automaton.iter("") if len(self._automaton) else None
        self._before = 0
        self.feed(before)
        self._before = len(before)

    def feed(self, piece: bytes) -> list[Opening]:
        """Go on with the next bytes; return the openings that end in them."""
        if self._search is None:
            return []
        self._search.set(_as_text(piece))
        return [Opening(opening, end + 1 - self._before) for end, opening in self._search]


@lru_cache(32)
def _automaton(openings: frozenset[str]) -> Any:
    """Build the automaton of some strings; streams share it."""
    automaton = ahocorasick.Automaton()
    for opening in openings:
        automaton.add_word(_as_text(opening.encode()), opening)
    automaton.make_automaton()
    return automaton


def _as_text(data: bytes) -> str:
    """Return bytes as the characters of the same numbers, so that offsets count bytes."""
    return data.decode("latin-1")

"""What is known to come next without a copy: words of formats, and phrases; each a document of its own."""

from __future__ import annotations

from ..views.phrases import Phrases
from .candidates import Hint
from .shelf import Shelf

__all__ = ["DICTATED", "RULE", "Dictation"]

RULE = "rule"  # the kind of a hint that some format gives; others are named as the source of their documents
DICTATED, _PHRASE = 8, 4  # match lengths after which a guess is right as often as these hints


class Dictation:
    """Follows the answer of one sequence, and writes what is dictated when it is wanted for the first time."""

    def __init__(self, shelf: Shelf, phrases: Phrases | None) -> None:
        self._shelf = shelf
        self._phrases = phrases
        self._watcher = None if phrases is None else phrases.watcher()
        self._said: dict[str, int] = {}
        self._written: dict[int, int] = {}
        self._heard = 0

    def say(self, text: str, source: str = "format") -> int:
        """Return the position of a document with this text."""
        if text not in self._said:
            with self._shelf.aside():
                self._said[text] = self._shelf.write_fixed(text, source)
        return self._said[text]

    def hear(self, piece: bytes) -> list[Hint]:
        """Go on with the bytes that were said; return the phrases that have just been opened."""
        if self._phrases is None or self._watcher is None:
            return []
        self._heard += len(piece)
        found = self._watcher.feed(piece)
        if not found:
            return []
        hints = []
        for opening in found:
            behind = piece[len(piece) - (self._heard - opening.end) :]
            for number in self._phrases.opened(opening.text):
                token = self._phrases[number].token(behind)
                if token >= 0:
                    hints.append((self._write(number) + token, _PHRASE, "phrase"))
        return hints

    def _write(self, number: int) -> int:
        """Return the position of the document of a phrase."""
        if number not in self._written and self._phrases is not None:
            with self._shelf.aside():
                self._written[number] = self._shelf.write(self._phrases[number].ids, "phrase")
        return self._written[number]

"""What is known to come next without a copy: words of formats, keys of tools, phrases; each a document of its own."""

from __future__ import annotations

from ..views.calls import Calls
from ..views.dialects import Dialect
from ..views.openings import Opening
from ..views.phrases import Phrases
from ..views.tokens import Tokens
from .candidates import Hint
from .shelf import Shelf

__all__ = ["DICTATED", "RULE", "Dictation"]

RULE = "rule"  # the kind of a hint that some format gives; others are named as the source of their documents
DICTATED, _SECOND, _PHRASE = 8, 4, 4  # match lengths after which a guess is right as often as these hints


class Dictation:
    """Follows the answer of one sequence, and writes what is dictated when it is wanted for the first time."""

    def __init__(self, shelf: Shelf, tokens: Tokens, phrases: Phrases | None) -> None:
        self._shelf = shelf
        self._tokens = tokens
        self._keys_said: list[tuple[str, int]] = []
        self._phrases = phrases
        self._watcher = None if phrases is None else phrases.watcher()
        self._said: dict[str, int] = {}
        self._written: dict[int, int] = {}
        self._heard = 0
        self._calls = Calls("")

    def say(self, text: str, source: str = "format") -> int:
        """Return the position of a document with this text."""
        if text not in self._said:
            with self._shelf.aside():
                self._said[text] = self._shelf.write_fixed(text, source)
        return self._said[text]

    def begin(self, prompt: str, dialects: list[Dialect], last: bytes) -> list[Hint]:
        """Take in a prompt, the ways of calling tools that it shows, and its last bytes; return what comes next."""
        self._calls = Calls(prompt)
        return self._keys(self._calls.begin(dialects)) + self._opened(last)

    def hear(self, piece: bytes, openings: list[Opening], text: bytearray) -> list[Hint]:
        """Return what comes next after a piece of the text, in which some openings end."""
        return self._keys(self._calls.feed(piece, openings, text)) + self._opened(piece)

    def _keys(self, texts: list[str]) -> list[Hint]:
        """Write what the schema of a tool says, if it is not written; return where it stands."""
        if not texts:
            return []
        before, self._keys_said = self._keys_said, []
        hints: list[Hint] = []
        for text in texts:
            whole, skipped = next((found for one in before if (found := self._rest_of(*one, text))), (text, 0))
            self._keys_said.append((whole, len(whole.encode()) - len(text.encode())))
            place = self.say(whole, "schema") + skipped
            hints.append((place, DICTATED if not hints else _SECOND, "schema"))
        return hints

    def _rest_of(self, whole: str, said: int, rest: str) -> tuple[str, int] | None:
        """Return a text that is written, and how many of its tokens stand before what is left of it, if they fit."""
        text = whole.encode()
        begin = len(text) - len(rest.encode())
        if begin < said or not whole.endswith(rest):
            return None
        begins = self._tokens.begins(text, self._tokens.encode_fixed(whole))
        return (whole, begins.index(begin)) if begin in begins else None

    def _opened(self, piece: bytes) -> list[Hint]:
        """Go on with the bytes that were said; return the phrases that have just been opened."""
        if self._phrases is None or self._watcher is None:
            return []
        self._heard += len(piece)
        hints = []
        for opening in self._watcher.feed(piece):
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

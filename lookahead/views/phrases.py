"""Texts that are known to come up, whatever the prompt: each is to be said from its opening of a few tokens on."""

from __future__ import annotations

import weakref
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .openings import Watcher
from .tokens import Tokens

__all__ = ["Phrase", "Phrases"]

_TOKENS = 3  # of an opening, at least
_CHARACTERS = 6  # of an opening that are no blanks, at least
_MOST = 4  # phrases that are thought of at one opening
_KEPT = 8  # sets of phrases that stay prepared for a tokenizer

_made: weakref.WeakKeyDictionary[Tokens, dict[tuple[str, ...], Phrases]] = weakref.WeakKeyDictionary()


class Phrase(NamedTuple):
    """A phrase as bytes and as tokens.

    Attributes
    ----------
    text : bytes
        The phrase in UTF-8.
    ids : int32 [n]
        Its tokens.
    offsets : list of int, length n
        The byte at which each token begins.
    opening : int
        Bytes of its opening.
    """

    text: bytes
    ids: NDArray[np.int32]
    offsets: list[int]
    opening: int

    def token(self, opened: bytes | bytearray) -> int:
        """Return the token that comes next where this was said behind the opening, -1 where no token begins there."""
        at = self.opening + len(opened)
        if at >= len(self.text) or self.text[self.opening : at] != opened or at not in self.offsets:
            return -1
        return self.offsets.index(at)


class Phrases:
    """Phrases that are prepared for a tokenizer once, and shared by all sequences.

    Parameters
    ----------
    texts : sequence of str
        The phrases; where several open alike, the first ones count.
    tokens : Tokens
        The tokenizer border.
    """

    def __init__(self, texts: Sequence[str], tokens: Tokens) -> None:
        self._phrases = [
            _phrase(text, ids, tokens) for text, ids in zip(texts, tokens.encode_within(texts), strict=True)
        ]
        self._opened: defaultdict[str, list[int]] = defaultdict(list)
        for number, phrase in enumerate(self._phrases):
            opening = phrase.text[: phrase.opening].decode()
            if opening and len(self._opened[opening]) < _MOST:
                self._opened[opening].append(number)

    @classmethod
    def of(cls, texts: tuple[str, ...], tokens: Tokens) -> Phrases:
        """Return the phrases as they were prepared before, if they were."""
        known = _made.setdefault(tokens, {})
        if texts not in known:
            while len(known) >= _KEPT:
                known.pop([*known][0], None)  # another thread may have been faster
            known[texts] = cls(texts, tokens)
        return known[texts]

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._phrases)

    def __getitem__(self, number: int) -> Phrase:
        """Return a phrase by its number."""
        return self._phrases[number]

    def watcher(self) -> Watcher:
        """Return what finds the openings in a new stream."""
        return Watcher(self._opened)

    def opened(self, opening: str) -> list[int]:
        """Return the numbers of the phrases with an opening."""
        return self._opened[opening]


def _phrase(text: str, ids: NDArray[np.int32], tokens: Tokens) -> Phrase:
    """Cut a phrase into tokens, and choose its opening: a few of them, but not all."""
    said = text.encode()
    offsets = tokens.begins(said, ids)
    long = (at for at in offsets[_TOKENS:] if len(b"".join(said[:at].split())) >= _CHARACTERS)
    opening = next(long, offsets[-1] if offsets else 0)
    return Phrase(said, ids, offsets, len(said[:opening].decode("utf-8", "ignore").encode()))

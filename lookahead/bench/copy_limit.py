"""What copying can give at most."""

from __future__ import annotations

from ..tree import Accepted, Draft
from .ngrams import letters

__all__ = ["CopyLimit"]

_NO_TOKEN = 0x10FFFF  # stands between texts, so that no copy crosses from one to the next


class CopyLimit:
    """A perfect chooser: it knows what comes, and copies the longest piece of it that stands anywhere.

    Attributes
    ----------
    forms : list of list of int
        Other texts that it may copy from: the file as the answer's format writes it.
    """

    def __init__(self) -> None:
        self.forms: list[list[int]] = []
        self._text, self._rest = "", ""

    def begin(self, prompt: list[int]) -> None:
        """Start a sequence."""
        self._text = "".join(letters(ids) + chr(_NO_TOKEN) for ids in self.forms) + letters(prompt)

    def foresee(self, rest: list[int]) -> None:
        """Hear what comes."""
        self._rest = letters(rest)

    def propose(self, budget: int) -> Draft:
        """Draft the longest beginning of what comes that stands somewhere; it may overlap itself."""
        known, short, long = len(self._text), 0, min(budget, len(self._rest)) + 1
        while long - short > 1:
            middle = (short + long) // 2
            piece = self._rest[:middle]
            stands = (self._text + piece).find(piece, 0, known + middle - 1) >= 0
            short, long = (middle, long) if stands else (short, middle)
        return Draft.chain([ord(letter) for letter in self._rest[:short]])

    def accept(self, accepted: Accepted) -> None:
        """Take in what was said."""
        self._text += letters(accepted.tokens)

"""The rule of prompt lookup and of n-gram speculation, written anew, fast and without torch."""

from __future__ import annotations

from collections.abc import Sequence

from ..tree import Accepted, Draft

__all__ = ["Ngrams", "letters"]


def letters(ids: Sequence[int]) -> str:
    """Return ids as a string of one letter each, which is searched faster than any list."""
    return "".join(map(chr, ids))


class Ngrams:
    """The longest end of the text that stands further ahead, where it does so first, and what follows there.

    With `least` 1 it drafts what transformers' ``PromptLookupCandidateGenerator`` does with ``max_matching_ngram_size``
    of `most`, else what vLLM's ``ngram_proposer`` does.

    Parameters
    ----------
    least, most : int
        How many tokens the end has.
    tokens : int, optional
        Most tokens of a draft; those of the budget when left out.
    """

    def __init__(self, least: int = 5, most: int = 5, tokens: int | None = None) -> None:
        self._least, self._most, self._tokens, self._text = least, most, tokens, ""

    def begin(self, prompt: list[int]) -> None:
        """Start a sequence."""
        self._text = letters(prompt)

    def propose(self, budget: int) -> Draft:
        """Draft a chain."""
        size = budget if self._tokens is None else min(budget, self._tokens)
        for length in range(min(self._most, len(self._text) - 1), self._least - 1, -1):
            found = self._text.find(self._text[-length:], 0, -1)
            if found >= 0:
                start = found + length
                return Draft.chain([ord(letter) for letter in self._text[start : start + size]])
        return Draft.empty()

    def accept(self, accepted: Accepted) -> None:
        """Take in what was said."""
        self._text += letters(accepted.tokens)

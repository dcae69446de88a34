"""Identifiers that an answer replaces, learnt from its lines against the lines that they were copied from."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence

__all__ = ["Renames"]

_WORDS = re.compile(r"\w+|\W")
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|_+|[^\W\d_]+")
_CONFIRMED = 2
_MOST = 1000  # pairs of words; an answer with more is no rename


class Renames:
    """Which identifiers were replaced by which, and how the lines still to come would read.

    A rule for a whole word holds once it was seen twice (used after one sighting, rules hurt). A rule for a part of
    words, in all its cases (foo_x, Foo, FOO), holds once it was seen in two different words. A rule whose old name
    comes up unchanged is forgotten for good.

    Attributes
    ----------
    words, parts : dict of str
        The rules that hold: old name to new name; parts in small letters.
    """

    def __init__(self) -> None:
        self.words: dict[str, str] = {}
        self.parts: dict[str, str] = {}
        self._seen_words: Counter[tuple[str, str]] = Counter()
        self._seen_parts: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
        self._failed: set[str] = set()

    def __bool__(self) -> bool:
        """Whether any rule holds."""
        return bool(self.words or self.parts)

    def learn(self, source: str, said: str) -> bool:
        """Compare a line with the line that it was copied from; return whether the rules changed."""
        old, new = _WORDS.findall(source), _WORDS.findall(said)
        pairs = [(one, other) for one, other in zip(old, new, strict=False) if one != other]
        names = all(one.isidentifier() and other.isidentifier() for one, other in pairs)
        if len(old) != len(new) or not names or 2 * len(pairs) > len(old):
            return False
        self._fail({one for one, other in zip(old, new, strict=True) if one == other})
        if len(self._seen_words) > _MOST:
            return False
        for one, other in pairs:
            self._seen_words[one, other] += 1
            core = _core(one, other)
            if core is not None:
                self._seen_parts[core].add(one)
        before = self.words, self.parts
        self.words = {
            one: other
            for (one, other), count in reversed(self._seen_words.most_common())
            if count >= _CONFIRMED and one not in self._failed
        }
        self.parts = {
            one: other
            for (one, other), words in self._seen_parts.items()
            if len(words) >= _CONFIRMED and one not in self._failed
        }
        return before != (self.words, self.parts)

    def apply(self, lines: Sequence[str]) -> list[str]:
        """Return lines as they would read, one for one."""
        return [re.sub(r"\w+", lambda match: self._new_name(match[0]), line) for line in lines]

    def _fail(self, kept: set[str]) -> None:
        """Forget the rules that would have changed words which stayed as they were."""
        self._failed |= {one for one, _ in self._seen_words if one in kept}
        if self._seen_parts:
            parts = {part.lower() for word in kept for part in _PARTS.findall(word)}
            self._failed |= {one for one, _ in self._seen_parts if one in parts}

    def _new_name(self, word: str) -> str:
        """Return what becomes of one word."""
        if word in self.words or not self.parts:
            return self.words.get(word, word)
        return _PARTS.sub(lambda match: _in_case(self.parts.get(match[0].lower()), match[0]), word)


def _core(old: str, new: str) -> tuple[str, str] | None:
    """Return, in small letters, the one part in which two words differ; None where it is not just one."""
    one, other = _PARTS.findall(old), _PARTS.findall(new)
    differing = [(left, right) for left, right in zip(one, other, strict=False) if left != right]
    if len(one) != len(other) or len(differing) != 1 or not all(part.isalpha() for part in differing[0]):
        return None
    return differing[0][0].lower(), differing[0][1].lower()


def _in_case(word: str | None, example: str) -> str:
    """Return a word of small letters in the case of an example, or the example where there is no word."""
    if word is None:
        return example
    if example.isupper() and len(example) > 1:
        return word.upper()
    return word.capitalize() if example[0].isupper() else word

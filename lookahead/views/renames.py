"""Identifiers that an answer replaces, learnt from its lines against the lines that they were copied from."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence

__all__ = ["Renames"]

_WORDS = re.compile(r"\w+|\W")
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|_+|[^\W\d_]+")
_CONFIRMED = 2
_LONGEST = 7  # parts of a name that are replaced as one, the lines between them included
_MOST = 1000  # pairs of words; an answer with more is no rename


class Renames:
    """Which identifiers were replaced by which, and how the lines still to come would read.

    A rule for a whole word holds once it was seen twice (used after one sighting, rules hurt). A rule for a part of
    words, in all its cases (foo_x, Foo, FOO), holds once it was seen in two different words; it may have another
    number of words than what replaces it (foo_x, Foo: bar_baz_x, BarBaz). A rule whose old name comes up unchanged is
    forgotten for good.

    Attributes
    ----------
    words, parts : dict of str
        The rules that hold: old name to new name; parts in small letters, with one ``_`` between two words.
    """

    def __init__(self) -> None:
        self.words: dict[str, str] = {}
        self.parts: dict[str, str] = {}
        self._seen_words: Counter[tuple[str, str]] = Counter()
        self._seen_parts: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
        self._failed: set[str] = set()
        self._suspects: set[str] = set()  # a line without these, in small letters, has no old name that was seen

    def __bool__(self) -> bool:
        """Whether any rule holds."""
        return bool(self.words or self.parts)

    def learn(self, source: str, said: str) -> bool:
        """Compare a line with the line that it was copied from; return whether the rules changed."""
        if source == said and not any(map(source.lower().__contains__, self._suspects)):
            return False
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
            self._suspects.add(one.lower())
            if core is not None:
                self._seen_parts[core].add(one)
                self._suspects.add(core[0].partition("_")[0])
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
            said = ["_".join(_words(_PARTS.findall(word))) for word in kept]
            parts = {part for word in said for part in word.split("_")}
            several = f"_{'__'.join(word for word in said if '_' in word)}_"
            self._failed |= {
                one for one, _ in self._seen_parts if one in parts or ("_" in one and f"_{one}_" in several)
            }

    def _new_name(self, word: str) -> str:
        """Return what becomes of one word."""
        if word in self.words or not self.parts:
            return self.words.get(word, word)
        parts, found, at = _PARTS.findall(word), list[str](), 0
        while at < len(parts):
            end, new = self._longest(parts, at)
            found.append(_in_case(new, parts[at:end], word) if new else parts[at])
            at = end
        return "".join(found)

    def _longest(self, parts: Sequence[str], at: int) -> tuple[int, str]:
        """Return where the longest part of a word ends that begins here and has a rule, and what replaces it."""
        for end in range(min(len(parts), at + _LONGEST), at, -1):
            new = self.parts.get("_".join(_words(parts[at:end])))
            if new and "_" not in (parts[at], parts[end - 1]):
                return end, new
        return at + 1, ""


def _words(parts: Sequence[str]) -> list[str]:
    """Return the words among the parts of a name, in small letters."""
    return [part.lower() for part in parts if part != "_"]


def _core(old: str, new: str) -> tuple[str, str] | None:
    """Return, in small letters, the part in which two names differ; None where it is more than words."""
    one, other = _PARTS.findall(old), _PARTS.findall(new)
    begin, most = 0, min(len(one), len(other))
    while begin < most and one[begin] == other[begin]:
        begin += 1
    end = 0
    while end < most - begin and one[-1 - end] == other[-1 - end]:
        end += 1
    middle, its = one[begin : len(one) - end], other[begin : len(other) - end]
    words = _words(middle), _words(its)
    if not all(words) or len(middle) > _LONGEST or "_" in (middle[0], middle[-1], its[0], its[-1]):
        return None
    if not all(word.isalpha() for word in (*words[0], *words[1])):
        return None
    return "_".join(words[0]), "_".join(words[1])


def _in_case(new: str, example: Sequence[str], word: str) -> str:
    """Write the words of a name as those that they replace are written in a word."""
    words, first = new.split("_"), example[0]
    if first.isupper() and len(first) > 1:
        return "_".join(words).upper() if word.isupper() else "".join(words).upper()
    if first[0].isupper():
        return "".join(map(str.capitalize, words))
    if "_" in word or word.islower():
        return "_".join(words)
    return words[0] + "".join(map(str.capitalize, words[1:]))

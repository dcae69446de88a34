"""The passages of a text that can pay in another form."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from .forms import FORMS, fenced, indented
from .forms.form import Passage, offsets, passages

_READERS = tuple(dict.fromkeys(form.read for form in FORMS))
_AS_SHOWN = (fenced.read, indented.read)  # what these find within a passage is but a part of its lines
_DEPTH = 2  # forms within a form that are looked for
_REPLACED = 0.6  # a passage goes when passages within it hold this share of it
_PREFIX = 16  # the longest number or prefix before a line's content that is looked for


def find(text: str, limit: int = 64, characters: int = 800_000) -> list[Passage]:
    """Find the passages that can pay, in the order of the text; `starts` refer to `text` at any depth.

    Where they hold less than half of the text, the text as a whole is one more, a plain one. No two have the same
    lines: the last one stays.

    Parameters
    ----------
    text : str
        A prompt, the result of a tool, ...
    limit : int
        Passages at most; the latest are kept.
    characters : int
        Characters of all lines at most; the latest are kept, and the earliest of those loses its first lines.

    """
    found = _within(text, _DEPTH, 4 * limit)
    kept = _latest(found, limit, characters)
    if not found or 2 * _Cover(found).of(0, len(text)) < len(text):
        lines = text.split("\n")
        kept += _latest(passages("plain", lines, offsets(lines)), limit - len(kept), characters - sum(map(_size, kept)))
    return sorted(reversed(kept), key=_first)


def _within(text: str, depth: int, limit: int) -> list[Passage]:
    """Find the passages of a text and those within them; what these replace is left out."""
    readers = [read for read in _READERS if depth == _DEPTH or read not in _AS_SHOWN]
    found = [passage for read in readers for passage in read(text)]
    found = sorted(found, key=_last)[max(0, len(found) - limit) :]
    cover = _Cover(passage for passage in found if not _is_as_shown(passage))
    kept: list[Passage] = []
    for passage in found:
        if _is_as_shown(passage):
            begin, end = _extent(passage)
            kept += [passage] if cover.of(begin, end) < _REPLACED * (end - begin) else []
        else:
            kept += _unfold(text, passage, depth, limit)
    return kept


def _unfold(text: str, passage: Passage, depth: int, limit: int) -> list[Passage]:
    """Return a passage with those in it, or these alone where they replace it."""
    if not depth:
        return [passage]
    inside = "\n".join(passage.lines)
    inner = _within(inside, depth - 1, limit)
    if not inner:
        return [passage]
    starts = offsets(passage.lines)
    outer = [_outward(text, passage, starts, each) for each in inner]
    return outer if _Cover(inner).of(0, len(inside)) >= _REPLACED * len(inside) else [passage, *outer]


def _outward(text: str, outer: Passage, offsets_within: Sequence[int], inner: Passage) -> Passage:
    """Let the starts of a passage within another refer to the text; within an escaped line they are near."""
    starts = []
    known = content = -1
    for start in inner.starts:
        line = bisect_right(offsets_within, start) - 1
        column = start - offsets_within[line]
        if column and line != known:
            known, content = line, _content(text, outer.starts[line], outer.lines[line])
        starts.append(content + column if column else outer.starts[line])
    return Passage(inner.form, inner.lines, tuple(starts))


def _content(text: str, start: int, line: str) -> int:
    """Find where the content of a line begins, whose number or prefix begins at `start`."""
    return next((at for at in range(start, start + _PREFIX + 1) if text.startswith(line, at)), start)


def _latest(found: Sequence[Passage], limit: int, characters: int) -> list[Passage]:
    """Keep passages, the last one first, until one does not fit as a whole."""
    kept: list[Passage] = []
    seen: set[tuple[str, ...]] = set()
    for passage in sorted(found, key=_last, reverse=True):
        if len(kept) >= limit:
            break
        if passage.lines in seen:
            continue
        seen.add(passage.lines)
        if _size(passage) > characters:
            return kept + _fit(passage, characters)
        kept.append(passage)
        characters -= _size(passage)
    return kept


def _fit(passage: Passage, characters: int) -> list[Passage]:
    """Take away first lines until the rest fits."""
    first = len(passage.lines)
    while characters > len(passage.lines[first - 1]):
        first -= 1
        characters -= len(passage.lines[first]) + 1
    return passages(passage.form, passage.lines[first:], passage.starts[first:])


def _size(passage: Passage) -> int:
    return sum(map(len, passage.lines)) + len(passage.lines)


def _is_as_shown(passage: Passage) -> bool:
    """Whether the lines stand in the text as they are, but for a shift: other readers look into them anyway."""
    return passage.form == "plain" or passage.form.startswith("indented")


def _first(passage: Passage) -> int:
    return passage.starts[0]


def _last(passage: Passage) -> tuple[int, int]:
    """Order by end; of two that end together the one within the other comes first."""
    begin, end = _extent(passage)
    return end, -begin


def _extent(passage: Passage) -> tuple[int, int]:
    """Return where a passage begins and ends in its text; the end of an escaped last line is near."""
    return passage.starts[0], passage.starts[-1] + len(passage.lines[-1])


class _Cover:
    """How much of any stretch of a text some passages hold."""

    def __init__(self, found: Iterable[Passage]) -> None:
        self._begins: list[int] = []
        self._ends: list[int] = []
        self._before: list[int] = []  # characters held by the stretches before
        total = 0
        for begin, end in sorted(map(_extent, found)):
            if self._ends and begin <= self._ends[-1]:
                total += max(0, end - self._ends[-1])
                self._ends[-1] = max(end, self._ends[-1])
            else:
                self._begins.append(begin)
                self._ends.append(end)
                self._before.append(total)
                total += end - begin

    def of(self, begin: int, end: int) -> int:
        """Count the characters between `begin` and `end` that the passages hold."""
        return self._up_to(end) - self._up_to(begin)

    def _up_to(self, place: int) -> int:
        index = bisect_right(self._begins, place) - 1
        return self._before[index] + min(place, self._ends[index]) - self._begins[index] if index >= 0 else 0

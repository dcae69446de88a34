"""Reads along in text: has views of known passages written when they can pay, and sees what the format says next."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import product

import numpy as np

from ..index.corpus import Corpus
from ..views.calls import CALLS
from ..views.dialects import Dialect, of_prompt
from ..views.forms import FORMS, form
from ..views.forms.escapes import NEWLINE
from ..views.forms.form import Form, Passage, surface
from ..views.hunks import HEADER, Hunks, Line
from ..views.listings import Listings
from ..views.openings import Opening, Watcher
from ..views.pairs import PAIRS
from ..views.passages import find
from ..views.phrases import Phrases
from ..views.renames import Renames
from ..views.shifts import Shifts
from ..views.skeletons import named_blocks, skeletons
from ..views.strings import Strings
from ..views.tokens import Tokens
from .candidates import Hint
from .dictation import DICTATED, RULE, Dictation
from .shelf import Shelf, Surface, View, character_offsets
from .stream import Stream

__all__ = ["Reader"]

_LINE = 6  # match length after which a guess is right as often as this rule
_CHARACTERS = 200_000  # most that is written at one opening
_MARGIN = 16  # lines before and behind those that a hunk promises; 4 take 20 us less and 1 % more forwards
_MOST = 256  # views of one sequence
_NAMED = 400  # bytes of the answer in which it may have named a file
_ALL = slice(0, None)
_BEFORE = 64  # characters at the end of a prompt that may begin what is dictated
_HOLDERS = 4  # passages of one line that are written as a string has them
_BEHIND = 8  # tokens before a corresponding place where the copy may go on as well
_WANTED = {
    opening: [wanted for wanted in FORMS if opening in wanted.openings] for each in FORMS for opening in each.openings
}
_QUOTED = {quote: [wanted for wanted in FORMS if wanted.quote == quote] for quote in {each.quote for each in FORMS}}
_REPEATS = {second: first for first, second in PAIRS}


class Reader:
    """Follows the text of one sequence, and adds to its corpus the forms in which its passages may be said again.

    A hint is a place that comes next by the rules of a format, with the match length that such a guess is worth and the
    kind under which it is measured; it holds for the next token only.
    """

    def __init__(self, corpus: Corpus, tokens: Tokens) -> None:
        self._corpus = corpus
        self._tokens = tokens
        self._shelf = Shelf(corpus, tokens)
        self._dictation = Dictation(self._shelf, tokens, None)
        self._prompt = ""
        self._dialects: list[Dialect] = []
        self._passages: list[Passage] = []
        self._sources: list[str] = []
        self._written: set[tuple[str, int]] = set()
        self._files: dict[str, list[int]] = {}
        self._named = ""
        openings = {*_WANTED, *CALLS, NEWLINE, *(opening for pair in PAIRS for opening in pair)}
        self._watcher = Watcher(openings, b"\n")  # an answer begins a line
        self._strings = Strings()
        self._opened: dict[str, int] = {}
        self._stream = Stream()
        self._hunks = Hunks()
        self._awaited: list[Form] = []
        self._line = 0
        self._promised, self._part = self._hunks.promised, slice(0)
        self._shifts, self._listings = Shifts(), Listings()
        self._renames = Renames()
        self._renamed = -1
        self._stale, self._renamings, self._next_renamed = False, 0, 0
        self._compared = 0
        self._expected = -1
        self._hints: list[Hint] = []

    # ---- What is known before the answer ----

    def begin(self, prompt: list[int], prediction: list[int], phrases: Phrases | None = None) -> list[Hint]:
        """Put prediction and prompt into the corpus, behind the views that any answer may need; return the hints."""
        pieces = self._tokens.pieces(prompt)
        text = b"".join(pieces).decode("utf-8", "replace")
        blocks, self._prompt, self._dialects = named_blocks(text), text, of_prompt(text)
        for skeleton in skeletons([path for _, path in blocks], self._dialects):
            self._shelf.write_fixed(skeleton)
        if prediction:
            expected = self._tokens.pieces(prediction)
            found = self._find(b"".join(expected).decode("utf-8", "replace"), "prediction")
            self._write_plain(found)
            self._corpus.begin("prediction")
            self._expected = len(self._corpus)
            self._take(prediction, expected, found)
        found = self._find(text, "prompt")
        self._write_plain(found)
        self._corpus.begin("prompt")
        self._take(prompt, pieces, found)
        self._file(found, blocks)
        if prediction:
            self._hint(self._expected, DICTATED)
        return self.start(phrases)

    def start(self, phrases: Phrases | None) -> list[Hint]:
        """Begin the answer; return the hints."""
        self._dictation = Dictation(self._shelf, self._tokens, phrases)
        last = self._prompt[-_BEFORE:].encode("utf-8", "replace")
        for hint in self._dictation.begin(self._prompt, self._dialects, last):
            self._hint(*hint)
        return self._hints

    def resume(self, ids: list[int]) -> None:
        """Read on in a prompt of which only the beginning was read; no answer has begun."""
        pieces = self._tokens.pieces(ids)
        text = b"".join(pieces).decode("utf-8", "replace")
        blocks, found = named_blocks(text), self._find(text, "prompt")
        self._prompt += text
        self._dialects = of_prompt(self._prompt)
        with self._shelf.aside("prompt"):
            for skeleton in skeletons([path for _, path in blocks], self._dialects):
                self._shelf.write_fixed(skeleton)
            self._write_plain(found)
        self._corpus.relabel("prompt")
        self._take(ids, pieces, found)
        self._file(found, blocks)

    def fork(self, corpus: Corpus) -> Reader:
        """Return a reader of a copy of the corpus that has read the same prompt; no answer has begun."""
        other = Reader(corpus, self._tokens)
        other._shelf, other._shifts = self._shelf.fork(corpus), self._shifts.fork()
        other._prompt, other._dialects = self._prompt, self._dialects
        other._passages, other._sources = self._passages.copy(), self._sources.copy()
        other._files, other._written = {path: known.copy() for path, known in self._files.items()}, self._written.copy()
        return other

    def _find(self, text: str, source: str) -> range:
        """Find the passages of a text; return their numbers."""
        first = len(self._passages)
        self._passages += [passage for passage in find(text) if _is_whole(passage, text)]
        found = range(first, len(self._passages))
        self._sources += [source] * len(found)
        self._written |= {("plain", number) for number in found}
        for number in found:
            self._shifts.add(self._passages[number].lines)
        return found

    def _write_plain(self, found: range) -> None:
        """Write the plain forms of passages that are not plain."""
        known = [(number, self._passages[number]) for number in found]
        changed = [(number, passage) for number, passage in known if passage.form != "plain"]
        self._shelf.add([self._surface(number, "plain", passage.form, passage.lines) for number, passage in changed])

    def _take(self, ids: list[int], pieces: list[bytes], found: range) -> None:
        """Put a text, and with it its plain passages, into the corpus."""
        begin, characters = len(self._corpus), character_offsets(pieces)
        self._corpus.extend(ids)
        for number in found:
            passage = self._passages[number]
            if passage.form == "plain":
                at = np.searchsorted(characters, passage.starts) + begin
                self._shelf.register(View(number, "plain", [*at.tolist(), int(at[-1]) + 1]))

    def _file(self, found: range, blocks: list[tuple[int, str]]) -> None:
        """Note which passages of the prompt lie in the block of a file; what follows is the answer."""
        starts = [at for at, _ in blocks]
        for number in found:
            block = bisect_right(starts, self._passages[number].starts[0]) - 1
            if block >= 0:
                self._files.setdefault(blocks[block][1], []).append(number)
        self._corpus.relabel("output")

    def _surface(self, number: int, written: str, name: str, lines: Sequence[str], first: int = 0) -> Surface:
        """Write lines of a passage in a form; what comes from a prediction keeps that name."""
        source = "prediction" if self._sources[number] == "prediction" else f"view:{name}"
        return Surface(number, written, source, *surface(form(written), lines), first)

    # ---- The answer ----

    def hear(self, ids: list[int], pointer: int) -> list[Hint]:
        """Read what was said, which the corpus holds already; return the hints for what comes next.

        Parameters
        ----------
        ids : list of int
            What was said since the last time.
        pointer : int
            Position behind the last token that was copied, -1 when none was.
        """
        pieces = self._tokens.pieces(ids)
        piece = b"".join(pieces)
        self._stream.add(pieces, len(self._corpus) - len(ids))
        self._hints = []
        number = self._shelf.remember(pointer)
        openings = self._watcher.feed(piece)
        for opening in openings:
            self._open(opening)
        inside, guess = self._hunks.inside, self._hunks.feed(piece)
        while self._awaited and (newline := self._stream.text.find(b"\n", self._line)) >= 0:
            self._write_hunk(bytes(self._stream.text[self._line : newline]).decode("utf-8", "replace"))
            self._line = newline + 1
        if isinstance(guess, Line):
            self._hint_line(guess)
        elif guess is not None:
            self._hint(self._dictation.say(guess.text), DICTATED)
        if number >= 0:
            self._compare_lines(self._shelf.views[number], pointer)
        if b"\n" in piece and not inside and not self._hunks.inside:
            self._compare_shifts(piece)
        self._expect(piece, pointer)
        for hint in self._dictation.hear(piece, openings, self._stream.text):
            self._hint(*hint)
        return self._hints

    def near(self, pointer: int) -> list[tuple[int, int]]:
        """Return places near which the copy may go on, the likeliest first, and how far before them to look.

        Under the new names first, then where it was going, then in the other forms.
        """
        places, number = [(pointer, 0)], self._shelf.at(pointer)
        if self._renamed >= 0 and number not in (-1, self._renamed):
            view, other = self._shelf.views[number], self._shelf.views[self._renamed]
            if view.passage == other.passage:
                places.insert(0, (other.place(view.line(pointer)), _BEHIND))
        return places + [(place, _BEHIND) for place in self._shelf.corresponding()]

    def _expect(self, piece: bytes, pointer: int) -> None:
        """Point at the start of the prediction until it is copied from: at once, and after a line (such as a fence)."""
        begun = pointer > self._expected >= 0 and pointer > self._corpus.first
        if begun and self._corpus.source(pointer - 1) == "prediction":
            self._expected = -1
        if self._expected >= 0 and piece.endswith(b"\n"):
            self._hint(self._expected, DICTATED)

    def _open(self, opening: Opening) -> None:
        """Do what an opening asks for: write the forms that begin, or point at what is said again."""
        forms = _WANTED.get(opening.text, [])
        if opening.text == HEADER:
            self._awaited, self._part, self._line = forms, slice(0), opening.end
        elif forms:
            self._write(forms, self._meant())
        elif opening.text == NEWLINE:
            self._notice(opening.end)
        first = _REPEATS.get(opening.text)
        if first in self._opened:
            said_since = len(self._stream.text) - opening.end
            self._hint(self._stream.position(self._opened[first] + said_since), DICTATED)
        self._opened[opening.text] = opening.end

    def _write(self, forms: list[Form], meant: list[int], part: slice = _ALL) -> None:
        """Write passages in some forms, the likeliest first; the first form comes last.

        Of each all lines or a part.
        """
        missing = [pair for pair in product(reversed(forms), meant) if (pair[0].name, pair[1]) not in self._written]
        left, surfaces = _CHARACTERS, dict[str, Surface]()
        for wanted, number in missing:
            passage = self._passages[number]
            if passage.form == wanted.name:
                continue
            if part == _ALL:
                self._written.add((wanted.name, number))
            one = self._surface(number, wanted.name, wanted.name, passage.lines[part], part.start)
            left -= len(one.text)
            if left >= 0 and one.starts:
                surfaces.setdefault(one.text, one)
        if surfaces:
            with self._shelf.aside():
                self._shelf.add(list(surfaces.values()))

    def _write_hunk(self, line: str) -> None:
        """At the end of a hunk's header, write the lines that it promises, and some around.

        Where it has no numbers, or the first old line is none of these (models often count wrongly), write everything;
        of a new file only what some line of it is known from.
        """
        promised = self._hunks.promised
        if promised.stop < 0:
            holders = self._shifts.holders(line[1:]) if line.startswith("+") else []
            self._write([form("added")], holders[: -_HOLDERS - 1 : -1])
            return
        if self._part.stop:
            if line.startswith("+"):
                return
            near = (self._passages[number].lines[self._part] for number in self._meant())
            whole = not any(line[1:] in lines for lines in near)
        else:
            whole, self._promised = promised is self._promised, promised
            self._part = slice(max(0, promised.start - _MARGIN), promised.stop + _MARGIN)
            if not whole:
                self._write(self._awaited, self._meant(), self._part)
                return
        if whole:
            self._write(self._awaited, self._meant())
        self._awaited = []

    def _notice(self, end: int) -> None:
        """Write the passages that hold the line before an escaped newline, as such a string has them."""
        quote, line = self._strings.line(self._stream.text, end)
        if quote and (holders := self._shifts.holders(line)):
            self._write(_QUOTED.get(quote, []), holders[: -_HOLDERS - 1 : -1])

    def _meant(self) -> list[int]:
        """Return the passages of the file that the answer named last, or all, the latest first."""
        said = bytes(self._stream.text[-_NAMED:]).decode("utf-8", "replace")
        self._named = max((path for path in self._files if path in said), key=said.rfind, default=self._named)
        everything = range(len(self._passages))
        return list(reversed(self._files.get(self._named, everything)))

    # ---- Hints ----

    def _hint(self, position: int, worth: int, kind: str = RULE) -> None:
        """Note a place that may come next."""
        if self._corpus.first <= position < len(self._corpus):
            self._hints.append((position, worth, kind))

    def _hint_line(self, guess: Line) -> None:
        """Note the line that a diff goes to; its first token may have been said with the newline before it."""
        position = self._shelf.line(guess.form, guess.number)
        if position >= 0:
            place, length = self._corpus.nearest(position, 8, 24)
            self._hint(place if length else position, _LINE)

    # ---- Renames ----

    def _compare_lines(self, view: View, pointer: int) -> None:
        """Learn from the lines that were finished since the last time, against the lines that they were copied from."""
        written = form(view.form)
        *said, rest = self._stream.text[self._compared :].decode("utf-8", "replace").split(written.joint)
        if not said:
            return
        self._compared = len(self._stream.text) - len(rest.encode())
        lines, current, changed = self._passages[view.passage].lines, view.line(pointer), False
        for back, line in enumerate(reversed(said), 1):
            if 0 <= current - back < len(lines):
                source = written.write([lines[current - back]])[0]
                if source != line or self._renames:
                    changed |= self._renames.learn(source, line)
        self._stale |= changed
        if self._stale and current >= self._next_renamed:
            self._write_renamed(view, max(0, current - 1))
            self._stale, self._renamings = False, self._renamings + 1
            self._next_renamed = current + 2**self._renamings // 2  # the total stays near linear

    def _write_renamed(self, view: View, line: int) -> None:
        """Write what is left of a view under the names that the answer gives."""
        if self._renamed >= 0:
            self._shelf.dismiss(self._renamed)
            self._renamed = -1
        left = self._passages[view.passage].lines[line:]
        if self._renames and left:
            with self._shelf.aside():
                renamed = self._surface(view.passage, view.form, "renamed", self._renames.apply(left), line)
                self._renamed = self._shelf.add([renamed])

    # ---- Indentation and numbers ----

    def _compare_shifts(self, piece: bytes) -> None:
        """Have a passage written as the answer indents it, once two of its lines came so, or as it numbers a line."""
        text = self._stream.text
        begin = text.rfind(b"\n", 0, len(text) - len(piece)) + 1
        for line in bytes(text[begin:]).decode("utf-8", "replace").split("\n")[:-1]:
            for number, columns in self._shifts.learn(line):
                tabs = "t" if line[:columns] == columns * "\t" else ""
                name = f"indented_{columns}{tabs}" if columns > 0 else f"dedented_{-columns}"
                if (name, number) not in self._written and len(self._written) < _MOST:
                    self._written.add((name, number))
                    self._write_lines(number, name, name, _ALL)
            for listed in self._listings.learn(line):
                for number in self._shifts.holders(listed.content)[-_HOLDERS:]:
                    usual, lines = (listed.usual, number) in self._written, self._passages[number].lines
                    part = self._listings.part(listed, number, lines, usual)
                    if part is not None:
                        self._write_lines(number, listed.form, "numbered", part)

    def _write_lines(self, number: int, written: str, name: str, part: slice) -> None:
        """Write lines of a passage in a form that no word opens."""
        with self._shelf.aside():
            lines = self._passages[number].lines[part]
            self._shelf.add([self._surface(number, written, name, lines, part.start)])


def _is_whole(passage: Passage, text: str) -> bool:
    """Tell whether a passage can be what an answer copies: of indented blocks, only those that fill their fence."""
    if not passage.form.startswith("indented"):
        return True
    before = text[max(0, passage.starts[0] - 200) : passage.starts[0]].rstrip()
    return not before or before.rpartition("\n")[2].lstrip().startswith(("```", "~~~"))

"""The drafter: reads what is said, proposes what comes next, learns what became of it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..index.corpus import Corpus
from ..index.suffix_tree import token_array
from ..options import Options
from ..tree import Accepted, Draft
from ..views.phrases import Phrases
from ..views.tokens import Tokens
from .calibration import Calibration
from .candidates import Candidates, Hint, ranked
from .cost import cost_of
from .dictation import DICTATED, RULE
from .foreign import Foreign
from .growth import grow
from .memory import Memory
from .policy import Policy
from .reader import Reader
from .recycling import KEPT, Successors

__all__ = ["Drafter"]

_CHILDREN = 8
_LONGEST = 1024  # tokens of a match that are counted when somebody asks
_WAKES = 16  # tokens of a match that end a pause, once for each copy


class Drafter:
    """Proposes drafts for one sequence, without a model: ``begin`` once, then ``propose`` and ``accept`` in turn.

    Parameters
    ----------
    tokenizer : PreTrainedTokenizerBase, optional
        With it copies are found through other surface forms (escaped, numbered, in a diff ...) and under new names, and
        `begin` takes text. Without it drafting works on the token ids alone.
    **options
        The fields of `Options`.

    Attributes
    ----------
    tree : bool
        Whether drafts may branch; the option's value to begin with.
    context : int
        Tokens said so far, the prompt's included.
    vocabulary : int
        Ids from here on are never drafted: the model does not know them.
    calibration : Calibration
        What became of earlier guesses; may be shared with other drafters.
    policy : Policy
        Says how much to draft; may be shared with other drafters of the same model.
    successors : Successors
        What the model almost said; may be shared with other drafters of the same model.
    memory : Memory or None
        Earlier requests to copy from and to go on with; shared with the other drafters of a session.

    Examples
    --------
    >>> drafter = Drafter()
    >>> drafter.begin([1, 2, 3, 4, 5, 6, 1, 2, 3])
    >>> drafter.propose(2).tokens.tolist()
    [4, 5]
    >>> drafter.accept([4, 5, 9])
    """

    def __init__(self, tokenizer: Any = None, **options: Any) -> None:
        self._tokenizer = tokenizer  # kept alive for the tokens
        self._tokens = None if tokenizer is None else Tokens.of(tokenizer)
        self._begun = False
        self.vocabulary = 2**31
        self._reader: Reader | None = None
        self._options = Options.of(options)
        self._phrases = self._prepare(self._options.phrases)
        self._recycles = self._options.recycling and self._options.budget > 0
        self.calibration = Calibration()
        self.policy = Policy(cost_of(self._options.cost, self._options.budget))
        self.successors = Successors()
        self._waiting: list[int] = []
        self.context, self._drafting = 0, 0.0
        self._corpus = Corpus(max_bytes=self._options.max_bytes)
        self._draft = Draft.empty()
        self._candidates: Candidates | None = None  # None where no draft was thought of
        self._last = 0
        self._places = np.empty(0, np.int64)
        self._hints: list[Hint] = []
        self._pointer = -1
        self.tree = self._options.tree
        self.memory: Memory | None = None
        self._foreign: list[Foreign] = []
        self._said: list[int] = []  # what the memory does not know yet

    def _prepare(self, phrases: Sequence[str]) -> Phrases | None:
        """Cut the phrases into tokens, once for each tokenizer."""
        if not phrases:
            return None
        if self._tokens is None:
            raise ValueError(
                f"got {len(phrases)} phrases but no tokenizer; allowed are phrases with one, which cuts them into "
                "tokens: make the Drafter (the Lookahead) with the model's tokenizer"
            )
        return Phrases.of(tuple(phrases), self._tokens)

    def begin(self, prompt: ArrayLike | str, prediction: ArrayLike | str | None = None) -> None:
        """Start a sequence; an earlier one's text is forgotten, but not how often guesses were right.

        Parameters
        ----------
        prompt : int [length] or str
            The prompt's token ids; or its text, if the drafter has a tokenizer.
        prediction : int [length] or str, optional
            What the answer is expected to resemble, whether or not it stands in the prompt.

        Raises
        ------
        ValueError
            For ids that are no vector of integers from 0 to 2**31 - 1, or for text without a tokenizer.
        """
        said, expected = self.ids(prompt), self.ids(prediction)
        self.end()
        self._said = said
        if self.memory is None or expected:
            self._start(said, expected)
        else:
            self._resume(self.memory, said)
        if self.memory is not None:
            self._foreign = self.memory.foreign()
            for text in self._foreign:
                text.hear(said)
        self._draft, self._pointer = Draft.empty(), -1
        self._candidates, self._waiting, self.context = None, [], len(said)
        self._last = said[-1] if said else 0
        self._begun = True

    def _start(self, said: list[int], expected: list[int]) -> None:
        """Read a prompt and what is expected from the beginning."""
        corpus = Corpus(max_bytes=self._options.max_bytes)
        reader = None if self._tokens is None else Reader(corpus, self._tokens)
        if reader is not None:
            self._hints = reader.begin(said, expected, self._phrases)
        else:
            for source, ids in (("prediction", expected), ("prompt", said)):
                corpus.begin(source)
                corpus.extend(ids)
            corpus.relabel("output")
            self._hints = [(0, DICTATED, RULE)] if expected else []
        self._corpus, self._reader = corpus, reader

    def _resume(self, memory: Memory, said: list[int]) -> None:
        """Read what is new in a prompt that begins as an earlier one, or all of it."""
        started, known = memory.resume(said, self._options.max_bytes)
        if started is None:
            self._start(said, [])
            memory.keep(said, self._corpus, self._reader)
        else:
            self._corpus, self._reader = started
            self._hints = [] if self._reader is None else self._reader.start(self._phrases)
            self._said = said[known:]

    def end(self) -> None:
        """Give what was said to the memory; `begin` does that for a sequence that was left open."""
        if self.memory is not None and self._said:
            self.memory.add(self._said)
        self._said = []

    def ids(self, text: ArrayLike | str | None) -> list[int]:
        """Return token ids, given as they are or as text; None gives none.

        Raises
        ------
        ValueError
            For ids that are no vector of integers from 0 to 2**31 - 1, or for text without a tokenizer.
        """
        if text is None:
            return []
        if isinstance(text, str):
            if self._tokens is None:
                raise ValueError(
                    "got text but no tokenizer; pass token ids, or make the Drafter (the Lookahead) with a tokenizer"
                )
            text = self._tokens.encode(text)
        ids: list[int] = token_array(text).tolist()
        return ids

    def propose(self, budget: int | None = None) -> Draft:
        """Return the draft that best continues the sequence, of at most `budget` tokens and never more than the option.

        Raises
        ------
        ValueError
            For a negative budget.
        """
        started, size = time.perf_counter(), self.allowed(budget)
        if self.policy.pauses:
            draft = self.consider(0, 1.0)
        else:
            size = self.policy.most(size)
            draft = self.consider(size, self.policy.least(size))
            draft = self.cut(self.policy.size(draft.probs))
        self._drafting = time.perf_counter() - started
        return draft

    def allowed(self, budget: int | None) -> int:
        """Return the most tokens of a draft, as `propose` takes them."""
        if budget is not None and (isinstance(budget, bool) or not isinstance(budget, (int, np.integer))):
            raise TypeError(f"budget={budget!r} is of type {type(budget).__name__}; allowed is an int, 0 and above")
        size = self._options.budget if budget is None else min(int(budget), self._options.budget)
        if size < 0:
            raise ValueError(f"budget={size} is negative; allowed is 0 (no draft) and above")
        return size

    def consider(self, size: int, least: float) -> Draft:
        """Return all that could pay: at most `size` tokens with a path probability of at least `least`.

        For rows that share a policy, as `Batch` has them: it has to be followed by `cut`.
        """
        self._draft, self._candidates = Draft.empty(), None
        if not self.policy.pauses:
            self._read()
            self._candidates = self.candidates()
            if size and len(self._corpus.tokens):
                self._draft, self._places = grow(
                    self._corpus,
                    self._candidates,
                    self.calibration.tables(self.successors),
                    budget=size,
                    width=_CHILDREN if self.tree else 1,
                    least=least,
                    vocabulary=self.vocabulary,
                )
        return self._draft

    def cut(self, size: int) -> Draft:
        """Return the first `size` tokens of what was considered; they are the draft then."""
        self._draft, self._places = self._draft.truncate(size), self._places[:size]
        return self._draft

    def origins(self, draft: Draft) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Tell where the tokens of the last draft, or of its first part, were copied from; before `accept`.

        Returns
        -------
        places : int64 [len(draft)]
            Tokens of its source before the place; -1 where there is no copy, or this is unknown.
        lengths : int64 [len(draft)]
            Tokens before it that are the same there, those of the draft included; -1 where there is no copy.
        """
        places, lengths = np.full(len(draft), -1, np.int64), np.full(len(draft), -1, np.int64)
        if self._candidates is None or not np.array_equal(draft.tokens, self._draft.tokens[: len(draft)]):
            return places, lengths  # somebody else's
        end, starts = len(self._corpus), self._candidates.places["position"]
        starts = starts[starts < end]
        for node, depth in enumerate(draft.depths.tolist()):
            place = int(self._places[node])
            if place >= end:
                places[node] = self._candidates.foreign(place)[1]
                continue
            copied = starts[starts + (depth - 1) % (end - starts) == place]  # a copy that meets the end repeats itself
            if place >= 0 and len(copied):
                places[node] = self._corpus.offset(place, draft.sources[node])
                lengths[node] = self._corpus.match_at(int(copied[0]), _LONGEST) + depth - 1
        return places, lengths

    def candidates(self) -> Candidates:
        """Return the places that the next draft would copy from, the best guess first."""
        near = [(self._pointer, 0)] if self._reader is None else self._reader.near(self._pointer)
        return ranked(self._corpus, self._hints, near, self.calibration, self._foreign)

    def accept(self, accepted: Accepted | ArrayLike) -> None:
        """Take in what the target emitted since the last draft.

        Parameters
        ----------
        accepted : Accepted, or int [m]
            The tokens that the target really emitted: the accepted ones and its own.

        Raises
        ------
        ValueError
            For ids that are no vector of integers from 0 to 2**31 - 1.
        RuntimeError
            Before the first `begin`.
        """
        if not self._begun:
            raise RuntimeError("nothing has begun; call begin(prompt) before accept(tokens)")
        if isinstance(accepted, Accepted):
            heard = accepted
        else:
            tokens = token_array(accepted).tolist()
            heard = Accepted(tokens, self._draft.follow(tokens))
        size, started = len(self._draft if heard.draft is None else heard.draft), time.perf_counter()
        self.hear(heard)
        self.policy.learn(len(heard.tokens), size)
        if heard.seconds is not None:
            drafting = self._drafting + time.perf_counter() - started
            self.policy.learn_times(len(heard.tokens), size, self.context, heard.seconds, drafting)

    def hear(self, accepted: Accepted) -> None:
        """Take in what the target emitted, but leave the policy to others."""
        tokens, last = accepted.tokens, self._last
        draft = self._draft if accepted.draft is None else accepted.draft
        self._take_in(tokens, accepted.path)
        if tokens and self._recycles and accepted.successors is not None and self.policy.listens:
            nodes, successors, shares = accepted.successors(KEPT)
            known = [*draft.tokens.tolist(), last]  # where -1 is the last one
            self.successors.learn([known[node] for node in nodes], successors, shares)
            self.successors.borrow(tokens[-1], successors[-1], shares[-1])
        self.context += len(tokens)

    def _take_in(self, tokens: list[int], path: list[int]) -> None:
        """Learn from what was said, index it, and read it; while drafting pauses, reading waits for a copy."""
        if self._candidates is not None:
            texts, places = (self._corpus.tokens, self._candidates.excerpts), self._candidates.places
            self.calibration.learn(texts, self._corpus.local(places), self.successors, tokens)
        known = self._places.tolist()  # those of another draft, where it was not ours that was verified
        copied = [known[node] for node in path if node < len(known) and known[node] >= 0]
        if copied:
            self._point(copied[-1])
        for text in self._foreign:
            text.hear(tokens)
        if self.memory is not None:
            self._said += tokens
        self._last = tokens[-1] if tokens else self._last
        self._draft, self._places, self._candidates = Draft.empty(), self._places[:0], None
        self._waiting += tokens
        before = self._corpus.match_length
        if tokens:
            self._corpus.extend(tokens)
        if before < _WAKES <= self._corpus.match_length:
            self.policy.wake()
        if not self.policy.pauses:
            self._read()

    def _point(self, place: int) -> None:
        """Note the place that was copied from last."""
        end = len(self._corpus)
        self._pointer = place + 1 if place < end else -1
        if place >= end and self._candidates is not None:
            text, position = self._candidates.foreign(place)
            text.took(position)

    def _read(self) -> None:
        """Have what waits read for hints."""
        if self._waiting:
            self._hints = [] if self._reader is None else self._reader.hear(self._waiting, self._pointer)
            self._waiting = []

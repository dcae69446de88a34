"""From the root of a draft to the first token that it did not foresee."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from numpy.typing import NDArray

from ..tree import Accepted, Draft
from .acceptance import accept_drawn, choose, likeliest
from .doubt import Doubt
from .sequence import Sequence

__all__ = ["Record", "Verifier"]

_TOLD = 64  # most nodes of a step whose successors are told

Processors = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
Criteria = Callable[[torch.Tensor, "tuple[torch.Tensor, ...] | None"], torch.Tensor]


@dataclass
class Record:
    """Per-token tensors that the caller wants back, float32 [1, vocabulary] each; None where not asked for."""

    scores: tuple[torch.Tensor, ...] | None = None
    logits: tuple[torch.Tensor, ...] | None = None

    @property
    def wanted(self) -> bool:
        """Whether anything is recorded."""
        return self.scores is not None or self.logits is not None

    def add(self, scores: torch.Tensor, logits: torch.Tensor) -> None:
        """Keep what was asked for."""
        if self.scores is not None:
            self.scores += (scores,)
        if self.logits is not None:
            self.logits += (logits,)


@dataclass
class Verifier:
    """Walks each draft as plain decoding would have gone, token by token, and grows the sequence.

    Processors, stopping criteria and `on_token` see exactly the calls, in the order, that plain decoding makes: a
    position is looked at only after everything before it was accepted, and never twice. That is what keeps stateful
    processors right and makes a seed give the same tokens.

    Attributes
    ----------
    sequence : Sequence
        The known tokens; grown by every emitted one.
    processors : callable or None
        ``processors(ids, logits) -> scores``; None when there is none, and scores are the logits.
    criteria : callable or None
        ``criteria(ids, scores) -> bool [1]``; None when only `end_tokens` and `max_length` stop the generation.
    do_sample : bool
        Draw from the distribution rather than take its maximum.
    end_tokens : frozenset of int
        Tokens that end the generation; used only without `criteria`.
    max_length : int
        Length at which the generation ends; used only without `criteria`.
    on_token : callable
        ``on_token(token, source)``, called once per emitted token; source is None for a token that was not drafted.
    record : Record
        Keeps scores and logits if they are wanted.
    doubt : Doubt or None
        Puts near-ties off: the walk ends before them, and the next forward is to be over the last token alone. For
        greedy decoding, with processors that keep no state: they see a position twice.
    """

    sequence: Sequence
    processors: Processors | None
    criteria: Criteria | None
    do_sample: bool
    end_tokens: frozenset[int]
    max_length: int
    on_token: Callable[[int, str | None], None]
    record: Record = field(default_factory=Record)
    doubt: Doubt | None = None

    def walk(self, draft: Draft, logits: torch.Tensor, first: int | None = None) -> Accepted:
        """Emit tokens while the draft foresaw them, then the one that it did not.

        Parameters
        ----------
        draft : Draft
            n proposed tokens.
        logits : float [n + 1, vocabulary]
            The target's logits behind the last known token (row 0) and behind node i (row i + 1).
        first : int, optional
            The first token, where it was chosen already, as for all rows of a batch at once.
        """
        pick = self._maxima(logits) if self._is_plain_greedy else None
        children, doubted = draft.children(), self._doubted(logits)
        tokens, path, row = list[int](), list[int](), 0
        while True:
            if self.doubt is not None and doubted(row):
                self.doubt.put_off(self._seen(logits, row))
                return Accepted(tokens, path, draft=draft)
            if first is not None and not tokens:
                token = first
            else:
                offered = self._offered(draft, children[row])
                token = pick[row] if pick is not None else self._choose(logits[row : row + 1], offered)
            child = children[row].get(token)
            finished = self._emit(token, None if child is None else draft.sources[child])
            tokens.append(token)
            if child is not None:
                path.append(child)
            if finished or child is None:
                looked_at = [-1, *path[: len(tokens) - 1]]
                return Accepted(tokens, path, finished, successors=partial(_told, logits, looked_at), draft=draft)
            row = child + 1

    def _doubted(self, logits: torch.Tensor) -> Callable[[int], bool]:
        """Return what tells of a row whether its choice is to be put off."""
        doubt = self.doubt
        if doubt is None or doubt.decides:
            if doubt is not None and doubt.pending:
                doubt.settle(self._seen(logits, 0))
            return lambda row: False
        if self.processors is None:
            return doubt.rows(logits).__getitem__
        return lambda row: doubt.rows(self._seen(logits, row)[None], logits.dtype)[0]

    def _seen(self, logits: torch.Tensor, row: int) -> torch.Tensor:
        """Return what a row's token is chosen by, float [vocabulary]."""
        return logits[row] if self.processors is None else self._scores(self._copied(logits[row : row + 1]))[0]

    @property
    def _is_plain_greedy(self) -> bool:
        """Whether the tokens are the maxima of the logits, which one call finds for all nodes at once."""
        return self.processors is None and not self.do_sample and not self.record.wanted

    @staticmethod
    def _maxima(logits: torch.Tensor) -> list[int]:
        """Return every row's maximum, judged in float32 as plain decoding does: wider types may tie there."""
        narrowed = logits.float() if logits.dtype == torch.float64 else logits
        maxima: list[int] = narrowed.argmax(dim=-1).tolist()
        return maxima

    def _offered(self, draft: Draft, children: dict[int, int]) -> tuple[list[int], torch.Tensor] | None:
        """Return the children that were drawn, and the distribution that they come from; None for copies."""
        if draft.drawn_from is None or not children or not self.do_sample:
            return None
        return list(children), draft.drawn_from[min(children.values())]

    def _choose(self, logits: torch.Tensor, offered: tuple[list[int], torch.Tensor] | None) -> int:
        """Process the logits of one row, float [1, vocabulary], and choose."""
        copied = self._copied(logits)
        scores = self._scores(copied)
        self.record.add(scores, copied)
        return int(choose(scores, self.do_sample)) if offered is None else accept_drawn(scores, *offered)

    def _copied(self, logits: torch.Tensor) -> torch.Tensor:
        """Return logits as processors are given them."""
        return logits.to(copy=True, dtype=torch.float32, device=self.sequence.ids.device)

    def _scores(self, logits: torch.Tensor) -> torch.Tensor:
        """Process the logits of one row, float32 [1, vocabulary]."""
        return logits if self.processors is None else self.processors(self.sequence.ids, logits)

    def _emit(self, token: int, source: str | None) -> bool:
        """Append the token, ask whether the generation ends with it, and tell who listens."""
        self.sequence.append(token)
        if self.criteria is None:
            finished = token in self.end_tokens or len(self.sequence) >= self.max_length
        else:
            finished = bool(self.criteria(self.sequence.ids, self.record.scores))
        self.on_token(token, source)
        return finished


def _told(logits: torch.Tensor, path: list[int], count: int) -> tuple[list[int], NDArray[Any], NDArray[Any]]:
    """Return the likeliest successors of nodes, as `Accepted` has them: the last of the path, then what was refused."""
    others = sorted(set(range(len(logits) - 1)) - set(path))
    nodes = [*reversed(path), *others][:_TOLD][::-1]
    return nodes, *likeliest(logits[[node + 1 for node in nodes]], count)

"""One draft that was verified, as a trace keeps it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..stats import MODEL
from ..tree import Draft

__all__ = ["Emitted", "Step"]


@dataclass(frozen=True, eq=False)
class Step:
    """One draft of one row, and what the model made of it.

    Attributes
    ----------
    forward : int
        Which forward of the call it was, from 1 on; rows of a batch share forwards and their times.
    row : int
        The row of the batch, 0 for a single prompt.
    draft : Draft
        What was proposed.
    places : int64 [len(draft)]
        Where each token was copied from, in tokens from the start of its source, which may lie behind its end: the
        output goes on where the prompt ends. -1 for no copy, or unknown.
    lengths : int64 [len(draft)]
        How many tokens before it are the same there, those of the draft included; -1 for no copy.
    tokens : list of int
        What was emitted.
    path : list of int
        The accepted nodes; ``tokens[:len(path)]`` are their tokens, what follows the model's own.
    draft_seconds, verify_seconds, rest_seconds : float
        Wall-clock time of drafting, of the forward with the choice of tokens, and of all else since the step before.
    """

    forward: int
    row: int
    draft: Draft
    places: NDArray[np.int64]
    lengths: NDArray[np.int64]
    tokens: list[int]
    path: list[int]
    draft_seconds: float = 0.0
    verify_seconds: float = 0.0
    rest_seconds: float = 0.0

    @property
    def seconds(self) -> float:
        """All of the step's time."""
        return self.draft_seconds + self.verify_seconds + self.rest_seconds

    def emitted(self) -> Iterator[Emitted]:
        """Yield the emitted tokens, each with what is known of it."""
        for place, token in enumerate(self.tokens):
            if place < len(self.path):
                node = self.path[place]
                origin = int(self.places[node]), int(self.lengths[node])
                yield Emitted(token, self.draft.sources[node], float(self.draft.probs[node]), *origin)
            else:
                yield Emitted(token)


@dataclass(frozen=True)
class Emitted:
    """One token of an output.

    Attributes
    ----------
    token : int
        Its id.
    source : str
        Where it was copied from, ``"model"`` where it was not drafted.
    prob : float or None
        How probable it was held that it is accepted, if it was drafted.
    place, length : int
        As in `Step`.
    """

    token: int
    source: str = MODEL
    prob: float | None = None
    place: int = -1
    length: int = -1

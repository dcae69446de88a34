"""Writes a trace while a call runs; the loops call it, where a trace is wanted."""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from ..stats import Stats
from ..tree import Accepted, Draft
from .record import Trace
from .step import Step

__all__ = ["Origins", "Recorder"]

Origins = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Of each token of a draft the place that it was copied from, and the length of the match; see `Step`."""


class Recorder:
    """Adds the steps of one call to a trace.

    Attributes
    ----------
    trace : Trace
        What was recorded so far.
    """

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self._origins: list[Origins] = []
        self._clock = time.perf_counter()
        self._drafted = self._verified = 0.0

    def begin(self, prompt: list[int]) -> None:
        """Note the prompt of the next row."""
        self.trace.prompts.append(prompt)

    def propose(self, origins: list[Origins]) -> None:
        """Note where the drafts that are verified next come from."""
        self._origins = origins

    def count(self, rows: list[int], drafts: list[Draft], accepted: list[Accepted], stats: Stats) -> None:
        """Add one verified forward: a draft and what became of it for each row; `stats` has counted it already."""
        now = time.perf_counter()
        draft, verify = stats.draft_seconds - self._drafted, stats.verify_seconds - self._verified
        rest = max(0.0, now - self._clock - draft - verify)
        self._clock, self._drafted, self._verified = now, stats.draft_seconds, stats.verify_seconds
        origins = self._origins or [_unknown(one) for one in drafts]
        for row, one, origin, what in zip(rows, drafts, origins, accepted, strict=True):
            if len(one) or what.tokens or len(rows) == 1:  # not rows that have ended
                step = Step(stats.forwards, row, one, *origin, what.tokens, what.path, draft, verify, rest)
                self.trace.steps.append(step)
        self._origins = []

    def plain(self, prompts: list[list[int]], outputs: list[list[int]], seconds: float) -> None:
        """Add what was decoded without drafts, one token a forward, each after the average time."""
        self.trace.prompts += prompts
        longest = max(map(len, outputs))
        each = seconds / max(1, longest)
        for place in range(longest):
            for row, output in enumerate(outputs):
                empty = Draft.empty()
                step = Step(place + 1, row, empty, *_unknown(empty), [output[place]], [], 0.0, each)
                self.trace.steps.append(step)


def _unknown(draft: Draft) -> Origins:
    """Return origins that say nothing."""
    nothing = np.full(len(draft), -1, np.int64)
    return nothing, nothing

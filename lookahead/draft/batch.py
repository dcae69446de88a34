"""The rows of a batch share every forward, so how much they draft is chosen for all together."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ..tree import Accepted, Draft
from .drafter import Drafter
from .policy import Policy

__all__ = ["Batch"]


class Batch:
    """One drafter for each row, and one policy that they share; `policy_of` gives it for fewer rows.

    A forward over a batch costs what its longest draft costs. So one more place is worth the sum of what all rows
    would have in it, and rows that have nothing more to say do not count against the others.

    Attributes
    ----------
    drafters : list of Drafter
        Those of the rows that go on. All have begun.
    """

    def __init__(self, drafters: list[Drafter], policy_of: Callable[[int], Policy]) -> None:
        self.drafters, self._policy, self._policy_of = drafters, drafters[0].policy, policy_of
        self._drafting, self._size = 0.0, 0

    def propose(self, budgets: list[int]) -> list[Draft]:
        """Return each row's draft, of at most as many tokens as its entry of `budgets` and as the option allows."""
        started = time.perf_counter()
        given = zip(self.drafters, budgets, strict=True)
        sizes = [self._policy.most(drafter.allowed(budget)) for drafter, budget in given]
        least = self._policy.least(max(sizes)) / len(sizes)
        drafts = [drafter.consider(size, least) for drafter, size in zip(self.drafters, sizes, strict=True)]
        probs = np.zeros(max(len(draft) for draft in drafts), np.float32)
        for draft in drafts:
            probs[: len(draft)] += draft.probs
        self._size = self._policy.size(probs)
        drafts = [drafter.cut(self._size) for drafter in self.drafters]
        self._drafting = time.perf_counter() - started
        return drafts

    def accept(self, accepted: list[Accepted], seconds: float) -> None:
        """Take in what the target emitted in each row, and what the step took beside the drafting.

        Successors are asked for only where something was worth a draft: they cost a row more than all else here.
        """
        started = time.perf_counter()
        for drafter, one in zip(self.drafters, accepted, strict=True):
            drafter.hear(one if self._size else replace(one, successors=None))
        tokens = sum(len(one.tokens) for one in accepted)
        self._policy.learn(tokens, self._size)
        drafting = self._drafting + time.perf_counter() - started
        context = max(drafter.context for drafter in self.drafters)
        self._policy.learn_times(tokens / len(accepted), self._size, context, seconds, drafting)

    def select(self, rows: list[int]) -> None:
        """Go on with some of the rows only."""
        before, self._policy = self._policy, self._policy_of(len(rows))
        self._policy.go_on(before)
        self.drafters = [self.drafters[row] for row in rows]
        for drafter in self.drafters:
            drafter.policy = self._policy

"""Drafters on recorded answers, without a model: the loop that all replays share, and what it counts."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..tree import Accepted

__all__ = ["Curve", "Reliability", "Tally", "replay"]

Curve: TypeAlias = NDArray[np.float64]


class Reliability:
    """What was expected of drafted tokens against what came of them, in ten classes of probability."""

    def __init__(self) -> None:
        self.counts, self.expected, self.hits = (np.zeros(10) for _ in range(3))

    def add(self, probs: NDArray[np.float32], path: list[int]) -> None:
        """Count the tokens of a draft, of which those of `path` were right."""
        expected = probs.astype(np.float64)
        rows = np.minimum(expected * 10, 9).astype(np.int64)
        self.counts += np.bincount(rows, minlength=10)
        self.expected += np.bincount(rows, expected, minlength=10)
        self.hits += np.bincount(rows[path], minlength=10)

    def __iadd__(self, other: Reliability) -> Reliability:
        """Add another's counts."""
        self.counts += other.counts
        self.expected += other.expected
        self.hits += other.hits
        return self

    @property
    def error(self) -> float:
        """Expected calibration error: the mean distance of prediction and observation, weighted by tokens."""
        return float(np.abs(self.expected - self.hits).sum() / max(1.0, self.counts.sum()))


class Tally:
    """Counts of one drafter over many answers."""

    def __init__(self) -> None:
        self.answers = self.tokens = self.forwards = self.drafted = self.read = 0
        self.reading = self.drafting = 0.0
        self.sizes: Counter[int] = Counter()
        self.right: Counter[int] = Counter()
        self.reliability = Reliability()

    @property
    def tokens_per_forward(self) -> float:
        """Emitted tokens per forward, the prefill counted as one."""
        return self.tokens / self.forwards

    @property
    def accepted(self) -> int:
        """Drafted tokens that were right."""
        return sum(size * count for size, count in self.right.items())

    @property
    def acceptance_rate(self) -> float:
        """Share of the drafted tokens that were right; 0 when none was drafted."""
        return self.accepted / self.drafted if self.drafted else 0.0

    @property
    def drafting_micros(self) -> float:
        """Microseconds of drafting per forward."""
        return 1e6 * self.drafting / self.forwards

    def cost(self, curve: Curve) -> float:
        """Return what all forwards cost, in forwards without draft, a prefill counted as one of these."""
        return self.answers + sum(count * float(curve[size]) for size, count in self.sizes.items())

    def per_cost(self, curve: Curve) -> float:
        """Tokens per cost of a forward without draft."""
        return self.tokens / self.cost(curve)

    def per_least_cost(self, curve: Curve) -> float:
        """Return the same had just what was right of each draft been sent: what no choice of lengths can pass."""
        return self.tokens / (self.answers + sum(count * float(curve[size]) for size, count in self.right.items()))

    def __iadd__(self, other: Tally) -> Tally:
        """Add another's counts."""
        self.answers += other.answers
        self.tokens, self.forwards = self.tokens + other.tokens, self.forwards + other.forwards
        self.drafted, self.drafting = self.drafted + other.drafted, self.drafting + other.drafting
        self.read, self.reading = self.read + other.read, self.reading + other.reading
        self.sizes += other.sizes
        self.right += other.right
        self.reliability += other.reliability
        return self


def replay(
    drafter: Any,
    prompt: list[int],
    answer: list[int],
    budget: int,
    observe: Callable[[Any, list[int]], None] | None = None,
) -> Tally:
    """Run a drafter over one answer; `observe` is shown it before each draft, and what the answer really says next."""
    tally, started = Tally(), time.perf_counter()
    drafter.begin(prompt)
    tally.read, tally.reading = len(prompt), time.perf_counter() - started
    drafter.accept(Accepted(answer[:1]))
    at, tally.answers, tally.tokens, tally.forwards = 1, 1, len(answer), 1
    while at < len(answer):
        if observe is not None:
            observe(drafter, answer[at:])
        started = time.perf_counter()
        draft = drafter.propose(min(budget, len(answer) - at - 1))
        tally.drafting += time.perf_counter() - started
        path = draft.follow(answer[at:])
        accepted = Accepted(answer[at : at + len(path) + 1], path)
        started = time.perf_counter()
        drafter.accept(accepted)
        tally.drafting += time.perf_counter() - started
        at += len(path) + 1
        tally.forwards += 1
        tally.drafted += len(draft)
        tally.sizes[len(draft)] += 1
        tally.right[len(path)] += 1
        tally.reliability.add(draft.probs, path)
    return tally

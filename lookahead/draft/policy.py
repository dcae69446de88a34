"""How much to draft: as long as the next token earns more than it costs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .cost import Cost, MeasuredCost
from .probes import Probes

__all__ = ["Policy"]

_LEAST = 0.001  # path probability below which nothing is looked at
_MEMORY = 0.98  # what the rate so far keeps of its weight with each step
_START = 10.0  # steps that the first guess of the rate is worth
_TRIED = 32  # steps over which drafting has to earn its own time
_LOSS = 0.01  # of all time that drafting may lose
_SHORTEST, _LONGEST = 16, 512  # steps without drafting
_TRUST = 2.0  # drafts that the first guess, that chances are what they are said to be, is worth
_RECENT = 0.9  # what the latest drafts keep of their weight with each one more
_FADING = 0.98  # and with each step without one
_RISK = 1.0  # forwards that a draft may cost beyond its own where nothing is known; twice as many for each kept promise
_FREE = 16  # tokens that a draft may have whatever they cost; a step of the cost at the first ones is no risk to avoid
_SURE = 16  # kept promises beyond which nothing more is dared
_SELDOM = 16  # steps at rest from one look at the model's second thoughts to the next, at most


class Policy:
    """Chooses the size of every draft, down to nothing.

    To maximise tokens per second over a whole text, a draft token has to earn what its time would have earned at the
    rate so far: it is worth `rate` times what it costs (Dinkelbach 1967, for the ratio of two sums). Tokens come in
    the order of their path probability, so the best set of k tokens is the first k.

    Where drafting as such takes more time than it saves, as beside a tiny model, it pauses after a trial of 32 steps;
    earlier where no draft was made and thinking of them took as much as a whole trial may lose. The more a trial lost,
    the longer the pause, so that all of them lose one forward in a hundred (and those after 512 steps a little more);
    a copy that has gone on for a while ends it (`wake`). And sizes whose cost is in doubt are looked at now and then
    (`Probes`). Both need the clock: with a given cost, or without times, there is neither.

    Chances were learnt elsewhere, too. Where the latest drafts brought less than they promised, as on text that is no
    copy, the next ones are taken for as much less: a long copy still pays then, a doubtful token does not. And a draft
    risks one forward's time, twice as much for each of the latest ones that kept its promise: the first words of a text
    do not tell a file that is copied from a turn of speech.

    The `rows` of a batch share every forward: tokens are then the sum over the rows.
    """

    def __init__(self, cost: Cost, rows: int = 1) -> None:
        self.cost, self.rows = cost, rows
        self._probes = Probes(cost) if isinstance(cost, MeasuredCost) else None
        # A high rate makes for short drafts until more is known.
        self._tokens, self._spent = 4.0 * rows * _START, _START
        self._promised, self._kept, self._promises = 0.0, 0.0, 0.0
        self._saved, self._forward = 0.0, 0.0
        self._tried, self._drafted, self._waiting, self._resting = 0, 0, 0, 0

    @property
    def rate(self) -> float:
        """Tokens per cost of a forward without draft, over the last steps."""
        return self._tokens / self._spent

    def go_on(self, other: Policy) -> None:
        """Take over the rate and the pause of the policy for more rows, of which some have ended."""
        self._tokens, self._spent = other._tokens * self.rows / other.rows, other._spent
        self._promised, self._kept = other._promised, other._kept
        self._resting, self._waiting = other._resting, other._waiting

    @property
    def trust(self) -> float:
        """What of the tokens that the latest drafts promised was accepted, at most 1."""
        return min(1.0, (self._kept + _TRUST) / (self._promised + _TRUST))

    @property
    def pauses(self) -> bool:
        """Whether drafting as such does not pay now."""
        return self._waiting > 0

    def wake(self) -> None:
        """End the pause: there is something to draft."""
        self._waiting = 0

    @property
    def listens(self) -> bool:
        """Whether to ask for what the model almost said: at every step, but seldom where nothing is drafted."""
        return not self.pauses and self._resting % min(_SELDOM, self._resting // 8 + 1) == 0

    def least(self, budget: int) -> float:
        """Return the path probability below which no token of a draft of at most `budget` tokens can pay."""
        if not budget:
            return 1.0
        cheapest = self.cost.cheapest(budget)
        if self._probes is not None and self._probes.due(budget):
            cheapest = min(cheapest, self._probes.cheapest)
        return min(1.0, max(_LEAST, self.rate * cheapest / self.trust))

    def most(self, budget: int) -> int:
        """Return how many of at most `budget` tokens a draft may have, by what it risks; the first 16 are free."""
        risk = _RISK * 2.0 ** min(self._kept, _SURE)
        return max(min(budget, _FREE), int(self.cost.curve(budget).searchsorted(1.0 + risk, side="right")) - 1)

    def size(self, probs: NDArray[np.float32]) -> int:
        """Return how many tokens of a draft pay, given their path probabilities, float32 [n], which never rise."""
        self._promises = 0.0
        if not len(probs):
            return 0
        size = self._chosen(probs * np.float32(self.trust))
        self._promises = float(probs[:size].sum(dtype=np.float64))
        return size

    def _chosen(self, probs: NDArray[np.float32]) -> int:
        """Return the size of the highest gain, or of a look at a cost."""
        gains = self._gains(probs, self.cost.curve(len(probs)))
        if self._probes is not None and self._probes.due(len(probs)):
            return self._probes.size(gains, self._gains(probs, self._probes.hope(len(probs))), self.rate)
        return int(gains.argmax())

    def _gains(self, probs: NDArray[np.float32], curve: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return how many tokens the first 0, 1, ... of a draft earn beyond what they cost, float64 [n + 1]."""
        gains = self.rate * (1.0 - curve)
        gains[1:] += probs.cumsum(dtype=np.float64)
        return gains

    def learn(self, tokens: int, size: int) -> None:
        """Hear that a forward with `size` draft tokens gave `tokens`."""
        self._resting = 0 if size else self._resting + 1
        self._judge(tokens, size)
        self._tokens = _MEMORY * self._tokens + tokens
        self._spent = _MEMORY * self._spent + float(self.cost.curve(size)[size])

    def _judge(self, tokens: int, size: int) -> None:
        """Compare what was accepted with what was promised; each draft counts as one at most."""
        is_ours = size > 0 and self._promises > 0
        memory, weight = (_RECENT, 1.0 / max(1.0, self._promises)) if is_ours else (_FADING, 0.0)
        self._promised = memory * self._promised + weight * self._promises
        self._kept = memory * self._kept + weight * max(0, tokens - self.rows)  # rows that end say nothing more

    def learn_times(self, tokens: float, size: int, context: int, forward: float, drafting: float) -> None:
        """Hear what a step behind `context` tokens took, in seconds: its forward and its drafting.

        `tokens` are those of a row, on average.
        """
        if not isinstance(self.cost, MeasuredCost):
            return
        self.cost.learn(size, context, forward)
        looked = self._probes is not None and self._probes.pay(tokens * self.rows, self.rate, forward)
        if self.pauses:
            self._waiting -= 1
            return
        plain = forward / float(self.cost.curve(size)[size])
        self._saved += (0.0 if looked else tokens * plain - forward) - drafting  # looks are paid for already
        self._forward += plain
        self._tried += 1
        self._drafted += size
        gives_up = not self._drafted and self._saved < -_LOSS * _TRIED * plain
        if self._tried < _TRIED and not gives_up:
            return
        if self._saved < -_LOSS * self._forward:
            paid_off = round(-self._saved / (_LOSS * self._forward) * self._tried)  # steps of which it is a hundredth
            self._waiting = min(max(paid_off - self._tried, _SHORTEST), _LONGEST)
        self._saved, self._forward, self._tried, self._drafted = 0.0, 0.0, 0, 0

"""What a forward of the target costs with a draft behind the last token, in forwards without one."""

from __future__ import annotations

import math
import statistics
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["Cost", "FixedCost", "MeasuredCost", "cost_of"]

PRIOR = 0.002  # forwards that a draft token costs where nothing else is known; nearer to what a GPU takes
_KNOTS = (0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 512, 1024, 2048, 4096)
_SIZES = np.arange(_KNOTS[-1] + 1)
_NEAREST = np.abs(_SIZES[:, None] - np.array(_KNOTS)).argmin(axis=1)  # the knot that stands for each size
# How many forwards with the draft of one knot (row) feed the tokens of another (column); inf where one is the larger.
_PIECES = np.array([[-(-(more + 1) // (some + 1)) if more >= some else np.inf for more in _KNOTS] for some in _KNOTS])
_PLAUSIBLE = _PIECES[0]  # what feeding the tokens one after the other would cost
_KEPT = 9  # latest times of a knot, of which the median counts
_AGE = 1024  # forwards after which a time counts no more
_TWICE = 2  # times of late, below which a knot is in doubt
_RENEW = 32  # forwards between two looks at the curve, but for the first ones


class Cost(Protocol):
    """Tells the policy what drafts cost."""

    def curve(self, budget: int) -> NDArray[np.float64]:
        """Return the cost of a forward with k draft tokens, float64 [budget + 1], never falling; entry 0 is 1."""

    def cheapest(self, budget: int) -> float:
        """Return what the cheapest of the first `budget` draft tokens costs; 1 where there is none."""


class FixedCost:
    """A cost that is given, so that runs repeat whatever the clock says."""

    def __init__(self, cost: Callable[[int], float], budget: int) -> None:
        """Tabulate a function of the number of draft tokens.

        Raises
        ------
        ValueError
            Where it gives no finite positive number, or falls.
        """
        values = np.array([float(cost(size)) for size in range(budget + 1)])
        if not np.isfinite(values).all() or values[0] <= 0 or (np.diff(values) < 0).any():
            raise ValueError(
                f"cost gives {values[0]} for a forward without a draft and {values[-1]} with {budget} tokens; "
                "allowed are finite numbers above 0 that do not fall as the draft grows"
            )
        self._curve: NDArray[np.float64] = values / values[0]
        self._cheapest = _cheapest(self._curve)

    def curve(self, budget: int) -> NDArray[np.float64]:
        """Return what was tabulated."""
        return self._curve[: budget + 1]

    def cheapest(self, budget: int) -> float:
        """Return what the cheapest of the first `budget` tokens costs."""
        return self._cheapest[min(budget, len(self._cheapest) - 1)]


class MeasuredCost:
    """A cost that is learnt from the clock: medians at some sizes, a straight prior between and beyond them.

    Times are kept apart by the context's length in powers of 4, since attention's share grows with it. What a knot
    (a size) took is taken relative to a base: what an earlier process kept, else the nearest context's curve, else the
    prior ``1 + slope k``. Between knots that ratio is interpolated, so an unknown size costs what its neighbours
    suggest. Medians withstand outliers, and the curve is made monotone by pooling neighbours that fall (isotonic
    regression). Steps of the hardware show as far as the knots tell them apart.

    A loaded or paused machine spoils times, and what looks too dear to be drafted is not measured again by itself. So
    a knot is in doubt until it was measured twice of late. One in doubt is held to cost no more than feeding its tokens
    in pieces whose cost is not in doubt, one after the other at most: ``1 + k``; and `Probes` look at it, paid out of
    `credit`.

    Attributes
    ----------
    heard : int
        Times taken in since the object was made.
    credit : float
        Forwards' time that may be spent on looking at what is in doubt: a share of all time spent so far.
    hope : float64 [4097]
        What each size would cost by the prior.
    """

    def __init__(self, slope: float = PRIOR) -> None:
        self._prior: NDArray[np.float64] = 1.0 + slope * np.array(_KNOTS, np.float64)
        self.hope: NDArray[np.float64] = np.interp(_SIZES, _KNOTS, self._prior)
        self._times: dict[int, dict[int, deque[tuple[int, float]]]] = {}
        self._bases: dict[int, NDArray[np.float64]] = {}  # curves at the knots, to which times are relative
        self._kept: dict[int, dict[int, tuple[float, int]]] = {}
        self._context = 0
        self._known: NDArray[np.float64] = self._prior
        self._doubtful = np.ones(len(_SIZES), np.bool_)
        self._plain = 0.0
        self._cheapest = _cheapest(self._prior)
        self._looked = -1
        self._lock = threading.Lock()  # one model may serve several threads
        self.heard, self.credit = 0, 0.0

    def learn(self, size: int, context: int, seconds: float) -> None:
        """Hear how long a forward with `size` draft tokens behind `context` tokens took."""
        self._context = max(0, (context.bit_length() - 9) // 2)
        knot = int(_NEAREST[min(size, _KNOTS[-1])])
        expected = np.interp(size, _KNOTS, self._prior) / self._prior[knot]
        with self._lock:
            if self._context not in self._times:
                self._bases[self._context] = self._base(self._context)
                self._times[self._context] = {}
            times = self._times[self._context].setdefault(knot, deque(maxlen=_KEPT))
            self.heard += 1
            times.append((self.heard, seconds / float(expected)))
            if self._doubtful[_KNOTS[knot]]:
                self._looked = -1  # look at the curve at once

    def curve(self, budget: int) -> NDArray[np.float64]:
        """Return the cost at each size up to `budget`, float64 [budget + 1]."""
        with self._lock:
            if self._looked < 0 or self.heard - self._looked >= min(_RENEW, self._looked + 1):
                self._looked = self.heard
                curve, self._plain, doubtful = self._estimate(self._nearest(self._context))
                self._known, self._doubtful = np.interp(_SIZES, _KNOTS, curve), doubtful[_NEAREST]
                self._cheapest = _cheapest(self._known)
        return self._known[: budget + 1]

    def cheapest(self, budget: int) -> float:
        """Return what the cheapest of the first `budget` tokens costs."""
        self.curve(budget)
        return self._cheapest[min(budget, len(self._cheapest) - 1)]

    def doubtful(self, budget: int) -> NDArray[np.bool_]:
        """Return which sizes up to `budget` are in doubt, bool [budget + 1]."""
        self.curve(budget)
        return self._doubtful[: budget + 1]

    @property
    def plain_seconds(self) -> float:
        """What a forward without a draft takes; 0 where nothing was measured yet."""
        self.curve(0)
        return self._plain

    def forwards(self, seconds: float) -> float:
        """Return how many forwards without a draft take so long; 0 where nothing was measured yet."""
        self.curve(0)
        return seconds / self._plain if self._plain > 0 else 0.0

    def _nearest(self, context: int) -> int | None:
        """Return the measured context that is nearest to one."""
        return min(self._times, key=lambda one: abs(one - context), default=None)

    def _base(self, context: int) -> NDArray[np.float64]:
        """Return the curve at the knots that a context begins with: what is kept of it, else of its neighbours."""
        nearest = self._nearest(context)
        if nearest is not None and context not in self._kept:
            return self._estimate(nearest)[0]
        if self._kept:
            return self._curve_kept(self._kept[min(self._kept, key=lambda one: abs(one - context))])
        return self._prior

    def _estimate(self, context: int | None) -> tuple[NDArray[np.float64], float, NDArray[np.bool_]]:
        """Return a measured context's relative cost at the knots, seconds without a draft, and which are in doubt."""
        if context is None:
            return self._base(self._context), 0.0, np.ones(len(_KNOTS), np.bool_)
        knots, values, counted = list[int](), list[float](), np.full(len(_KNOTS), 0.1)
        for knot, times in sorted(self._times[context].items()):
            while len(times) > 1 and times[0][0] < self.heard - _AGE:
                times.popleft()
            knots.append(knot)
            values.append(statistics.median_low(seconds for _, seconds in times))
            counted[knot] = len(times) if times[-1][0] >= self.heard - _AGE else 0.5
        base = self._bases[context]
        rising = _rising(np.interp(np.arange(len(_KNOTS)), knots, np.array(values) / base[knots]) * base, counted)
        doubtful, curve = counted < _TWICE, rising / rising[0]
        known = ~doubtful
        known[0] = True
        pieces = (curve[known, None] * _PIECES[known]).min(axis=0)
        capped = np.where(doubtful, np.minimum(curve, pieces), curve)
        return np.maximum.accumulate(capped), float(rising[0]), doubtful

    # ---- To keep ----

    def state(self) -> dict[str, Any]:
        """Return what is known, to be kept as JSON: {context: {size: [cost in forwards, age]}}.

        The age counts the processes that passed a cost on without measuring it.
        """
        with self._lock:
            known = {context: dict(row) for context, row in self._kept.items()}
            for context, row in self._times.items():
                curve = self._estimate(context)[0]
                known.setdefault(context, {}).update({knot: (float(curve[knot]), 0) for knot in row})
        return {
            str(context): {str(_KNOTS[knot]): [*found] for knot, found in sorted(row.items())}
            for context, row in known.items()
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take up what `state` gave; anything else in there is passed over."""
        for context, row in state.items():
            for size, found in row.items():
                if not isinstance(found, list) or len(found) != 2 or not str(context).isdecimal():
                    continue
                cost, age = float(found[0]), int(found[1])
                if int(size) in _KNOTS and 0 < cost < math.inf and age >= 0:
                    self._kept.setdefault(int(context), {})[_KNOTS.index(int(size))] = cost, age + 1

    def _curve_kept(self, row: dict[int, tuple[float, int]]) -> NDArray[np.float64]:
        """Return the relative cost at the knots that is kept; the older, the nearer to the prior."""
        knots = sorted(row)
        trust = np.array([0.5 ** (row[knot][1] - 1) for knot in knots])
        ratios = (np.array([row[knot][0] for knot in knots]) / self._prior[knots]) ** trust
        rising = _rising(np.interp(np.arange(len(_KNOTS)), knots, ratios) * self._prior, np.ones(len(_KNOTS)))
        plausible: NDArray[np.float64] = np.minimum(rising / rising[0], _PLAUSIBLE)
        return plausible


def _cheapest(curve: NDArray[np.float64]) -> list[float]:
    """Return at each budget what the cheapest token costs."""
    return [1.0, *np.minimum.accumulate(np.diff(curve)).tolist()]


def _rising(values: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the nearest values that never fall: neighbours that do are pooled (Ayer et al. 1955)."""
    pools: list[tuple[float, float, int]] = []
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        pools.append((value, weight, 1))
        while len(pools) > 1 and pools[-2][0] >= pools[-1][0]:
            (one, first, several), (other, second, more) = pools.pop(-2), pools.pop()
            pools.append(((one * first + other * second) / (first + second), first + second, several + more))
    return np.concatenate([np.full(several, value) for value, _, several in pools])


def cost_of(given: str | Callable[[int], float] | None, budget: int) -> Cost:
    """Return the cost that an option names: "linear:0.03", a function of the number of tokens, None to measure it."""
    if given is None:
        return MeasuredCost()
    if callable(given):
        return FixedCost(given, budget)
    slope = float(given.removeprefix("linear:"))
    return FixedCost(lambda size: 1.0 + slope * size, budget)

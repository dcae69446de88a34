"""What a forward of the target costs with a draft behind the last token, in forwards without one."""

from __future__ import annotations

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
_KEPT = 9  # latest times of a knot, of which the median counts
_AGE = 1024  # forwards after which a time counts no more
_RENEW = 8  # forwards between two looks at the curve, but for the first ones


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
    (a size) took is taken relative to the prior ``1 + slope k``; between knots that ratio is interpolated, so an
    unknown size costs what its neighbours suggest. Medians withstand outliers, and the curve is made monotone by
    pooling neighbours that fall (isotonic regression). Steps of the hardware show as far as the knots tell them apart.

    Attributes
    ----------
    heard : int
        Times taken in since the object was made.
    """

    def __init__(self, slope: float = PRIOR) -> None:
        self._prior = 1.0 + slope * np.array(_KNOTS, np.float64)
        self._times: dict[int, dict[int, deque[tuple[int, float]]]] = {}
        self._context = 0
        self._known: NDArray[np.float64] = self._prior
        self._cheapest = _cheapest(self._prior)
        self._looked = -1
        self._lock = threading.Lock()  # one model may serve several threads
        self.heard = 0

    def learn(self, size: int, context: int, seconds: float) -> None:
        """Hear how long a forward with `size` draft tokens behind `context` tokens took."""
        self._context = max(0, (context.bit_length() - 9) // 2)
        knot = min(range(len(_KNOTS)), key=lambda one: abs(_KNOTS[one] - size))
        expected = np.interp(size, _KNOTS, self._prior) / self._prior[knot]
        with self._lock:
            times = self._times.setdefault(self._context, {}).setdefault(knot, deque(maxlen=_KEPT))
            self.heard += 1
            times.append((self.heard, seconds / float(expected)))

    def curve(self, budget: int) -> NDArray[np.float64]:
        """Return the cost at each size up to `budget`, float64 [budget + 1]."""
        with self._lock:
            if self._looked < 0 or self.heard - self._looked >= min(_RENEW, self._looked + 1):
                self._looked, self._known = self.heard, np.interp(_SIZES, _KNOTS, self._estimate())
                self._cheapest = _cheapest(self._known)
        return self._known[: budget + 1]

    def cheapest(self, budget: int) -> float:
        """Return what the cheapest of the first `budget` tokens costs."""
        self.curve(budget)
        return self._cheapest[min(budget, len(self._cheapest) - 1)]

    def _estimate(self) -> NDArray[np.float64]:
        """Return the relative cost at the knots."""
        if not self._times:
            return self._prior
        nearest = min(self._times, key=lambda context: abs(context - self._context))
        knots, values, weights = list[int](), list[float](), list[float]()
        for knot, times in sorted(self._times[nearest].items()):
            while len(times) > 1 and times[0][0] < self.heard - _AGE:
                times.popleft()
            knots.append(knot)
            values.append(statistics.median(seconds for _, seconds in times))
            weights.append(float(len(times)))
        ratios = np.interp(np.arange(len(_KNOTS)), knots, np.array(values) / self._prior[knots])
        counted = np.full(len(_KNOTS), 0.1)
        counted[knots] = weights
        rising = _rising(ratios * self._prior, counted)
        relative: NDArray[np.float64] = rising / rising[0]
        return relative

    # ---- To keep ----

    def state(self) -> dict[str, Any]:
        """Return the medians, to be kept as JSON: {context: {size: seconds}}."""
        with self._lock:
            return {
                str(context): {
                    str(_KNOTS[knot]): statistics.median(seconds for _, seconds in times) for knot, times in row.items()
                }
                for context, row in self._times.items()
            }

    def restore(self, state: dict[str, Any]) -> None:
        """Take up what `state` gave; anything else in there is passed over."""
        for context, row in state.items():
            for size, seconds in row.items():
                if str(context).isdecimal() and int(size) in _KNOTS and 0 < float(seconds) < 3600:
                    known = deque([(0, float(seconds))], maxlen=_KEPT)
                    self._times.setdefault(int(context), {}).setdefault(_KNOTS.index(int(size)), known)


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

"""Looks at what seems too dear to be drafted, at a bounded price."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .cost import MeasuredCost

__all__ = ["SHARE", "Probes"]

SHARE = 0.005  # of all time may go into looks
_MOST = 8.0  # forwards of credit that are saved up
_DEBT = -16.0  # a machine that was paused during a look is not held against looking for ever
_FIRST, _LAST = 0.1, 2.0  # forwards of credit at which a look is thought of


class Probes:
    """Chooses now and then a draft of a size whose cost is in doubt, where it would pay at the cost hoped for.

    Costs that a loaded machine has spoilt keep drafts from being made, and so from being measured again. A look is
    worth its time where the draft would be made at the prior's cost; and the cost of no draft at all is looked at too,
    since all others are told relative to it. What a look takes beyond what its tokens are worth is paid out of the
    `credit` of the cost, which all policies of a model share: `SHARE` of the time spent so far.

    Where many looks are thought of and none is affordable or worthwhile, they are thought of less often.

    Attributes
    ----------
    cheapest : float
        What a draft token is hoped to cost at least.
    """

    def __init__(self, cost: MeasuredCost) -> None:
        self._cost, self._looks, self._asks = cost, False, _FIRST
        self.cheapest = min(1.0, float(cost.hope[1]) - 1.0)

    def hope(self, budget: int) -> NDArray[np.float64]:
        """Return the cost hoped for at each size, float64 [budget + 1]."""
        return self._cost.hope[: budget + 1]

    def due(self, budget: int) -> bool:
        """Whether it is time to think of a look."""
        return self._cost.credit >= self._asks and bool(self._cost.doubtful(budget).any())

    def size(self, gains: NDArray[np.float64], hoped: NDArray[np.float64], rate: float) -> int:
        """Return the size of the next draft: that of the highest gain, or of a look.

        Parameters
        ----------
        gains, hoped : float64 [n + 1]
            Tokens that each size earns beyond its cost: as it is known, and at the cost hoped for.
        rate : float
            Tokens that a forward's time is worth.
        """
        best, sizes = int(gains.argmax()), np.arange(len(gains))
        wanted = self._cost.doubtful(len(gains) - 1) & ((sizes == 0) | (sizes > best)) & (sizes <= hoped.argmax())
        wanted[best] = False
        looks = np.flatnonzero(wanted & (gains[best] - gains <= rate * self._cost.credit))
        self._looks = len(looks) > 0
        self._asks = _FIRST if self._looks else min(2 * self._asks, _LAST)
        if not self._looks:
            return best
        return int(looks[-1]) if looks[0] else 0

    def pay(self, tokens: float, rate: float, seconds: float) -> bool:
        """Hear what a forward took and gave in all rows; put its share aside, and pay for it if it was a look.

        Return whether it was one.
        """
        forwards = self._cost.forwards(seconds)
        credit, looked = self._cost.credit + SHARE * forwards, self._looks
        if looked:
            credit -= max(0.0, forwards - tokens / rate)
        self._cost.credit, self._looks = min(max(credit, _DEBT), _MOST), False
        return looked

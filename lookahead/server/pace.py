"""How many answers are decoded together: as many as have brought the most tokens per second."""

from __future__ import annotations

import statistics
from collections import deque

__all__ = ["Pace"]

_KEPT = 5  # last calls of a number of rows, of which the median counts
_RENEW = 16  # calls after which another number is tried once more


class Pace:
    """Learns from the clock which number of rows pays: 1, 2, 4 and so on up to `most`.

    It climbs: twice the best number is tried once, and gone back from where it brings less. Whether a batch pays
    depends on the device, on the model and on what is asked (copies are drafted better alone, new text is not), so
    the neighbours of the best number are tried again from time to time. The first call over a number of rows does not
    count: the model is asked more in it, and kernels are compiled.
    """

    def __init__(self, most: int) -> None:
        self._sizes = [1 << power for power in range(most.bit_length())]
        self._rates: dict[int, deque[float]] = {size: deque(maxlen=_KEPT) for size in self._sizes}
        self._calls, self._heard = 0, dict.fromkeys(self._sizes, 0)

    def rows(self, waiting: int) -> int:
        """Return how many of the answers that wait are to be decoded together, 1 and above."""
        sizes = [size for size in self._sizes if size <= max(1, waiting)]
        if len(sizes) == 1:
            return 1
        known = [size for size in sizes if self._rates[size]]
        if not known:
            return 1
        best = max(known, key=self._rate)
        near = [size for size in sizes if size in (best // 2, best * 2)]
        untried = [size for size in near if not self._rates[size]]
        oldest = min(near, key=self._heard.__getitem__)
        if untried:
            return untried[-1]
        return oldest if self._calls - self._heard[oldest] >= _RENEW else best

    def learn(self, rows: int, tokens: int, seconds: float) -> None:
        """Hear what a call over a number of rows brought; odd numbers count for the next smaller one of ours."""
        size = max(one for one in self._sizes if one <= rows)
        self._calls += 1
        if self._heard[size] and seconds > 0:
            self._rates[size].append(tokens / seconds)
        self._heard[size] = self._calls

    def stay_alone(self) -> None:
        """Decode one answer at a time from now on."""
        self._sizes = self._sizes[:1]

    def _rate(self, size: int) -> float:
        """Return the tokens per second of a number of rows."""
        return statistics.median(self._rates[size])

"""How often a guess is right: tables measured once, corrected by what became of every guess since."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import growth_kernels as kernels
from .growth_kernels import LONGEST, RECYCLED
from .recycling import Successors

__all__ = ["FIRST", "LATER", "Calibration"]

# Measured by `python -m benchmarks.calibrate` on 160 edits of public repositories (whole files, 343 thousand tokens).
_LENGTHS = (0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
_BEST = (0.05, 0.29, 0.60, 0.67, 0.79, 0.80, 0.82, 0.88, 0.89, 0.92, 0.94, 0.97, 0.998)
_TIED = (0.05, 0.10, 0.18, 0.24, 0.24, 0.28, 0.35, 0.35, 0.35, 0.35, 0.35, 0.35, 0.35)
_LATER = (0.30, 0.50, 0.56, 0.61, 0.80, 0.86, 0.91, 0.93, 0.965, 0.976, 0.986, 0.991, 0.9986)
_BEHIND = (1.0, 0.6, 0.25, 0.15, 0.1)  # a guess whose match is so many tokens shorter than the longest
_RANK = (1.0, 1.0, 0.7, 0.5)
_KINDS = 64  # sources told apart; all further ones count as one


def _first() -> NDArray[np.float32]:
    """Spread the measured rates over ranks, own match lengths and the longest match's lengths."""
    lengths = np.arange(LONGEST + 1)
    best, tied = np.interp(lengths, _LENGTHS, _BEST), np.interp(lengths, _LENGTHS, _TIED)
    behind = np.minimum(np.maximum(lengths[None, :] - lengths[:, None], 0), len(_BEHIND) - 1)
    left_over = np.minimum(1.0, (1.0 - best[None, :]) / (1.0 - best[:, None]))
    others = tied[:, None] * np.asarray(_BEHIND)[behind] * left_over
    return np.stack([np.broadcast_to(best, others.shape) * 1.0, *(others * share for share in _RANK[1:])]).astype(
        np.float32
    )


FIRST: NDArray[np.float32] = _first()
"""Chance of a first guess, float32 [rank, its match length, the longest match's length]."""

LATER: NDArray[np.float32] = np.interp(np.arange(LONGEST + 1), _LENGTHS, _LATER).astype(np.float32)
"""Chance of a next token after right ones, float32 [match length and depth]."""


class Calibration:
    """What became of guesses, by source and match length; recent evidence counts more.

    The odds of the tables are moved by the ratio of what was observed to what was expected: first for copies of every
    length, how they begin and how they go on, which adapts to a text within a few dozen tokens; then for each length,
    then for each source against that. Rare outcomes carry the evidence, so a rate near 1 is judged over many more
    guesses than one near a half.

    Attributes
    ----------
    evidence : EVIDENCE [kinds, roles, buckets + 1]
        Decayed sums; kind 0 is everything together, its last column all match lengths.
    """

    def __init__(self) -> None:
        self.evidence = np.zeros((_KINDS, 4, kernels.BUCKETS + 1), kernels.EVIDENCE)
        self._kinds = {"recycled": RECYCLED}

    def kind(self, source: str) -> int:
        """Return the number of a source."""
        found = self._kinds.get(source)
        return self._kinds.setdefault(source, min(len(self._kinds) + 1, _KINDS - 1)) if found is None else found

    @property
    def kinds(self) -> dict[str, int]:
        """Number of each source."""
        return dict(self._kinds)

    def restore(self, kinds: Any, evidence: NDArray[np.void]) -> None:
        """Take over what another has learnt: its kinds, and its evidence in one row.

        Raises
        ------
        ValueError
            For what no other can have learnt; kernels look up what stands here, so nothing else may.
        """
        if not isinstance(kinds, dict) or not all(type(one) is int and 0 < one < _KINDS for one in kinds.values()):
            raise ValueError(f"the kinds {kinds!r:.60} are no numbers of sources; allowed are 1 to {_KINDS - 1}")
        if evidence.size != self.evidence.size:
            raise ValueError(f"the evidence has {evidence.size} rows; allowed are {self.evidence.size}")
        if not all(np.all(np.isfinite(evidence[name]) & (evidence[name] >= 0)) for name in evidence.dtype.names or ()):
            raise ValueError("the evidence has sums that are no finite numbers, 0 and above")
        self._kinds = dict(kinds)
        self.evidence[:] = evidence.reshape(self.evidence.shape)

    def tables(self, successors: Successors) -> kernels.Tables:
        """Return what the kernels look chances up in."""
        return FIRST, LATER, self.evidence, successors.rows

    def learn(self, texts: kernels.Texts, places: NDArray[np.void], successors: Successors, said: list[int]) -> None:
        """Compare what candidates would have drafted with what was said.

        Parameters
        ----------
        texts : (int32 [length], int32 [m])
            What the places point into; the same as they were ranked for.
        places : PLACE [n]
            All candidates, the best guess first.
        successors : Successors
            What else might have come.
        said : list of int
            What the target said.
        """
        if len(texts[0]) and said:
            kernels.score(texts, places, self.tables(successors), np.asarray(said, np.int32))

"""What the model itself almost said: each token's likeliest successors, for text that is no copy."""

from __future__ import annotations

import threading

import numpy as np
from numpy.typing import NDArray

from .recycling_kernels import SUCCESSOR, blend

__all__ = ["KEPT", "Successors"]

KEPT = 8  # successors of each token
_BLOCK = 16384
_BORROWED = 0.3  # what a borrowed share is worth


class Successors:
    """Each token's likeliest successors, as the logits that verification computes anyway last showed them.

    Token Recycling (Luo et al., arXiv 2408.08696) keeps the last top-k of every token, also of draft tokens that were
    refused. Here a token's rows blend, with half the weight on what came last: more of what is said next stands among
    the first, and the shares are probabilities to go by.

    Attributes
    ----------
    rows : SUCCESSOR [tokens, KEPT]
        Of each token the successors, the likeliest first; a share of 0 where there are fewer. 64 bytes per token of
        the vocabulary: 9.6 MB for 150 thousand.
    """

    def __init__(self) -> None:
        self.rows = np.zeros((0, KEPT), SUCCESSOR)
        self._lock = threading.Lock()  # one model may serve several threads, and the kernel checks no bounds

    def learn(self, tokens: list[int], successors: NDArray[np.int64], shares: NDArray[np.float32]) -> None:
        """Hear what could have come after some tokens.

        Parameters
        ----------
        tokens : list of int, length n
            Those that count most last.
        successors : int64 [n, k]
            Different ones for each token, the likeliest first; k is at most KEPT.
        shares : float32 [n, k]
            Their probabilities.
        """
        found = np.zeros((len(tokens), KEPT), SUCCESSOR)
        width = successors.shape[1]
        found["token"][:, :width], found["share"][:, :width] = successors, shares
        with self._lock:
            self._reach(max(max(tokens), int(successors.max())))
            blend(self.rows, np.asarray(tokens, np.int32), found)

    def borrow(self, token: int, successors: NDArray[np.int64], shares: NDArray[np.float32]) -> None:
        """Give a token that has no successors those that could have come in its place, int64 [k] and float32 [k].

        What a model holds likely it often says one token later (LogitSpec, arXiv 2507.01449).
        """
        others = successors != token
        with self._lock:
            self._reach(max(token, int(successors.max())))
            row, count = self.rows[token], int(others.sum())
            if row["share"][0] == 0:
                row["token"][:count], row["share"][:count] = successors[others], _BORROWED * shares[others]

    def _reach(self, token: int) -> None:
        """Make room for a token."""
        if token >= len(self.rows):
            grown = np.zeros(((token // _BLOCK + 1) * _BLOCK, KEPT), SUCCESSOR)
            grown[: len(self.rows)] = self.rows
            self.rows = grown

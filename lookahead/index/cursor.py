"""What another stream matches in a suffix tree, followed token by token."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from . import suffix_tree_kernels as kernels
from .suffix_tree import CANDIDATE, SuffixTree

__all__ = ["Cursor"]


class Cursor:
    """Follows one stream through a tree that holds other texts, each closed with a border.

    The tree may grow by whole texts meanwhile; after `SuffixTree.forget` a cursor is void. One thread at a time.
    """

    def __init__(self, tree: SuffixTree) -> None:
        self._tree = tree
        self._state = np.zeros(kernels.STATE_FIELDS, np.int64)

    def advance(self, tokens: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Tell what the stream went on with: token ids, int32 [m], as `token_array` gives them.

        Returns
        -------
        places : int64 [m]
            For each token the position behind an occurrence of the longest match that ends with it.
        lengths : int32 [m]
            How long that match is.
        """
        places, lengths = np.empty(tokens.size, np.int64), np.empty(tokens.size, np.int32)
        kernels.follow(self._state, *self._tree.tables, tokens, places, lengths)
        return places, lengths

    @property
    def match_length(self) -> int:
        """Length of the longest end of the stream that the tree holds."""
        return int(self._state[kernels.LENGTH] - self._state[kernels.LEAF])

    def continuation(self, position: int, length: int) -> NDArray[np.int32]:
        """Copy up to `length` tokens of the tree from `position` on, int32; stops at a border."""
        return self._tree.continuation(position, length)

    def candidates(self, limit: int = 16, per_token: int = 4, longest: int = 64) -> NDArray[np.void]:
        """Places to copy from, CANDIDATE [at most limit], as `SuffixTree.candidates` gives them.

        A match longer than `longest` counts as one of that length: among all places that match so far, the latest come.
        """
        rows: NDArray[np.void] = np.empty(limit, CANDIDATE)
        state, tables = self._state, self._tree.tables
        if self.match_length > longest:
            state = state.copy()
            state[kernels.LEAF] = state[kernels.LENGTH] - longest
            state[kernels.ACTIVE], state[kernels.BELOW] = kernels.descend(*tables, 0, state[kernels.LEAF], longest)
        return rows[: kernels.candidates(state, *tables, rows, per_token)]

"""Candidates grow into a draft, best first by path probability."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..index.corpus import Corpus
from ..tree import Draft
from . import growth_kernels as kernels

__all__ = ["grow"]


def grow(
    corpus: Corpus,
    candidates: NDArray[np.void],
    tables: kernels.Tables,
    *,
    budget: int,
    width: int,
    least: float,
    vocabulary: int,
) -> tuple[Draft, NDArray[np.int64]]:
    """Grow a tree from the continuations of `candidates` and from what the model almost said.

    Opening the node with the highest path probability next gives, at every size, the tree with the highest expected
    number of accepted tokens (OPT-Tree, arXiv 2406.17276, section 3).

    Parameters
    ----------
    corpus : Corpus
        What the candidates point into.
    candidates : PLACE [n]
        Places to copy from, the best guess first.
    tables : Tables
        The chances of guesses, and what the model almost said.
    budget, width : int
        Most nodes, and most children of a node.
    least : float
        Path probability below which no node is wanted.
    vocabulary : int
        Tokens from here on end a continuation, as a border does.

    Returns
    -------
    draft : Draft
    places : int64 [len(draft)]
        The position that each token was copied from, -1 for one that is no copy.
    """
    nodes, groups = np.empty(budget, kernels.NODE), np.empty(len(candidates) + kernels.SPROUTS, kernels.GROUP)
    local = candidates.copy()
    local["position"] -= corpus.first
    count = kernels.grow(corpus.tokens, local, groups, tables, nodes, width, least, vocabulary)
    nodes = nodes[:count]
    used = nodes["candidate"].tolist()
    distinct = list(set(used) - {-1})
    names = dict(zip(distinct, corpus.sources(candidates["position"][distinct].tolist()), strict=True))
    names[-1] = "recycled"
    draft = Draft(
        tokens=np.ascontiguousarray(nodes["token"]),
        parents=np.ascontiguousarray(nodes["parent"]),
        probs=np.ascontiguousarray(nodes["prob"]),
        sources=tuple(names[one] for one in used),
    )
    return draft, np.where(nodes["candidate"] < 0, -1, nodes["place"] + corpus.first)

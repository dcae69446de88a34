"""Candidates grow into a draft, best first by path probability."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..index.corpus import Corpus
from ..tree import Draft
from . import growth_kernels as kernels
from .growth_kernels import GROUP, SPROUTS

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
    tokens, parents, chosen = np.empty(budget, np.int32), np.empty(budget, np.int32), np.empty(budget, np.int32)
    probs, places = np.empty(budget, np.float32), np.empty(budget, np.int64)
    nodes, groups = (tokens, parents, probs, chosen, places), np.empty(len(candidates) + SPROUTS, GROUP)
    count = kernels.grow(corpus.tokens, corpus.local(candidates), groups, tables, nodes, width, least, vocabulary)
    used, places = chosen[:count].tolist(), places[:count]
    if corpus.first:
        places[places >= 0] += corpus.first
    distinct = list({one for one in used if one >= 0})
    starts = candidates["position"].tolist()
    names = dict(zip(distinct, corpus.sources([starts[one] for one in distinct]), strict=True))
    names[-1] = "recycled"
    sources = tuple(map(names.__getitem__, used))
    return Draft(tokens=tokens[:count], parents=parents[:count], probs=probs[:count], sources=sources), places

"""Candidates grow into a draft, best first by path probability."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..index.corpus import Corpus
from ..tree import Draft
from . import growth_kernels as kernels
from .candidates import Candidates
from .growth_kernels import GROUP, SPROUTS

__all__ = ["grow"]


def grow(
    corpus: Corpus,
    candidates: Candidates,
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
    candidates : Candidates
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
        The position that each token was copied from, as in the candidates; -1 for one that is no copy.
    """
    tokens, parents, chosen = np.empty(budget, np.int32), np.empty(budget, np.int32), np.empty(budget, np.int32)
    probs, at = np.empty(budget, np.float32), np.empty(budget, np.int64)
    places, texts = corpus.local(candidates.places), (corpus.tokens, candidates.excerpts)
    nodes, groups = (tokens, parents, probs, chosen, at), np.empty(len(places) + SPROUTS, GROUP)
    count = kernels.grow(texts, places, groups, tables, nodes, width, least, vocabulary)
    used, at = chosen[:count].tolist(), at[:count]
    if corpus.first:
        at[at >= 0] += corpus.first
    names = _sources(corpus, candidates, [*{*used} - {-1}])
    names[-1] = "recycled"
    sources = tuple(map(names.__getitem__, used))
    return Draft(tokens=tokens[:count], parents=parents[:count], probs=probs[:count], sources=sources), at


def _sources(corpus: Corpus, candidates: Candidates, chosen: list[int]) -> dict[int, str]:
    """Name where the tokens of some candidates are from."""
    positions, end = candidates.places["position"].tolist(), len(corpus)
    own = [one for one in chosen if positions[one] < end]
    names = dict(zip(own, corpus.sources([positions[one] for one in own]), strict=True))
    return names | {one: candidates.foreign(positions[one])[0].source for one in chosen if one not in names}

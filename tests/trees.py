"""Drafts for tests: random trees, and trees written down as nested dicts."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from lookahead import Draft


@st.composite
def drafts(draw: st.DrawFn, most: int = 12, vocabulary: int = 61) -> Draft:
    """Give a draft of at most `most` nodes, siblings with different tokens."""
    parents: list[int] = []
    tokens: list[int] = []
    for node in range(draw(st.integers(0, most))):
        parent = draw(st.integers(-1, node - 1))
        taken = {token for token, other in zip(tokens, parents, strict=True) if other == parent}
        tokens.append(draw(st.integers(0, vocabulary - 1).filter(lambda token, taken=taken: token not in taken)))
        parents.append(parent)
    return draft_of(tokens, parents)


def draft_of(tokens: list[int], parents: list[int]) -> Draft:
    """Give a draft whose probabilities and sources do not matter; node i comes from the source "place i"."""
    sources = tuple(f"place {node}" for node in range(len(tokens)))
    probs = np.full(len(tokens), 0.5, np.float32)
    return Draft(np.array(tokens, np.int32), np.array(parents, np.int32), probs, sources)


def tree(nested: dict[int, Any]) -> Draft:
    """Give the draft of ``{token: {token: ...}}``, depth first."""
    tokens: list[int] = []
    parents: list[int] = []

    def grow(children: dict[int, Any], parent: int) -> None:
        for token, below in children.items():
            tokens.append(token)
            parents.append(parent)
            grow(below, len(tokens) - 1)

    grow(nested, -1)
    return draft_of(tokens, parents)


def path_to(draft: Draft, node: int) -> list[int]:
    """Give the nodes from the root down to `node`, found by climbing."""
    path = [node]
    while draft.parents[path[0]] >= 0:
        path.insert(0, int(draft.parents[path[0]]))
    return path

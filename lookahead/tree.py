"""The two nouns that travel between the rooms: a `Draft` goes forward to the model, an `Accepted` comes back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Accepted", "Draft"]


@dataclass(frozen=True, eq=False)
class Draft:
    """Proposed tokens as a tree; a chain is a tree with one branch.

    A parent stands before its children and siblings carry different tokens, so a target token chooses at most one
    child. Draws on the layout that Arctic's suffix decoding uses for its drafts (tokens, parents, probs).

    A draft is a guess, and nobody has to trust it: verification takes the part of it that is `sound`. So a drafter
    that lies, in whatever field, costs time; it changes no token, no draw and no call, and raises nothing.

    Attributes
    ----------
    tokens : int32 [n]
        The proposed token ids.
    parents : int32 [n]
        Index of each node's parent in the draft, -1 for a child of the last known token.
    probs : float32 [n]
        Estimated probability, given the context, that the target accepts the node (and so its whole path).
    sources : tuple of str, length n
        Where each token was copied from: ``"prompt"``, ``"output"``, ...
    drawn_from : Tensor [n, vocabulary] or None
        The distribution that each node was drawn from, of siblings that of the first, the others being drawn from it
        without those before. None where nothing was drawn: a copied token is certain of itself.
    """

    tokens: NDArray[np.int32]
    parents: NDArray[np.int32]
    probs: NDArray[np.float32]
    sources: tuple[str, ...]
    drawn_from: Any = None

    def __post_init__(self) -> None:
        """Refuse arrays of different lengths."""
        sizes = {len(self.tokens), len(self.parents), len(self.probs), len(self.sources)}
        if len(sizes) != 1:
            raise ValueError(
                f"a Draft needs tokens, parents, probs and sources of one length, got {len(self.tokens)}, "
                f"{len(self.parents)}, {len(self.probs)} and {len(self.sources)}"
            )

    @classmethod
    def empty(cls) -> Draft:
        """Return the draft that proposes nothing."""
        return _EMPTY

    @classmethod
    def chain(cls, tokens: ArrayLike, probs: ArrayLike | None = None, source: str = "prompt") -> Draft:
        """Return a draft of one branch.

        Parameters
        ----------
        tokens : int [n]
            The proposed token ids, in order.
        probs : float [n], optional
            Probability that the node is accepted; 1 when left out.
        source : str
            Where the tokens were copied from.
        """
        ids = np.asarray(tokens, dtype=np.int32)
        chances = np.ones(len(ids)) if probs is None else probs
        return cls(
            tokens=ids,
            parents=np.arange(-1, len(ids) - 1, dtype=np.int32),
            probs=np.asarray(chances, dtype=np.float32),
            sources=(source,) * len(ids),
        )

    def __len__(self) -> int:
        """Return the number of nodes."""
        return len(self.tokens)

    @property
    def is_chain(self) -> bool:
        """Whether every node is the child of the node before it."""
        return bool((self.parents == np.arange(-1, len(self) - 1)).all())

    @property
    def depths(self) -> NDArray[np.int32]:
        """Number of ancestors of each node plus one, int32 [n]: 1 for a child of the last known token."""
        depths = np.ones(len(self), dtype=np.int32)
        for node, parent in enumerate(self.parents.tolist()):
            if parent >= 0:
                depths[node] = depths[parent] + 1
        return depths

    @property
    def ancestors(self) -> NDArray[np.bool_]:
        """Which nodes each node sees, bool [n, n]: itself and the nodes on the way to the root."""
        seen = np.eye(len(self), dtype=np.bool_)
        for node, parent in enumerate(self.parents.tolist()):
            if parent >= 0:
                seen[node] |= seen[parent]
        return seen

    def children(self) -> list[dict[int, int]]:
        """Return for the root (entry 0) and each node i (entry i + 1) its children as ``{token: node}``."""
        table: list[dict[int, int]] = [{} for _ in range(len(self) + 1)]
        for node, (token, parent) in enumerate(zip(self.tokens.tolist(), self.parents.tolist(), strict=True)):
            table[parent + 1][token] = node
        return table

    def follow(self, tokens: list[int]) -> list[int]:
        """Return the nodes that `tokens` walk through, from the root until the first token that is no child."""
        path, at, node = list[int](), -1, 0
        known, parents = self.tokens.tolist(), self.parents.tolist()
        for wanted in tokens:
            while node < len(known) and (parents[node] != at or known[node] != wanted):
                node += 1
            if node == len(known):
                break
            path.append(node)
            at, node = node, node + 1
        return path

    def truncate(self, budget: int) -> Draft:
        """Return the draft's first `budget` nodes, itself a valid draft since parents stand before children."""
        if budget >= len(self):
            return self
        drawn_from = None if self.drawn_from is None else self.drawn_from[:budget]
        return Draft(
            self.tokens[:budget], self.parents[:budget], self.probs[:budget], self.sources[:budget], drawn_from
        )

    def sound(self, vocabulary: int, budget: int, branches: bool) -> Draft:
        """Return the longest part from the first node on that a forward can verify: all of an honest draft.

        Nodes keep their numbers. Probabilities and sources are not looked at: nothing that is emitted depends on them.

        Parameters
        ----------
        vocabulary : int
            Tokens from here on, and negative ones, are unknown to the model.
        budget : int
            Most nodes.
        branches : bool
            Whether siblings can be verified; otherwise every node has to be the child of the node before it.
        """
        if not len(self):
            return self
        before = np.arange(-1, len(self) - 1)
        fits = (self.parents >= -1) & (self.parents <= before) if branches else self.parents == before
        fits &= (self.tokens >= 0) & (self.tokens < vocabulary)
        return self.truncate(budget if fits.all() else min(budget, int(fits.argmin())))


_EMPTY = Draft.chain([])


@dataclass(frozen=True, eq=False)
class Accepted:
    """What became of a draft.

    Attributes
    ----------
    tokens : list of int
        The tokens that the target emitted in this step: the accepted ones, then usually one of its own (the bonus).
    path : list of int
        The accepted nodes of the draft, from the root down; ``tokens[:len(path)]`` are their tokens.
    finished : bool
        Whether the last of `tokens` ended the generation.
    seconds : float or None
        What the forward and the walk took; None where no clock is to be heard.
    successors : callable or None
        ``successors(k)`` tells what the target would say behind m nodes of the draft, accepted or not, those that count
        most at the end: the nodes, -1 for the last known token; their k likeliest successors, int [m, k], in order;
        and the probabilities of these, float [m, k]. Computed when asked for.
    draft : Draft or None
        The draft that was verified, which `path` is about; None stands for all of what was proposed last.
    """

    tokens: list[int]
    path: list[int] = field(default_factory=list)
    finished: bool = False
    seconds: float | None = None
    successors: Callable[[int], tuple[list[int], NDArray[Any], NDArray[Any]]] | None = None
    draft: Draft | None = None

    @property
    def cached(self) -> list[int]:
        """The nodes whose keys and values stay: all tokens but the last, which is fed with the next draft."""
        return self.path[: len(self.tokens) - 1]

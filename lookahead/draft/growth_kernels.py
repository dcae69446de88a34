"""Kernels that grow a draft out of the continuations of several candidates."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from .._jit import kernel

Number: TypeAlias = int | np.int64

NODE = np.dtype(
    [("token", np.int32), ("parent", np.int32), ("prob", np.float32), ("candidate", np.int32), ("place", np.int64)]
)
GROUP = np.dtype([("leader", np.int32), ("depth", np.int32), ("parent", np.int32), ("prob", np.float64)])
LONGEST = 64  # match lengths are told apart up to here
RANKS = 4  # guesses at one node told apart
UNDIVIDED = -2  # leader of all candidates at the root


@kernel
def place_of(length: int, position: int, depth: Number) -> Number:
    """Place `depth` tokens after `position`; a copy that meets the end of the text repeats itself, as in LZ77."""
    place = position + depth
    return place if place < length else position + depth % (length - position)


@kernel
def divide(
    text: NDArray[np.int32],
    candidates: NDArray[np.void],
    groups: NDArray[np.void],
    tables: tuple[NDArray[np.float32], NDArray[np.float32]],
    path: tuple[Number, Number, float],
    width: int,
    vocabulary: int,
) -> None:
    """Divide the candidates of one path by their next token, and give each group its chance to be right.

    `path` is (leader of its candidates, its last node or -1, its probability). The first candidate of a group leads it;
    a candidate whose next token is none below `vocabulary`, or beyond `width` groups, is out (leader -1). Below the
    root the first group has just been right, which the second table knows; all others are first guesses of their rank.
    """
    first, later = tables
    old, node, prob = path
    depth = groups[old]["depth"] + 1 if node >= 0 else 0
    rank, top = 0, 0
    for one in range(len(candidates)):
        if groups[one]["leader"] != old:
            continue
        token, leader = text[place_of(len(text), candidates[one]["position"], depth)], -1
        for other in range(one):
            leads = groups[other]["leader"] == other and groups[other]["parent"] == node
            if leads and text[place_of(len(text), candidates[other]["position"], depth)] == token:
                leader = other
        if leader < 0 and 0 <= token < vocabulary and rank < width:
            length = min(candidates[one]["match_length"] + depth, LONGEST)
            top = max(top, length)
            chance = later[length] if depth > 0 and rank == 0 else first[min(rank, RANKS - 1), length, top]
            groups[one]["depth"], groups[one]["parent"], groups[one]["prob"] = depth, node, prob * chance
            leader, rank = one, rank + 1
        groups[one]["leader"] = leader


@kernel
def grow(
    text: NDArray[np.int32],
    candidates: NDArray[np.void],
    groups: NDArray[np.void],
    tables: tuple[NDArray[np.float32], NDArray[np.float32]],
    nodes: NDArray[np.void],
    width: int,
    least: float,
    vocabulary: int,
) -> int:
    """Fill `nodes` best first by path probability, while that is at least `least`; return how many there are.

    Every group of candidates stands for one node that could come next, so the frontier is never longer than the
    candidates. A node has at most `width` children.
    """
    for one in range(len(candidates)):
        groups[one]["leader"], groups[one]["parent"] = UNDIVIDED, UNDIVIDED
    divide(text, candidates, groups, tables, (np.int64(UNDIVIDED), np.int64(-1), 1.0), width, vocabulary)
    for node in range(len(nodes)):
        best: Number = np.int64(-1)
        for one in range(len(candidates)):
            if groups[one]["leader"] == one and (best < 0 or groups[one]["prob"] > groups[best]["prob"]):
                best = one
        if best < 0 or groups[best]["prob"] < least:
            return node
        place = place_of(len(text), candidates[best]["position"], np.int64(groups[best]["depth"]))
        prob = groups[best]["prob"]
        nodes[node]["token"], nodes[node]["parent"] = text[place], groups[best]["parent"]
        nodes[node]["prob"], nodes[node]["candidate"], nodes[node]["place"] = prob, best, place
        divide(text, candidates, groups, tables, (best, node, prob), width, vocabulary)
    return len(nodes)

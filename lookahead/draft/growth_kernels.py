"""Kernels that grow a draft out of the continuations of several places, and score these when the truth is known."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from .._jit import kernel

Number: TypeAlias = int | np.int64
Real: TypeAlias = float | np.float32
Texts: TypeAlias = tuple[NDArray[np.int32], NDArray[np.int32]]
Tables: TypeAlias = tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.void], NDArray[np.void]]
Nodes: TypeAlias = tuple[
    NDArray[np.int32], NDArray[np.int32], NDArray[np.float32], NDArray[np.int32], NDArray[np.int64]
]  # token, parent, path probability, candidate and place of each node

PLACE = np.dtype([("position", np.int64), ("match_length", np.int32), ("kind", np.int32)])
GROUP = np.dtype(
    [("leader", np.int32), ("depth", np.int32), ("parent", np.int32), ("token", np.int32), ("prob", np.float64)]
)
EVIDENCE = np.dtype([("hits", np.float64), ("expected", np.float64), ("trials", np.float64)])
LONGEST = 64  # match lengths are told apart up to here
RANKS = 4  # guesses at one node told apart
OUT, UNDIVIDED = -1, -2  # leaders of what is no guess any more, and of all candidates at the root
BEST, OTHER, NEXT, SPROUT = 0, 1, 2, 3  # evidence is kept apart for best and other first guesses, later, no copies
RECYCLED = 1  # the kind of a sprout
SPROUTS = 256  # most guesses at one time that are no copies
LEAST = 0.001  # of the probability is always left for what is no copy
SUREST = 0.9  # share of a successor beyond which it is believed no more
BUCKETS = 13  # of match lengths
SHORT = 6  # buckets of lengths below 8
STRENGTH = 1.0  # rare outcomes (a miss of a good guess, a hit of a bad one) that the expectation is worth
GENERAL, SPECIAL = 8.0, 25.0  # rare outcomes over which evidence is forgotten: of all kinds, of one kind


@kernel
def place_of(length: int, position: int, depth: Number) -> Number:
    """Place `depth` tokens after `position`; a copy that meets the end of the text repeats itself, as in LZ77."""
    place = position + depth
    return place if place < length else position + depth % (length - position)


@kernel
def token_at(texts: Texts, position: int, depth: Number) -> Number:
    """Token `depth` places after `position`: in the text, or from its length on in the excerpts; -1 behind these."""
    text, excerpts = texts
    if position < len(text):
        return np.int64(text[place_of(len(text), position, depth)])
    place = position + depth - len(text)
    return np.int64(excerpts[place]) if place < len(excerpts) else np.int64(-1)


@kernel
def bucket_of(length: Number) -> Number:
    """Bucket of a match length: 0, 1, 2, 3, 4-5, 6-7, 8-11, 12-15, 16-23, ..., 48-63, 64."""
    half = np.int64(0)
    while length >= 4:
        length >>= 1
        half += 2
    return half + length


@kernel
def corrected(chance: float, cell: NDArray[np.void]) -> float:
    """Move a chance's odds by as much as what was observed differs from what was expected; `cell` is EVIDENCE []."""
    if cell["trials"] <= 0.0:
        return chance
    expected = min(max(cell["expected"] / cell["trials"], 1e-4), 1.0 - 1e-4)
    strength = STRENGTH / min(expected, 1.0 - expected)
    observed = (cell["hits"] + strength * expected) / (cell["trials"] + strength)
    observed = min(max(observed, 1e-4), 1.0 - 1e-4)
    odds = observed * (1.0 - expected) / (expected * (1.0 - observed))
    moved: float = chance * odds / (1.0 - chance + chance * odds)
    return moved


@kernel
def chance_of(tables: Tables, kind: Number, role: Number, length: Number, raw: Real) -> float:
    """Chance of a guess, given its chance by the tables: corrected by the evidence of all kinds, then of its kind."""
    evidence = tables[2]
    bucket = bucket_of(length)
    chance = corrected(np.float64(raw), evidence[0, role, BUCKETS + (bucket >= SHORT)])
    return corrected(corrected(chance, evidence[0, role, bucket]), evidence[kind, role, bucket])


@kernel
def divide(
    texts: Texts,
    places: NDArray[np.void],
    groups: NDArray[np.void],
    tables: Tables,
    path: tuple[Number, Number, float],
    width: int,
    vocabulary: int,
) -> None:
    """Divide the candidates of one path by their next token, and give each group its chance to be right.

    `path` is (leader of its candidates, its last node or -1, its probability). The first candidate of a group leads it;
    a candidate whose next token is none below `vocabulary`, or beyond `width` groups, is out (leader -1). Below the
    root the first group has just been right, which the second table knows; all others are first guesses of their rank.
    """
    first, later = tables[0], tables[1]
    old, node, prob = path
    depth = groups[old]["depth"] + 1 if node >= 0 else 0
    rank, top = 0, 0
    for one in range(len(places)):
        if groups[one]["leader"] != old:
            continue
        token, leader = token_at(texts, places[one]["position"], depth), -1
        for other in range(one):
            leads = groups[other]["leader"] == other and groups[other]["parent"] == node
            if leads and token_at(texts, places[other]["position"], depth) == token:
                leader = other
        if leader < 0 and 0 <= token < vocabulary and rank < width:
            length, kind = min(places[one]["match_length"] + depth, LONGEST), places[one]["kind"]
            top = max(top, length)
            if depth > 0 and rank == 0:
                chance = chance_of(tables, np.int64(kind), np.int64(NEXT), np.int64(length), later[length])
            else:
                raw, role = first[min(rank, RANKS - 1), length, top], np.int64(BEST if rank == 0 else OTHER)
                chance = chance_of(tables, np.int64(kind), role, np.int64(length), raw)
            groups[one]["depth"], groups[one]["parent"] = depth, node
            groups[one]["token"], groups[one]["prob"] = token, prob * chance
            leader, rank = one, rank + 1
        groups[one]["leader"] = leader


@kernel
def sprout(
    groups: NDArray[np.void],
    count: int,
    used: int,
    tables: Tables,
    path: tuple[Number, Number, float],
    least: float,
    vocabulary: int,
) -> int:
    """Add the successors of one path's last token to the groups, from row `used` on; return how many are used then.

    `path` is (its last token, its last node or -1, its probability). What the `count` candidates foresee there is no
    sprout; the successors share the probability that they leave.
    """
    last, node, prob = path
    if not 0 <= last < len(tables[3]) or prob < least:
        return used
    left = 1.0
    for one in range(count):
        if groups[one]["leader"] == one and groups[one]["parent"] == node:
            left -= groups[one]["prob"] / prob
    for slot in range(tables[3].shape[1]):
        token, share = tables[3][last, slot]["token"], tables[3][last, slot]["share"]
        if share <= 0.0 or used == len(groups):
            break
        is_new = token < vocabulary
        for one in range(count):
            if groups[one]["leader"] == one and groups[one]["parent"] == node and groups[one]["token"] == token:
                is_new = False
        chance = prob * recycled_chance(tables, share, left)
        if is_new and chance >= least:
            groups[used]["leader"], groups[used]["depth"], groups[used]["parent"] = used, 0, node
            groups[used]["token"], groups[used]["prob"] = token, chance
            used += 1
    return used


@kernel
def recycled(share: float, left: float) -> Real:
    """Chance of a successor with a share of the probability that is left, before all evidence."""
    return np.float32(min(share, SUREST) * max(left, LEAST))


@kernel
def recycled_chance(tables: Tables, share: float, left: float) -> float:
    """Chance of a successor with a share of the probability that is left."""
    length = np.int64(LONGEST * share)
    chance: float = chance_of(tables, np.int64(RECYCLED), np.int64(SPROUT), length, recycled(share, left))
    return chance


@kernel
def grow(
    texts: Texts,
    places: NDArray[np.void],
    groups: NDArray[np.void],
    tables: Tables,
    nodes: Nodes,
    width: int,
    least: float,
    vocabulary: int,
) -> int:
    """Fill `nodes` best first by path probability, while that is at least `least`; return how many there are.

    Every group of candidates stands for one node that could come next, and so does every row of `groups` behind the
    candidates', where the successors sprout. A node has at most `width` children; one that is no copy has the candidate
    and the place -1.
    """
    for one in range(len(groups)):
        groups[one]["leader"], groups[one]["parent"] = (UNDIVIDED if one < len(places) else OUT), UNDIVIDED
    text = texts[0]
    divide(texts, places, groups, tables, (np.int64(UNDIVIDED), np.int64(-1), 1.0), width, vocabulary)
    used = sprout(groups, len(places), len(places), tables, (text[-1], np.int64(-1), 1.0), least, vocabulary)
    tokens, parents, probs, candidates, at = nodes
    count, children = 0, np.zeros(len(tokens) + 1, np.int32)
    while count < len(tokens):
        best: Number = np.int64(-1)
        for one in range(used):
            if groups[one]["leader"] == one and (best < 0 or groups[one]["prob"] > groups[best]["prob"]):
                best = one
        if best < 0 or groups[best]["prob"] < least:
            return count
        parent, token, prob = groups[best]["parent"], groups[best]["token"], groups[best]["prob"]
        if children[parent + 1] >= width:
            groups[best]["leader"] = OUT
            continue
        children[parent + 1] += 1
        tokens[count], parents[count], probs[count] = token, parent, prob
        if best < len(places):
            position, depth = places[best]["position"], np.int64(groups[best]["depth"])
            place = place_of(len(text), position, depth) if position < len(text) else position + depth
            candidates[count], at[count] = best, place
            divide(texts, places, groups, tables, (best, np.int64(count), prob), width, vocabulary)
        else:
            candidates[count], at[count] = -1, -1
            groups[best]["leader"] = OUT
        used = sprout(groups, len(places), used, tables, (token, np.int64(count), prob), least, vocabulary)
        count += 1
    return count


@kernel
def observe(tables: Tables, kind: Number, role: Number, length: Number, raw: Real, hit: bool) -> None:
    """Add one trial to the evidence: each cell's expectation knows what the cells before it knew."""
    bucket, rarity = bucket_of(length), min(raw, 1.0 - raw)
    chance: float = np.float64(raw)
    for step in range(3):
        column = BUCKETS + (bucket >= SHORT) if step == 0 else bucket
        cell = tables[2][kind if step == 2 else 0, role, column]
        expected = chance
        chance = corrected(chance, cell)
        kept = 1.0 - rarity / (SPECIAL if step == 2 else GENERAL)
        cell["hits"] = cell["hits"] * kept + hit
        cell["expected"] = cell["expected"] * kept + expected
        cell["trials"] = cell["trials"] * kept + 1.0


@kernel
def score(texts: Texts, places: NDArray[np.void], tables: Tables, said: NDArray[np.int32]) -> None:
    """Compare all candidates with what was really `said`, int32 [m], sent to the model or not; add to the evidence.

    Every first guess counts, of each distinct token the first candidate's; later ones while the first candidate that
    foresaw everything so far goes on.
    """
    first, later, text = tables[0], tables[1], texts[0]
    tokens = np.empty(len(places), np.int32)
    rank, top, left = 0, 0, 1.0
    for one in range(len(places)):
        tokens[one] = token_at(texts, places[one]["position"], np.int64(0))
        if tokens[one] < 0 or (tokens[:one] == tokens[one]).any():
            continue
        length = min(places[one]["match_length"], LONGEST)
        top = max(top, length)
        raw, role = first[min(rank, RANKS - 1), length, top], np.int64(BEST if rank == 0 else OTHER)
        left -= chance_of(tables, np.int64(places[one]["kind"]), role, np.int64(length), raw)
        observe(tables, np.int64(places[one]["kind"]), role, np.int64(length), raw, tokens[one] == said[0])
        rank += 1
    for slot in range(tables[3].shape[1] if 0 <= text[-1] < len(tables[3]) else 0):
        token, share = tables[3][text[-1], slot]["token"], tables[3][text[-1], slot]["share"]
        if share > 0.0 and not (tokens == token).any():
            length, raw = np.int64(LONGEST * share), recycled(share, left)
            observe(tables, np.int64(RECYCLED), np.int64(SPROUT), length, raw, token == said[0])
    one, depth, counted = 0, 0, 0
    while one < len(places) and depth < len(said):
        token = token_at(texts, places[one]["position"], np.int64(depth))
        if depth > counted and token >= 0:
            counted = depth
            length = np.int64(min(places[one]["match_length"] + depth, LONGEST))
            observe(tables, np.int64(places[one]["kind"]), np.int64(NEXT), length, later[length], token == said[depth])
        if token == said[depth]:
            depth += 1
            continue
        one += 1  # the next candidate that foresaw everything so far
        while one < len(places):
            right = 0
            while right < depth and token_at(texts, places[one]["position"], np.int64(right)) == said[right]:
                right += 1
            if right == depth:
                break
            one += 1

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lookahead.draft import growth_kernels as kernels
from lookahead.draft.calibration import FIRST, LATER
from lookahead.draft.drafter import Drafter
from lookahead.draft.growth import grow
from lookahead.index.corpus import Corpus
from lookahead.index.suffix_tree import CANDIDATE
from tests import twins

TABLES = (FIRST, LATER)
FLAT = (np.full_like(FIRST, 0.5), np.full_like(LATER, 0.5))  # ties everywhere
STREAMS = st.lists(st.sampled_from([0, 0, 0, 1, 1, 2, 7, -1]), min_size=1, max_size=30)


@st.composite
def copies(draw: st.DrawFn) -> tuple[list[int], list[twins.Pair]]:
    """Give a stream with borders, and places in it, many near its end, with the lengths of their matches."""
    stream = draw(STREAMS)
    positions = st.integers(0, len(stream) - 1) | st.integers(max(0, len(stream) - 3), len(stream) - 1)
    return stream, draw(st.lists(st.tuples(positions, st.integers(1, 90)), max_size=17))


def rows(places: list[twins.Pair]) -> Any:
    return np.array([(position, length, 1) for position, length in places], CANDIDATE)


def frozen(stream: list[int]) -> Any:
    """Give the stream as the corpus does: for writable arrays the kernels would be compiled once more."""
    text = np.array(stream, np.int32)
    text.flags.writeable = False
    return text


def undivided(count: int) -> Any:
    groups = np.zeros(count, kernels.GROUP)
    groups["leader"] = groups["parent"] = kernels.UNDIVIDED
    return groups


def grown(
    stream: list[int],
    places: list[twins.Pair],
    tables: Any,
    budget: int,
    width: int,
    least: float,
    vocabulary: int = 2**31,
) -> list[tuple[Any, ...]]:
    nodes = np.zeros(budget, kernels.NODE)
    groups = undivided(len(places))
    count = kernels.grow(frozen(stream), rows(places), groups, tables, nodes, width, least, vocabulary)
    return [tuple(row) for row in nodes[:count][["token", "parent", "prob", "candidate", "place"]].tolist()]


def rounded(nodes: list[twins.Grown]) -> list[twins.Grown]:
    """Give the nodes with their probabilities in the record's float32."""
    return [(token, parent, float(np.float32(prob)), *rest) for token, parent, prob, *rest in nodes]


@given(st.integers(1, 40), st.data(), st.integers(0, 200))
def test_place_of(length: int, data: st.DataObject, depth: int) -> None:
    position = data.draw(st.integers(0, length - 1))
    assert kernels.place_of(length, position, depth) == twins.place_of(length, position, depth)


VOCABULARIES = st.sampled_from([2**31, 8, 7, 1])  # 1 leaves none but 0


@given(copies(), st.integers(1, 5), st.floats(0.01, 1.0), VOCABULARIES)
def test_divide(drawn: tuple[list[int], list[twins.Pair]], width: int, prob: float, vocabulary: int) -> None:
    stream, places = drawn
    groups, text = undivided(len(places)), frozen(stream)
    expected: list[tuple[list[int], float]] = [([*range(len(places))], prob)]
    old = kernels.UNDIVIDED
    for depth in range(4):  # the root, then down the first group each time
        members = expected[0][0] if expected else []
        expected = twins.divide(stream, places, members, depth, prob, TABLES, width, vocabulary)
        kernels.divide(text, rows(places), groups, TABLES, (old, depth - 1, prob), width, vocabulary)
        for group, chance in expected:
            leader = group[0]
            assert [one for one in members if groups["leader"][one] == leader] == group
            assert groups[leader].tolist() == (leader, depth, depth - 1, pytest.approx(chance, rel=1e-7))
        out = [one for one in members if not any(one in group for group, _ in expected)]
        assert [one for one in members if groups["leader"][one] == -1] == out
        if not expected:
            break
        old = expected[0][0][0]


@given(
    copies(),
    st.sampled_from([TABLES, FLAT]),
    st.integers(0, 40),
    st.integers(1, 5),
    st.sampled_from([1e-6, 0.01, 0.1, 0.5, 0.9, 1.0]),
    VOCABULARIES,
)
@example(([1, 2, 1, 2], [(2, 2)]), TABLES, 12, 4, 0.01, 2**31)  # a copy that meets the end repeats itself
@example(([5], [(0, 1)]), TABLES, 9, 1, 1e-6, 2**31)  # period 1
@example(([1, -1, 1], [(1, 1)]), TABLES, 9, 4, 1e-6, 2**31)  # nothing but a border to copy
@example(([1, 2, 3, 1, 4], [(1, 1), (4, 1), (2, 1)]), FLAT, 9, 4, 0.1, 2**31)
def test_grow(
    drawn: tuple[list[int], list[twins.Pair]], tables: Any, budget: int, width: int, least: float, vocabulary: int
) -> None:
    stream, places = drawn
    expected = twins.grow(stream, places, tables, budget, width, least, vocabulary)
    assert grown(stream, places, tables, budget, width, least, vocabulary) == rounded(expected)


def test_a_copy_that_meets_the_end_of_the_text_repeats_itself() -> None:
    found = grown([9, 4, 5, 6], [(1, 60)], TABLES, 8, 1, 1e-6)
    assert [token for token, *_ in found] == [4, 5, 6, 4, 5, 6, 4, 5]
    assert [parent for _, parent, *_ in found] == [*range(-1, 7)]
    assert [place for *_, place in found] == [1, 2, 3, 1, 2, 3, 1, 2]


def test_no_node_where_the_budget_is_0_or_no_guess_is_likely_enough() -> None:
    assert grown([1, 2, 3], [(1, 3)], TABLES, 0, 4, 0.01) == []
    assert grown([1, 2, 3], [(1, 3)], TABLES, 5, 4, 1.0) == []
    assert grown([1, 2, 3], [], TABLES, 5, 4, 0.01) == []


def test_a_node_as_likely_as_the_threshold_is_grown() -> None:
    assert [prob for _, _, prob, *_ in grown([1, 2, 3], [(0, 3)], FLAT, 9, 4, 0.25)] == [0.5, 0.25]


def test_of_two_places_with_one_next_token_the_first_leads_until_they_part() -> None:
    stream = [1, 2, 3, 8, 1, 2, 4, 9]
    found = grown(stream, [(4, 30), (0, 30)], TABLES, 4, 4, 1e-6)
    assert [(token, parent) for token, parent, *_ in found[:2]] == [(1, -1), (2, 0)]
    assert {(token, parent) for token, parent, *_ in found[2:]} <= {(4, 1), (3, 1), (9, 2), (8, 3)}
    assert {token for token, *_ in grown(stream, [(4, 30), (0, 30)], FLAT, 4, 1, 1e-6)} == {1, 2, 4, 9}


def test_grow_gives_places_in_the_corpus_and_names_their_sources() -> None:
    corpus = Corpus()
    corpus.begin("prompt")
    corpus.extend([1, 2, 3])
    corpus.relabel("output")
    corpus.extend([4, 1, 2])
    draft, places = grow(corpus, corpus.candidates(), budget=4, width=1, least=1e-6, vocabulary=2**31)
    assert draft.tokens.tolist() == [3, 4, 1, 2]
    assert places.tolist() == [2, 3, 4, 5]
    assert draft.sources == ("prompt",) * 4  # the source of the place where the copy began
    assert (draft.tokens.dtype, draft.parents.dtype, draft.probs.dtype) == (np.int32, np.int32, np.float32)


@pytest.mark.compiled
def test_every_kernel_is_compiled_once() -> None:
    drafter = Drafter(min_probability=0.001)
    for prompt in ([1, 2, 3, 1, 2], np.arange(9) % 4, np.array([5] * 9, ">i4")):
        drafter.begin(prompt)
        for tree in (True, False):
            drafter.tree = tree
            for budget in (0, 1, np.int64(7), None):
                draft = drafter.propose(budget)
            drafter.accept(draft.tokens)
    drafter = Drafter(min_probability=1, tree=False)
    drafter.begin([1, 1, 1])
    drafter.propose()
    found = {name: thing.signatures for name, thing in vars(kernels).items() if hasattr(thing, "signatures")}
    assert sorted(found) == ["divide", "grow", "place_of"]
    assert not {name: signatures for name, signatures in found.items() if len(signatures) > 1}
    assert found["grow"]

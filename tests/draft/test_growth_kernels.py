from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lookahead.draft import growth_kernels as kernels
from lookahead.draft.calibration import FIRST, LATER, Calibration
from lookahead.draft.candidates import ranked
from lookahead.draft.drafter import Drafter
from lookahead.draft.growth import grow
from lookahead.draft.recycling import KEPT, Successors
from lookahead.index.corpus import Corpus
from tests import twins

UNSEEN = np.zeros((4, 4, kernels.BUCKETS + 2), kernels.EVIDENCE)
NOTHING = Successors().rows
TABLES = (FIRST, LATER, UNSEEN, NOTHING)
FLAT = (np.full_like(FIRST, 0.5), np.full_like(LATER, 0.5), UNSEEN, NOTHING)  # ties everywhere
KERNELS = (
    "bucket_of",
    "chance_of",
    "corrected",
    "divide",
    "grow",
    "observe",
    "place_of",
    "recycled",
    "recycled_chance",
    "score",
    "sprout",
    "token_at",
)
STREAMS = st.lists(st.sampled_from([0, 0, 0, 1, 1, 2, 7, -1]), min_size=1, max_size=30)


@st.composite
def copies(draw: st.DrawFn) -> tuple[twins.Texts, list[twins.Pair]]:
    """Give a stream with borders, excerpts, and places in both, many near the stream's end, with match lengths."""
    stream, excerpts = draw(STREAMS), draw(st.just([]) | STREAMS)
    positions = st.integers(0, len(stream) - 1) | st.integers(max(0, len(stream) - 3), len(stream) - 1)
    if excerpts:
        positions |= st.integers(len(stream), len(stream) + len(excerpts) - 1)
    return (stream, excerpts), draw(st.lists(st.tuples(positions, st.integers(1, 90), st.integers(1, 3)), max_size=17))


def evidence(seed: int) -> Any:
    """Give what some trials left behind; with the seed 0 there were none."""
    found, chance = UNSEEN.copy(), np.random.default_rng(seed)
    if seed:
        found["trials"] = chance.integers(0, 3, found.shape) * chance.random(found.shape) * 50
        found["hits"], found["expected"] = (chance.random(found.shape) * found["trials"] for _ in range(2))
    return found


def successors(seed: int) -> Any:
    """Give the successors of the tokens 0 to 7, no two of a token equally likely; with the seed 0 there are none."""
    if not seed:
        return NOTHING
    found, chance = Successors(), np.random.default_rng(seed)
    tokens = [token for token in range(8) if chance.random() < 0.7]
    for token in tokens:
        shares = np.sort(chance.random((1, KEPT)))[:, ::-1] * chance.random()
        found.learn([token], np.stack([chance.permutation(10)[:KEPT]]), shares / max(1, shares.sum()))
    return found.rows


def rows(places: list[twins.Pair]) -> Any:
    return np.array(places, kernels.PLACE)


def frozen(texts: twins.Texts) -> Any:
    """Give the stream as the corpus does, read-only: for writable arrays the kernels would be compiled once more."""
    text, excerpts = (np.array(each, np.int32) for each in texts)
    text.flags.writeable = False
    return text, excerpts


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
    excerpts: Sequence[int] = (),
) -> list[tuple[Any, ...]]:
    kinds = (np.int32, np.int32, np.float32, np.int32, np.int64)
    nodes = tuple(np.zeros(budget, kind) for kind in kinds)
    groups = np.zeros(len(places) + kernels.SPROUTS, kernels.GROUP)
    count = kernels.grow(
        frozen((stream, list(excerpts))), rows(places), groups, tables, nodes, width, least, vocabulary
    )
    return list(zip(*(column[:count].tolist() for column in nodes), strict=True))


@given(st.integers(1, 40), st.data(), st.integers(0, 200))
def test_place_of(length: int, data: st.DataObject, depth: int) -> None:
    position = data.draw(st.integers(0, length - 1))
    assert kernels.place_of(length, position, depth) == twins.place_of(length, position, depth)


VOCABULARIES = st.sampled_from([2**31, 8, 7, 1])  # 1 leaves none but 0


@given(copies(), st.integers(1, 5), st.floats(0.01, 1.0), VOCABULARIES)
def test_divide(drawn: tuple[twins.Texts, list[twins.Pair]], width: int, prob: float, vocabulary: int) -> None:
    texts, places = drawn
    groups, frozen_texts = undivided(len(places)), frozen(texts)
    expected: list[tuple[list[int], float]] = [([*range(len(places))], prob)]
    old = kernels.UNDIVIDED
    for depth in range(4):  # the root, then down the first group each time
        members = expected[0][0] if expected else []
        expected = twins.divide(texts, places, members, depth, prob, TABLES, width, vocabulary)
        kernels.divide(frozen_texts, rows(places), groups, TABLES, (old, depth - 1, prob), width, vocabulary)
        for group, chance in expected:
            leader = group[0]
            assert [one for one in members if groups["leader"][one] == leader] == group
            _, token = twins.walk_on(texts, places[leader][0], depth)
            assert groups[leader].tolist() == (leader, depth, depth - 1, token, pytest.approx(chance, rel=1e-7))
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
    st.integers(0, 5),
    st.integers(0, 9),
)
@example((([1, 2, 1, 2], []), [(2, 2, 1)]), TABLES, 12, 4, 0.01, 2**31, 0, 0)  # a copy meets the end
@example((([5], []), [(0, 1, 1)]), TABLES, 9, 1, 1e-6, 2**31, 0, 0)  # period 1
@example((([1, -1, 1], []), [(1, 1, 1)]), TABLES, 9, 4, 1e-6, 2**31, 0, 0)  # nothing but a border to copy
@example((([1, 2, 3, 1, 4], []), [(1, 1, 1), (4, 1, 2), (2, 1, 1)]), FLAT, 9, 4, 0.1, 2**31, 0, 0)
@example((([1, 2], []), []), TABLES, 30, 1, 1e-6, 2**31, 0, 3)  # nothing to copy
def test_grow(
    drawn: tuple[twins.Texts, list[twins.Pair]],
    tables: Any,
    budget: int,
    width: int,
    least: float,
    vocabulary: int,
    seed: int,
    recycled: int,
) -> None:
    texts, places = drawn
    tables = (*tables[:2], evidence(seed), successors(recycled))
    expected = twins.grow(texts, places, tables, budget, width, least, vocabulary)
    found = grown(texts[0], places, tables, budget, width, least, vocabulary, texts[1])
    assert [row[2] for row in found] == pytest.approx([row[2] for row in expected], rel=1e-6)
    least = found[-1][2] * (1 + 1e-6) if found and len(found) == budget else 0.0  # where it ends, rounding may decide
    assert paths(found, least) == paths(expected, least)


def paths(nodes: list[Any], least: float) -> dict[tuple[int, ...], tuple[int, int]]:
    """Give what was copied at the end of each path; in which order equally likely ones come is rounding's matter."""
    tokens: list[tuple[int, ...]] = []
    for token, parent, *_ in nodes:
        tokens.append((*(tokens[parent] if parent >= 0 else ()), token))
    return {path: node[3:] for path, node in zip(tokens, nodes, strict=True) if node[2] > least}


def test_a_copy_that_meets_the_end_of_the_text_repeats_itself() -> None:
    found = grown([9, 4, 5, 6], [(1, 60, 1)], TABLES, 8, 1, 1e-6)
    assert [token for token, *_ in found] == [4, 5, 6, 4, 5, 6, 4, 5]
    assert [parent for _, parent, *_ in found] == [*range(-1, 7)]
    assert [place for *_, place in found] == [1, 2, 3, 1, 2, 3, 1, 2]


def test_a_copy_from_an_excerpt_goes_on_to_its_border_or_the_end() -> None:
    excerpts = [5, 6, -1, 7, 8]
    found = grown([1, 2], [(2, 60, 1)], TABLES, 8, 1, 1e-6, excerpts=excerpts)
    assert [(token, place) for token, *_, place in found] == [(5, 2), (6, 3)]
    found = grown([1, 2], [(5, 60, 1)], TABLES, 8, 1, 1e-6, excerpts=excerpts)
    assert [(token, place) for token, *_, place in found] == [(7, 5), (8, 6)]


def test_no_node_where_the_budget_is_0_or_no_guess_is_likely_enough() -> None:
    assert grown([1, 2, 3], [(1, 3, 1)], TABLES, 0, 4, 0.01) == []
    assert grown([1, 2, 3], [(1, 3, 1)], TABLES, 5, 4, 1.0) == []
    assert grown([1, 2, 3], [], TABLES, 5, 4, 0.01) == []


def test_a_node_as_likely_as_the_threshold_is_grown() -> None:
    assert [prob for _, _, prob, *_ in grown([1, 2, 3], [(0, 3, 1)], FLAT, 9, 4, 0.25)] == [0.5, 0.25]


def test_of_two_places_with_one_next_token_the_first_leads_until_they_part() -> None:
    stream = [1, 2, 3, 8, 1, 2, 4, 9]
    found = grown(stream, [(4, 30, 1), (0, 30, 1)], TABLES, 4, 4, 1e-6)
    assert [(token, parent) for token, parent, *_ in found[:2]] == [(1, -1), (2, 0)]
    assert {(token, parent) for token, parent, *_ in found[2:]} <= {(4, 1), (3, 1), (9, 2), (8, 3)}
    assert {token for token, *_ in grown(stream, [(4, 30, 1), (0, 30, 1)], FLAT, 4, 1, 1e-6)} == {1, 2, 4, 9}


def test_grow_gives_places_in_the_corpus_and_names_their_sources() -> None:
    corpus = Corpus()
    corpus.begin("prompt")
    corpus.extend([1, 2, 3])
    corpus.relabel("output")
    corpus.extend([4, 1, 2])
    calibration = Calibration()
    candidates = ranked(corpus, [], [], calibration, [])
    tables = calibration.tables(Successors())
    draft, places = grow(corpus, candidates, tables, budget=4, width=1, least=0.001, vocabulary=2**31)
    assert draft.tokens.tolist() == [3, 4, 1, 2]
    assert places.tolist() == [2, 3, 4, 5]
    assert draft.sources == ("prompt",) * 4  # the source of the place where the copy began
    assert (draft.tokens.dtype, draft.parents.dtype, draft.probs.dtype) == (np.int32, np.int32, np.float32)


@pytest.mark.compiled
def test_every_kernel_is_compiled_once() -> None:
    drafter = Drafter(cost="linear:0")
    for prompt in ([1, 2, 3, 1, 2], np.arange(9) % 4, np.array([5] * 9, ">i4")):
        drafter.begin(prompt)
        for tree in (True, False):
            drafter.tree = tree
            for budget in (0, 1, np.int64(7), None):
                draft = drafter.propose(budget)
            drafter.accept(draft.tokens)
    drafter = Drafter(cost="linear:9", tree=False)
    drafter.begin([1, 1, 1])
    drafter.propose()
    found = {name: thing.signatures for name, thing in vars(kernels).items() if hasattr(thing, "signatures")}
    assert sorted(found) == [*KERNELS]
    assert not {name: signatures for name, signatures in found.items() if len(signatures) > 1}
    assert found["grow"]


@given(st.integers(0, 64))
def test_bucket_of(length: int) -> None:
    assert kernels.bucket_of(length) == twins.bucket_of(length)


ROLES = st.sampled_from([kernels.BEST, kernels.OTHER, kernels.NEXT])


@given(st.integers(0, 9), st.integers(1, 3), ROLES, st.integers(0, 64), st.floats(0.001, 0.999))
def test_chance_of(seed: int, kind: int, role: int, length: int, raw: float) -> None:
    tables = (FIRST, LATER, evidence(seed), NOTHING)
    chance = kernels.chance_of(tables, kind, role, length, raw)
    assert chance == pytest.approx(twins.chance_of(tables, kind, role, length, raw))
    assert 0 < chance < 1 and (seed or chance == raw)
    cell = tables[2][kind, role, kernels.bucket_of(length)]
    assert kernels.corrected(raw, cell) == pytest.approx(twins.corrected(raw, cell))


@given(st.integers(0, 9), st.integers(1, 3), ROLES, st.integers(0, 64), st.floats(0.001, 0.999), st.booleans())
def test_observe(seed: int, kind: int, role: int, length: int, raw: float, hit: bool) -> None:
    ours, expected = (FIRST, LATER, evidence(seed), NOTHING), (FIRST, LATER, evidence(seed), NOTHING)
    kernels.observe(ours, kind, role, length, raw, hit)
    twins.observe(expected, kind, role, length, raw, hit)
    assert alike(ours[2], expected[2])


@given(
    copies(), st.integers(0, 5), st.lists(st.sampled_from([0, 0, 1, 2, 7]), min_size=1, max_size=9), st.integers(0, 9)
)
def test_score(drawn: tuple[twins.Texts, list[twins.Pair]], seed: int, said: list[int], recycled: int) -> None:
    texts, places = drawn
    ours, expected = ((FIRST, LATER, evidence(seed), successors(recycled)) for _ in range(2))
    kernels.score(frozen(texts), rows(places), ours, np.array(said, np.int32))
    twins.score(texts, places, expected, said)
    assert alike(ours[2], expected[2])


def alike(one: Any, other: Any) -> bool:
    return all(np.allclose(one[name], other[name]) for name in kernels.EVIDENCE.names or ())


@given(st.floats(0.02, 0.98), st.floats(0.02, 0.98), st.integers(0, 2**16))
def test_evidence_leads_to_what_is_observed(raw: float, truth: float, seed: int) -> None:
    tables, chance = (FIRST, LATER, UNSEEN.copy(), NOTHING), np.random.default_rng(seed)
    seen = []
    for _ in range(1500):
        kernels.observe(tables, 1, kernels.BEST, 5, raw, bool(chance.random() < truth))
        seen.append(kernels.chance_of(tables, 1, kernels.BEST, 5, raw))
    assert np.mean(seen[500:]) == pytest.approx(truth, abs=0.12)


@given(st.integers(0, 9), st.floats(0.001, 1), st.floats(-0.5, 1))
def test_recycled_chance(seed: int, share: float, left: float) -> None:
    tables = (FIRST, LATER, evidence(seed), NOTHING)
    assert kernels.recycled(share, left) == pytest.approx(twins.recycled(share, left))
    chance = kernels.recycled_chance(tables, share, left)
    assert chance == pytest.approx(twins.recycled_chance(tables, share, left)) and 0 < chance < 1


@given(copies(), st.integers(0, 9), st.integers(0, 7), st.sampled_from([0.001, 0.1, 0.7]), VOCABULARIES)
def test_sprout(
    drawn: tuple[twins.Texts, list[twins.Pair]], seed: int, last: int, least: float, vocabulary: int
) -> None:
    texts, places = drawn
    tables = (FIRST, LATER, evidence(seed), successors(seed))
    groups = np.zeros(len(places) + 5, kernels.GROUP)
    groups["leader"] = groups["parent"] = kernels.UNDIVIDED
    kernels.divide(frozen(texts), rows(places), groups, tables, (kernels.UNDIVIDED, -1, 1.0), 3, vocabulary)
    taken = [(int(row["token"]), float(row["prob"])) for one, row in enumerate(groups) if row["leader"] == one]
    used = kernels.sprout(groups, len(places), len(places), tables, (last, -1, 1.0), least, vocabulary)
    found = [(int(row["token"]), pytest.approx(row["prob"])) for row in groups[len(places) : used]]
    assert twins.sprout(tables, last, 1.0, taken, least, vocabulary)[:5] == found  # 5 is all the room
    assert all(groups["leader"][one] == one for one in range(len(places), used))


def test_what_is_no_copy_follows_from_what_the_model_almost_said() -> None:
    found = Successors()
    found.learn([3, 4], np.array([[4, 5], [6, 7]]), np.array([[0.6, 0.3], [0.8, 0.1]], np.float32))
    nodes = grown([1, 2, 3], [], (FIRST, LATER, UNSEEN, found.rows), 4, 4, 0.01)
    assert [node[:2] for node in nodes] == [(4, -1), (6, 0), (5, -1), (7, 0)]
    assert [prob for _, _, prob, *_ in nodes] == pytest.approx([0.6, 0.48, 0.3, 0.06])
    assert {node[3:] for node in nodes} == {(-1, -1)}
    chain = grown([1, 2, 3], [], (FIRST, LATER, UNSEEN, found.rows), 4, 1, 0.01)
    assert [node[:2] for node in chain] == [(4, -1), (6, 0)]

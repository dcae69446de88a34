from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookahead.index import suffix_tree_kernels as kernels
from lookahead.index.suffix_tree import CANDIDATE, SuffixTree
from tests import twins

LARGEST = 2**31 - 1
LONG = 2_000 if os.environ.get("NUMBA_DISABLE_JIT", "0") != "0" else 20_000
FEW = st.sampled_from([0, 1, LARGEST])
STREAMS = st.lists(st.one_of(FEW, FEW, FEW, st.integers(0, 9), st.just(-1)), max_size=32)
PATTERN = st.lists(FEW, min_size=1, max_size=5)
PERIODIC = st.builds(lambda head, unit, tail: (head + unit * 9 + tail)[:32], STREAMS, PATTERN, STREAMS)
# A next token that came more than 32 times is cut: streams for exact comparison have no more tokens than that.


def write(tree: SuffixTree, token: int) -> None:
    tree.border() if token < 0 else tree.append(token)


def rows_of(tree: SuffixTree, limit: int = 16, per_token: int = 4) -> list[twins.Row]:
    return [row.tolist() for row in tree.candidates(limit, per_token)]


def check(tree: SuffixTree, limit: int = 100, per_token: int = 32) -> None:
    """Compare every query with its twin, on what the tree holds."""
    stream, first = tree.tokens.tolist(), tree.first
    assert len(tree) == first + len(stream)
    assert tree.match_length == twins.match_length(stream)
    place = tree.match_position
    assert (place - first if place >= 0 else place) in twins.match(stream)
    expected = [(first + place, length, count) for place, length, count in twins.candidates(stream, limit, per_token)]
    assert rows_of(tree, limit, per_token) == expected
    for place in range(0, len(stream) + 1, 3):
        assert tree.match_at(first + place, 9) == twins.common_suffix(stream, place, len(stream), 9)
        found, length = twins.nearest(stream, place, place - 4, place + 8)
        assert tree.nearest(first + place, 4, 7) == (found + first if length else -1, length)
        if place < len(stream):
            assert tree.continuation(first + place, 40).tolist() == twins.continuation(stream, place, 40)
    places = [(place, place % 5) for place in range(0, len(stream) + 1, 3)]
    wanted = [(first + place, behind) for place, behind in places]
    expected_places = [(first + place, size) for place, size in twins.nearest_each(stream, places, 7) if size]
    assert tree.nearest_each(wanted, 7) == expected_places


@given(STREAMS | PERIODIC, st.integers(1, 9), st.integers(1, 4))
def test_every_query_equals_its_twin_after_every_token(stream: list[int], limit: int, per_token: int) -> None:
    tree = SuffixTree(0)
    check(tree)
    for token in stream:
        write(tree, token)
        check(tree)
        assert rows_of(tree, limit, per_token) == twins.candidates(tree.tokens.tolist(), limit, per_token)


@given(STREAMS | PERIODIC, st.lists(st.integers(0, 32), max_size=4))
def test_extend_equals_append(stream: list[int], cuts: list[int]) -> None:
    one, many = SuffixTree(), SuffixTree(0)
    for token in stream:
        write(one, token)
    pieces = np.split(np.array(stream, np.int64), sorted({*cuts, *(i for i, token in enumerate(stream) if token < 0)}))
    for piece in pieces:
        if piece.size and piece[0] < 0:
            many.border()
            piece = piece[1:]
        many.extend(piece)
    assert one.tokens.tolist() == many.tokens.tolist()
    used = int(one._state[kernels.NODES])
    assert (one._state == many._state).all()
    assert twins.tree_of(one._nodes, used, one._edges) == twins.tree_of(many._nodes, used, many._edges)
    check(many)


@given(STREAMS | PERIODIC, st.integers(0, 32), STREAMS)
def test_forget_keeps_positions_and_answers(stream: list[int], dropped: int, more: list[int]) -> None:
    tree = SuffixTree(0)
    for token in stream:
        write(tree, token)
    held = tree.tokens.tolist()
    dropped = min(dropped, len(held))
    tree.forget(dropped)
    assert (tree.first, tree.tokens.tolist()) == (dropped, held[dropped:])
    check(tree)
    for token in more[: 32 - len(held)]:
        write(tree, token)
        check(tree)
    tree.forget(len(tree))
    assert tree.tokens.size == 0
    check(tree)


@given(STREAMS, STREAMS)
def test_copies_go_their_own_ways(stream: list[int], other: list[int]) -> None:
    tree = SuffixTree(0)
    for token in stream[:16]:
        write(tree, token)
    fork, before = tree.copy(), tree.tokens.tolist()
    for token in other[:16]:
        write(fork, token)
    check(fork)
    assert tree.tokens.tolist() == before
    for token in stream[16:]:
        write(tree, token)
    check(tree)
    check(fork)


@given(st.lists(st.lists(FEW, min_size=1, max_size=4), min_size=20, max_size=60), st.integers(1, 8))
def test_beyond_its_bounds_what_candidates_gives_is_still_true(documents: list[list[int]], limit: int) -> None:
    tree = SuffixTree()
    for document in documents:
        tree.extend(document)
        tree.border()
    tree.extend(documents[0])
    stream, end = tree.tokens.tolist(), len(tree)
    rows = rows_of(tree, 200, 32)
    assert rows_of(tree, limit, 32) == rows[:limit]
    exact = twins.candidates(stream, 10_000, 10_000)
    assert {stream[p] for p, _, _ in rows} == {stream[p] for p, _, _ in exact}
    assert len({place for place, _, _ in rows}) == len(rows)
    counts = {(stream[p], length): count for p, length, count in exact}
    for place, length, count in rows:
        assert twins.common_suffix(stream, place, end, length) == length
        assert 1 <= count <= counts[stream[place], length] <= 32
    assert [length for _, length, _ in rows] == sorted((length for _, length, _ in rows), reverse=True)


def fibonacci(size: int) -> list[int]:
    word, longer = [0], [0, 1]
    while len(longer) < size:
        word, longer = longer, longer + word
    return longer[:size]


def random(symbols: int) -> Callable[[int], list[int]]:
    return lambda size: np.random.default_rng(0).integers(0, symbols, size).tolist()


ADVERSARIES = {
    "one token": lambda size: [LARGEST] * size,
    "period 2": lambda size: [0, LARGEST] * (size // 2),
    "period 7": lambda size: list(range(7)) * (size // 7),
    "Fibonacci word": fibonacci,
    "random over 2": random(2),
    "random over 50000": random(50_000),
    "the same document again and again": lambda size: [*random(50)(size // 10), -1] * 10,
    "documents that end alike": lambda size: [token for i in range(size // 3) for token in (i, 7, -1)],
}


@pytest.mark.parametrize("name", ADVERSARIES)
def test_adversarial_streams_stay_linear(name: str) -> None:
    stream = ADVERSARIES[name](LONG)
    tree = SuffixTree(0)
    borders = [-1, *(i for i, token in enumerate(stream) if token < 0), len(stream)]
    for left, right in zip(borders, borders[1:], strict=False):
        tree.border()
        tree.extend(stream[left + 1 : right])
    if stream[-1] < 0:
        tree.border()
    assert tree.tokens.tolist() == stream
    nodes, edges = int(tree._state[kernels.NODES]), int(tree._state[kernels.EDGES])
    assert nodes <= len(stream) + 1
    assert edges <= 2 * len(stream)
    assert tree.nbytes <= 64 * len(stream) + 4096
    text, end = np.array(stream), len(stream)
    for places in (range(max(0, end - 40), end), range(0, end, max(1, end // 50))):
        for place in places:
            assert tree.match_at(place, 10**6) == common_suffix_fast(text, place)
    spot(stream, tree)


def common_suffix_fast(text: np.ndarray, place: int) -> int:
    """As the twin, for long streams."""
    before, end = text[:place][::-1], text[text.size - place :][::-1]
    differs = np.flatnonzero((before != end) | (before < 0))
    return int(differs[0]) if differs.size else place


def spot(stream: list[int], tree: SuffixTree) -> None:
    """Check match and candidates of a long stream against all its places."""
    text = np.array(stream)
    lengths = [common_suffix_fast(text, place) for place in range(len(stream))]
    assert tree.match_length == max(lengths)
    if tree.match_length:
        assert lengths[tree.match_position] == tree.match_length
    for place, length, _ in rows_of(tree):
        assert lengths[place] >= length
        assert stream[place] >= 0


def test_a_match_may_overlap_the_end() -> None:
    tree = SuffixTree()
    tree.extend([5, 5, 5, 5])
    assert (tree.match_length, tree.match_position) == (3, 3)
    assert rows_of(tree) == [(3, 3, 1)]
    assert tree.continuation(3, 6).tolist() == [5] * 6
    tree.extend([6, 7, 6, 7])
    assert tree.continuation(6, 5).tolist() == [6, 7, 6, 7, 6]


def test_borders() -> None:
    tree = SuffixTree()
    tree.border()
    assert len(tree) == 0
    tree.extend([1, 2, 3])
    tree.border()
    tree.border()
    assert tree.tokens.tolist() == [1, 2, 3, -1]
    assert (tree.match_length, tree.match_position) == (0, -1)
    tree.extend([1, 2, 3])
    assert (tree.match_length, tree.match_position, tree.tokens[3]) == (3, 3, -1)
    assert tree.candidates().size == tree.continuation(3, 4).size == 0
    tree.append(1)
    assert tree.match_length == 1
    assert tree.match_position in (1, 5)
    assert tree.continuation(1, 9).tolist() == [2, 3]


def test_candidates_are_found_behind_many_borders() -> None:
    tree = SuffixTree()
    for token in (*range(10, 14), *[None] * 100):
        tree.extend([7] if token is None else [7, token])
        tree.border()
    tree.append(7)
    assert rows_of(tree) == [(10, 1, 1), (7, 1, 1), (4, 1, 1), (1, 1, 1)]
    assert tree.match_position in (1, 4, 7, 10)


def test_a_query_is_a_fresh_array_of_candidates() -> None:
    tree = SuffixTree()
    tree.extend([1, 2, 3, 1])
    found = tree.candidates()
    assert found.dtype == CANDIDATE
    assert found.tolist() == [(1, 1, 1)]
    tree.append(2)
    assert found.tolist() == [(1, 1, 1)]


def test_tokens_cannot_be_written() -> None:
    tree = SuffixTree()
    tree.extend([1, 2])
    with pytest.raises(ValueError, match="read-only"):
        tree.tokens[0] = 5
    assert tree.tokens.dtype == np.int32


@pytest.mark.parametrize(
    ("tokens", "says"),
    [
        ([1, -1], "run from -1 to 1; 0 to 2147483647 is allowed"),
        ([2**31], "run from 2147483648"),
        (np.array([2**63], np.uint64), "run from 9223372036854775808"),
        (np.array([-1], np.int8), "run from -1"),
        ([1.5], "dtype float64; integers are allowed"),
        ([True], "dtype bool"),
        ([[1]], r"shape \(1, 1\); one dimension"),
        (3, r"shape \(\)"),
    ],
)
def test_wrong_token_ids_are_refused_and_leave_nothing(tokens: object, says: str) -> None:
    tree = SuffixTree()
    with pytest.raises(ValueError, match=says):
        tree.extend(tokens)
    assert len(tree) == 0


def test_wrong_arguments_are_refused() -> None:
    tree = SuffixTree()
    tree.extend([])
    for wrong in (-1, 2**31):
        with pytest.raises(ValueError, match=f"token id is {wrong}; 0 to 2147483647"):
            tree.append(wrong)
    with pytest.raises(TypeError):
        tree.append(1.0)
    with pytest.raises(ValueError, match="capacity is -1"):
        SuffixTree(-1)
    tree.extend([1, 2, 3])
    for call in (tree.match_at, tree.forget, lambda position: tree.continuation(position, 3)):
        for wrong in (-1, 4):
            with pytest.raises(ValueError, match=f"position is {wrong}; 0 to 3 is allowed"):
                call(wrong)
    with pytest.raises(ValueError, match="length is -1"):
        tree.continuation(0, -1)
    for limit, per_token in ((0, 1), (1, 0), (1, 33)):
        with pytest.raises(ValueError, match=f"limit is {limit} and per_token is {per_token}"):
            tree.candidates(limit, per_token)

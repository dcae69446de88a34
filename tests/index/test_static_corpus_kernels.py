from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lookahead.index import static_corpus_kernels as kernels
from lookahead.index.suffix_array import places_in_order
from lookahead.index.suffix_tree import CANDIDATE
from tests import twins

TOKENS = st.sampled_from([0, 1, 2])
STREAMS = st.lists(TOKENS | st.just(-1), min_size=1, max_size=60)
SAID = st.lists(TOKENS | st.just(7), max_size=9)
ANYTHING = st.lists(st.integers(-(2**31), 2**31 - 1) | st.integers(-2, 9), min_size=1, max_size=30)


def ids(tokens: list[int]) -> Any:
    return np.array(tokens, np.int32)


@given(STREAMS | st.lists(st.sampled_from([-1, 0, 200, 300, 70_000, 2**31 - 2]), min_size=1, max_size=40))
def test_places_are_in_the_order_of_what_stands_before_them(stream: list[int]) -> None:
    assert places_in_order(ids(stream)).tolist() == twins.ordered(stream)


@given(STREAMS, SAID, st.data())
def test_one_place(stream: list[int], said: list[int], data: st.DataObject) -> None:
    position = data.draw(st.integers(0, len(stream)))
    length = twins.shared(stream, said, position)
    for known in range(length + 1):
        assert kernels.shared(ids(stream), ids(said), position, known) == length
    assert kernels.precedes(ids(stream), ids(said), position, length) == twins.precedes(stream, said, position)


def test_a_place_outside_the_stream_is_none() -> None:
    order = [3, -1, 9, 10, 0]
    for rank in range(5):
        assert kernels.place_at(ids(order), rank, 9) == twins.place_at(order, rank, 9)


def starts_of(stream: list[int], greatest: int) -> list[int]:
    before = [stream[place - 1] for place in twins.ordered(stream)]
    return [sum(one < token for one in before) for token in range(greatest + 2)]


@given(STREAMS, SAID, st.integers(2, 8))
def test_a_search_equals_its_twin_with_and_without_a_table(stream: list[int], said: list[int], greatest: int) -> None:
    order = ids(twins.ordered(stream))
    rank, length = twins.search(stream, said)
    assert kernels.search(ids(stream), order, ids([]), ids(said)) == (rank, length)
    found = kernels.search(ids(stream), order, ids(starts_of(stream, greatest)), ids(said))
    assert found == ((rank, length) if not said or said[0] <= greatest else (0, 0))


@given(STREAMS, st.lists(TOKENS, min_size=1, max_size=5), st.data())
def test_a_reach_equals_its_twin(stream: list[int], said: list[int], data: st.DataObject) -> None:
    order = twins.ordered(stream)
    length = data.draw(st.integers(1, len(said)))
    for step, ranks in ((1, st.integers(0, len(order))), (-1, st.integers(-1, len(order) - 1))):
        rank = data.draw(ranks)
        found = kernels.reach(ids(stream), ids(order), ids(said), rank, step, length)
        assert found == twins.reach(stream, order, said, rank, step, length)


@given(st.lists(TOKENS | st.just(-1), min_size=9, max_size=60), st.lists(TOKENS, max_size=2), st.integers(1, 4))
def test_groups_equal_their_twin(stream: list[int], seen: list[int], per_token: int) -> None:
    order = twins.ordered(stream)
    scratch, rows = np.zeros(kernels.SEEN + 100, np.int64), np.zeros(100, CANDIDATE)
    scratch[kernels.VISITS], scratch[kernels.PER_TOKEN], scratch[kernels.ROWS] = 100, per_token, len(seen)
    scratch[kernels.SEEN : kernels.SEEN + len(seen)] = seen
    low, high = len(order) // 3, len(order) // 2
    scratch[[kernels.BEGIN, kernels.LOW, kernels.HIGH, kernels.END]] = 0, low, high, len(order)
    taken = kernels.tally(ids(stream), ids(order), scratch)
    groups = twins.tally(stream, order[:low] + order[high:], seen)
    assert taken == len(order) - (high - low)
    assert scratch[kernels.VISITS] == 100 - taken
    tokens = scratch[kernels.NEXT : kernels.NEXT + scratch[kernels.GROUPS]].tolist()
    assert tokens == [stream[places[0]] for places in groups]
    for token in (-1, 0, 1, 2):
        found = kernels.is_listed(scratch, kernels.NEXT, scratch[kernels.GROUPS], token)
        assert found == twins.is_listed(tokens, token)
    kernels.list_groups(rows, scratch, taken, 5)
    expected = twins.list_groups(groups, 5, per_token)
    assert rows[len(seen) : scratch[kernels.ROWS]].tolist() == expected


@given(STREAMS, SAID, st.integers(1, 12), st.integers(1, 3))
def test_suggestions_equal_their_twin(stream: list[int], said: list[int], limit: int, per_token: int) -> None:
    rows = np.zeros(limit, CANDIDATE)
    found = kernels.suggest(
        ids(stream), ids(twins.ordered(stream)), ids(said), *twins.search(stream, said), rows, per_token
    )
    assert rows[:found].tolist() == twins.suggest(stream, said, limit, per_token)


@given(ANYTHING, ANYTHING, ANYTHING | st.just([]), st.lists(st.integers(0, 9), min_size=1, max_size=9))
def test_damaged_tables_lead_nowhere_outside(
    stream: list[int], order: list[int], starts: list[int], said: list[int]
) -> None:
    rank, length = kernels.search(ids(stream), ids(order), ids(starts), ids(said))
    assert 0 <= rank <= len(order)
    assert 0 <= length <= len(said)
    rows = np.zeros(20, CANDIDATE)
    found = kernels.suggest(ids(stream), ids(order), ids(said), rank, length, rows, 4)
    for position, match_length, count in rows[:found].tolist():
        assert 0 <= position < len(stream)
        assert stream[position] >= 0
        assert 1 <= match_length <= len(said)
        assert count >= 1

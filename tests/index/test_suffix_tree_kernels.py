from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookahead.index import suffix_tree_kernels as kernels
from lookahead.index import text_kernels
from lookahead.index.cursor import Cursor
from lookahead.index.suffix_tree import SuffixTree, warm_up
from tests import twins

LARGEST = 2**31 - 1
IDS = st.sampled_from([0, 1, 2, LARGEST - 1, LARGEST])
STREAMS = st.lists(st.one_of(IDS, IDS, IDS, IDS, st.just(-1)), min_size=1, max_size=40)
WIDE = st.lists(st.integers(-1, 60), min_size=1, max_size=150)  # enough children to fill the table of edges


def build(stream: list[int]) -> tuple[list[int], SuffixTree]:
    """Make a tree of the stream, and the stream without the borders that change nothing."""
    tree = SuffixTree(0)
    for token in stream:
        tree.border() if token < 0 else tree.append(token)
    return tree.tokens.tolist(), tree


def read(tree: SuffixTree) -> twins.Tree:
    return twins.tree_of(tree._nodes, int(tree._state[kernels.NODES]), tree._edges)


def strings(stream: list[int], tree: SuffixTree) -> twins.Strings:
    """Give {string: {next token: leaves below}} of a tree."""
    model = read(tree)
    found = {}
    for row in model.values():
        string = tuple(stream[row["start"] : row["start"] + row["depth"]])
        found[string] = {
            ("border", ~child) if token < 0 else token: twins.occurrences(model, child)
            for token, child in row["children"]
        }
    return found


@given(STREAMS | WIDE)
def test_tree_is_the_one_of_all_suffixes(stream: list[int]) -> None:
    stream, tree = build(stream)
    if not stream:
        return
    assert strings(stream, tree) == twins.step(stream[:-1], stream[-1]) == twins.extend([], stream)
    model = read(tree)
    names = {node: tuple(stream[row["start"] : row["start"] + row["depth"]]) for node, row in model.items()}
    for node, row in model.items():
        assert names[row["link"]] == names[node][1:]
        assert row["start"] == max([row["start"], *[~child for _, child in row["children"] if child < 0]])
    assert int(tree._state[kernels.EDGES]) == sum(max(0, len(row["children"]) - 2) for row in model.values())


@given(st.integers(0, LARGEST), st.integers(-LARGEST - 1, LARGEST), st.integers(1, LARGEST))
def test_slot_of(node: int, key: int, size: int) -> None:
    assert kernels.slot_of(node, key, size) == twins.slot_of(node, key, size) < size


@given(WIDE, st.data())
def test_child_of_and_replace_child(stream: list[int], data: st.DataObject) -> None:
    stream, tree = build(stream)
    model = read(tree)
    node = data.draw(st.sampled_from(sorted(model)))
    for token in range(62):
        child = kernels.child_of(tree._nodes, tree._edges, node, token)
        assert child == twins.child_of(model, node, token)
        if child:
            kernels.replace_child(tree._nodes, tree._edges, node, token, ~token)
            twins.replace_child(model, node, token, ~token)
    assert read(tree) == model


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-1, 3)), max_size=15))
def test_put_edge(pairs: list[tuple[int, int]]) -> None:
    edges = np.zeros(16, kernels.EDGE)
    for number, (node, token) in enumerate(pairs):
        home = twins.slot_of(node, token if token >= 0 else ~number, 16)
        expected = twins.put_edge([bool(edge["child"]) for edge in edges], home)
        assert kernels.put_edge(edges, node, token, ~number, number - 1) == expected
        assert edges[expected].tolist() == (node, token, ~number, number - 1)


@given(WIDE, st.integers(1, 50))
def test_rehash(stream: list[int], more: int) -> None:
    _, tree = build(stream)
    before = read(tree)
    larger = np.zeros(tree._edges.size + more, kernels.EDGE)
    kernels.rehash(tree._nodes, int(tree._state[kernels.NODES]), tree._edges, larger)
    tree._edges = larger
    assert read(tree) == twins.rehash(before)


@given(STREAMS, st.data())
def test_start_of_and_descend(stream: list[int], data: st.DataObject) -> None:
    stream, tree = build(stream)
    model = read(tree)
    for node in model:
        assert kernels.start_of(tree._nodes, node) == twins.start_of(model, node)
    assert kernels.start_of(tree._nodes, ~7) == twins.start_of(model, ~7)
    begin = data.draw(st.integers(0, len(stream)))
    stop = next((i for i in range(begin, len(stream)) if stream[i] < 0), len(stream))
    for length in range(stop - begin + 1):
        found = kernels.descend(tree._text, tree._nodes, tree._edges, 0, begin, length)
        assert found == twins.descend(stream, model, begin, length)


@given(WIDE, st.integers(61, LARGEST), st.data())
def test_hang_leaf(stream: list[int], token: int, data: st.DataObject) -> None:
    _, tree = build(stream)
    model = read(tree)
    node = data.draw(st.sampled_from(sorted(model)))
    kernels.hang_leaf(tree._state, tree._nodes, tree._edges, node, token, 7)
    twins.hang_leaf(model, node, token, 7)
    assert read(tree) == model


@given(STREAMS, st.data())
def test_split_and_set_link(stream: list[int], data: st.DataObject) -> None:
    stream, tree = build(stream)
    if tree._state[kernels.BELOW] == 0 or tree._state[kernels.NODES] == tree._nodes.size:
        return
    model = read(tree)
    leaf, above, below = (int(tree._state[field]) for field in (kernels.LEAF, kernels.ACTIVE, kernels.BELOW))
    middle = kernels.split(tree._state, tree._text, tree._nodes, tree._edges, 77)
    twins.split(stream, model, above, below, len(stream) - leaf, 77, leaf)
    assert middle == len(model) - 1
    for target, unlinked in ((0, middle), (above, 0), (0, 0)):
        twins.set_link(model, int(tree._state[kernels.UNLINKED]), target)
        kernels.set_link(tree._state, tree._nodes, target, unlinked)
        assert tree._state[kernels.UNLINKED] == unlinked
    assert read(tree) == model


@given(WIDE, st.integers(3, 40), st.sampled_from([-1, 0]))
def test_children_into(stream: list[int], room: int, least: int) -> None:
    _, tree = build(stream)
    model = read(tree)
    for node in model:
        out = np.zeros(room + 1, np.int64)
        stop = kernels.children_into(tree._nodes, tree._edges, node, out, 1, 1 + room, least)
        assert out[1:stop].tolist() == twins.children_into(model, node, room, least)


@given(STREAMS)
def test_occurrences(stream: list[int]) -> None:
    _, tree = build(stream)
    model = read(tree)
    scratch = np.zeros(kernels.SEEN, np.int64)
    for child in [*list(model)[1:], *[~0] * bool(model)]:
        scratch[kernels.VISITS] = 1000
        count = kernels.occurrences(tree._nodes, tree._edges, child, scratch)
        leaves = twins.occurrences(model, child)
        starts = scratch[kernels.FRONTIER : kernels.FRONTIER + count].tolist()
        assert count == min(32, len(leaves)) == len(set(starts))
        assert set(starts) <= leaves


@given(st.lists(st.integers(0, LARGEST), min_size=1, max_size=32, unique=True), st.integers(1, 32))
def test_newest_first(starts: list[int], per_token: int) -> None:
    scratch = np.zeros(kernels.SEEN, np.int64)
    scratch[kernels.PER_TOKEN] = per_token
    scratch[kernels.FRONTIER : kernels.FRONTIER + len(starts)] = starts
    kept = kernels.newest_first(scratch, len(starts))
    found = scratch[kernels.FRONTIER : kernels.FRONTIER + kept].tolist()
    assert found == twins.newest_first(starts, per_token)


@given(st.permutations(range(24)), st.lists(st.integers(1, 5), min_size=4, max_size=4), st.integers(1, 24))
def test_place_group_and_is_new(positions: list[int], counts: list[int], limit: int) -> None:
    rows = np.empty(limit, kernels.CANDIDATE)
    scratch = np.zeros(kernels.SEEN + 32, np.int64)
    scratch[kernels.PER_TOKEN] = per_token = 3
    groups: list[list[twins.Row]] = []
    for count in counts:
        starts = sorted(positions[:count], reverse=True)[:per_token]
        positions = positions[count:]
        scratch[kernels.FRONTIER : kernels.FRONTIER + len(starts)] = starts
        kernels.place_group(rows, scratch, 5, len(starts), count)
        group = [(start + 5, 5, count) for start in starts]
        assert [row.tolist() for row in rows[: scratch[kernels.ROWS]]] == twins.place_group(groups, group, limit)
        groups.append(group)
    seen: list[int] = []
    for token in counts:
        assert kernels.is_new(scratch, token) == twins.is_new(seen, token)
        seen.append(token)


@given(STREAMS.filter(lambda stream: len(stream) <= 30), st.data())
def test_list_level(stream: list[int], data: st.DataObject) -> None:
    stream, tree = build(stream)
    longest = twins.match_length(stream)
    length = data.draw(st.integers(0, longest))
    if length == 0:
        return
    seen = [0] if data.draw(st.booleans()) else []
    scratch = np.zeros(kernels.SEEN + 132, np.int64)
    for field, value in ((kernels.VISITS, 1000), (kernels.PER_TOKEN, 3), (kernels.GROUPS, len(seen))):
        scratch[field] = value
    rows = np.empty(100, kernels.CANDIDATE)
    tables = (tree._text, tree._nodes, tree._edges)
    node, below = kernels.descend(*tables, 0, len(stream) - length, length)
    kernels.list_level(*tables, node, below, length, rows, scratch)
    found = [row.tolist() for row in rows[: scratch[kernels.ROWS]]]
    assert found == twins.list_level(stream, length, longest, 3, seen)


@given(STREAMS, st.integers(-5, 45), st.integers(0, 9), st.integers(0, 9))
def test_kernels_on_the_text(stream: list[int], position: int, behind: int, ahead: int) -> None:
    text = np.array(stream, np.int32)
    end, begin, stop = len(stream), position - behind, position + ahead + 1
    assert text_kernels.nearest(text, end, position, begin, stop) == twins.nearest(stream, position, begin, stop)
    wanted = np.array([(position, behind), (position + 1, 2), (end, end)], np.int64)
    found = np.empty_like(wanted)
    text_kernels.nearest_each(text, end, wanted, ahead, found)
    assert [tuple(row) for row in found.tolist()] == twins.nearest_each(stream, wanted.tolist(), ahead)
    if 0 <= position <= end:
        for limit in (0, 2, 64):
            expected = twins.common_suffix(stream, position, end, limit)
            assert text_kernels.common_suffix(text, position, end, limit) == expected
    if 0 <= position < end:
        out = np.empty(50, np.int32)
        count = text_kernels.continuation(text, end, position, out)
        assert out[:count].tolist() == twins.continuation(stream, position, 50)


def test_table_records_have_the_documented_sizes() -> None:
    assert (kernels.NODE.itemsize, kernels.EDGE.itemsize, kernels.CANDIDATE.itemsize) == (32, 16, 16)


@pytest.mark.compiled
def test_every_kernel_is_compiled_once() -> None:
    warm_up()
    tree = SuffixTree(0)
    for tokens in ([1, 2, 3], np.arange(9), np.arange(20, dtype=np.uint16)[::2], tree.tokens, np.array([5], ">i4")):
        tree.extend(tokens)
        tree.append(np.int64(3))
        tree.append(3)
        tree.border()
        tree = tree.copy()
    tree.extend(tree.tokens[-3:-1])
    tree.forget(3)
    tree.candidates(np.int64(3), np.int32(1))
    tree.match_at(np.int32(tree.match_position), np.int64(3))
    tree.nearest(np.int64(9), np.int32(2), 4)
    tree.nearest_each([(9, 2), (np.int64(3), 0)], np.int32(4))
    tree.continuation(np.int64(9), np.int32(2))
    cursor = Cursor(tree)
    cursor.advance(np.array([3, 3], np.int32))
    cursor.candidates()
    found = {name: thing for module in (kernels, text_kernels) for name, thing in vars(module).items()}
    signatures = {name: len(thing.signatures) for name, thing in found.items() if hasattr(thing, "signatures")}
    assert len(signatures) == 24
    assert not {name: number for name, number in signatures.items() if number > 1}
    assert signatures["step"] == signatures["extend"] == signatures["candidates"] == 1

"""A cursor finds what a search through all texts finds, however the tree has grown meanwhile."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lookahead.index.cursor import Cursor
from lookahead.index.suffix_tree import SuffixTree
from tests import twins

TOKENS = st.lists(st.integers(0, 3), max_size=20)


def closed(tree: SuffixTree, texts: list[list[int]]) -> list[int]:
    """Put texts into a tree, each closed; return the stream."""
    for text in texts:
        if text:
            tree.extend(text)
            tree.border()
    return [int(token) for token in tree.tokens]


@given(st.lists(st.tuples(st.lists(TOKENS, max_size=3), TOKENS), max_size=4))
def test_a_cursor_finds_the_longest_match_in_a_tree_that_grows(steps: list[tuple[list[list[int]], list[int]]]) -> None:
    tree, said = SuffixTree(0), list[int]()
    cursor = Cursor(tree)
    for texts, more in steps:
        stream = closed(tree, texts)
        before = len(said)
        said += more
        places, lengths = cursor.advance(np.array(more, np.int32))
        for at, (place, length) in enumerate(zip(places.tolist(), lengths.tolist(), strict=True)):
            now = said[: before + at + 1]
            assert stream[place - length : place] == now[len(now) - length :]
            assert length <= twins.follow(stream, now)[-1]
        assert not more or cursor.match_length == lengths[-1]


@given(st.lists(TOKENS, max_size=4), TOKENS)
def test_a_cursor_finds_the_longest_match_and_all_that_followed_it(texts: list[list[int]], said: list[int]) -> None:
    tree = SuffixTree(0)
    stream = closed(tree, texts)
    cursor = Cursor(tree)
    _, lengths = cursor.advance(np.array(said, np.int32))
    assert lengths.tolist() == twins.follow(stream, said)
    rows = cursor.candidates(64, 8).tolist()
    for place, length, _ in rows:
        assert stream[place] >= 0 and length > 0
        assert stream[place - length : place] == said[len(said) - length :]
    followed = {
        stream[at]
        for length in range(1, cursor.match_length + 1)
        for at in range(length, len(stream))
        if stream[at - length : at] == said[len(said) - length :] and stream[at] >= 0
    }
    assert {stream[place] for place, _, _ in rows} == followed

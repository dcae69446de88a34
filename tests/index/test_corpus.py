from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookahead.index.corpus import SMALLEST_CAP, Corpus
from lookahead.index.suffix_tree import SuffixTree

FEW = st.sampled_from([0, 1, 2**31 - 1])
PIECES = st.lists(st.tuples(st.sampled_from("abc"), st.booleans(), st.lists(FEW, max_size=6)), min_size=1, max_size=8)


def test_answers_are_those_of_one_tree_with_borders() -> None:
    corpus, tree = Corpus(), SuffixTree()
    for source in ("a", "b"):
        corpus.begin(source)
        tree.border()
        for index in (corpus, tree):
            index.extend([1, 2, 3, 4, 1, 2])
            index.append(3)
    for index in (corpus, tree):
        index.append(4)
    assert len(corpus) == len(tree)
    assert corpus.first == 0
    assert (corpus.tokens == tree.tokens).all()
    assert corpus.match_length == tree.match_length > 0
    assert corpus.match_position == tree.match_position
    assert (corpus.candidates(5, 2) == tree.candidates(5, 2)).all()
    assert corpus.match_at(4, 3) == tree.match_at(4, 3) > 0
    assert corpus.nearest(6, 6, 6) == tree.nearest(6, 6, 6)
    assert corpus.continuation(2, 4).tolist() == tree.continuation(2, 4).tolist()
    assert corpus.nbytes == tree.nbytes


@given(PIECES)
def test_every_token_knows_its_source(pieces: list[tuple[str, bool, list[int]]]) -> None:
    corpus = Corpus()
    expected: list[str | None] = []
    for number, (source, goes_on, tokens) in enumerate(pieces):
        if goes_on and number:
            corpus.relabel(source)
        else:
            corpus.begin(source)
        expected += [None] * (len(corpus) - len(expected)) + [source] * len(tokens)
        corpus.extend(tokens)
    assert len(corpus) == len(expected)
    for position, source in enumerate(expected):
        assert (source is None) == (corpus.tokens[position] < 0)
        if source:
            assert corpus.source(position) == source


def test_a_relabelled_document_is_one_document() -> None:
    corpus = Corpus()
    corpus.begin("prompt")
    corpus.extend([1, 2, 3])
    corpus.relabel("output")
    corpus.extend([4, 1, 2, 3])
    assert (corpus.match_length, corpus.match_position) == (3, 3)
    assert [corpus.source(i) for i in (2, 3)] == ["prompt", "output"]
    corpus.begin("next")
    corpus.extend([3, 4])
    assert corpus.match_length == 2


@given(st.lists(st.tuples(st.integers(1, 3000), st.integers(2, 400)), min_size=3, max_size=12), st.integers(0, 9))
def test_the_cap_holds_and_what_stays_is_the_newest(documents: list[tuple[int, int]], seed: int) -> None:
    random = np.random.default_rng(seed)
    corpus, everything, sources = Corpus(SMALLEST_CAP), [], []
    for number, (size, symbols) in enumerate(documents):
        corpus.begin(str(number))
        everything += [-1] * (len(corpus) - len(everything))
        sources += [""] * (len(everything) - len(sources))
        tokens = random.integers(0, symbols, size)
        corpus.extend(tokens[:-1])
        corpus.append(tokens[-1])
        everything += tokens.tolist()
        sources += [str(number)] * size
        assert corpus.nbytes <= SMALLEST_CAP
        assert corpus.tokens.tolist() == everything[corpus.first :]
        assert len(corpus) - corpus.first >= min(300, len(everything))
        assert corpus.tokens[0] >= 0
    for position in range(corpus.first, len(corpus)):
        if everything[position] >= 0:
            assert corpus.source(position) == sources[position]
    assert all(0 <= row["position"] - corpus.first < corpus.tokens.size for row in corpus.candidates())
    fresh = SuffixTree()
    for token in everything[corpus.first :]:
        fresh.border() if token < 0 else fresh.append(token)
    assert corpus.match_length == fresh.match_length


def test_whole_documents_go_first() -> None:
    corpus = Corpus(SMALLEST_CAP)
    starts = []
    for number in range(40):
        corpus.begin(str(number))
        starts.append(len(corpus))
        corpus.extend(np.random.default_rng(number).integers(0, 1000, 100))
    assert corpus.first in starts[1:]
    with pytest.raises(ValueError, match=f"position is 0; {corpus.first} to"):
        corpus.source(0)


def test_copies_go_their_own_ways() -> None:
    corpus = Corpus(SMALLEST_CAP)
    corpus.begin("a")
    corpus.extend([1, 2, 3])
    fork = corpus.copy()
    fork.begin("b")
    fork.extend([1, 2])
    assert (corpus.match_length, fork.match_length) == (0, 2)
    assert (len(corpus), fork.max_bytes, fork.source(5)) == (3, SMALLEST_CAP, "b")
    with pytest.raises(ValueError, match="position is 5; 0 to 2 is allowed"):
        corpus.source(5)


def test_offsets_count_from_the_start_of_a_source() -> None:
    corpus = Corpus()
    corpus.begin("a")
    corpus.extend([1, 2, 3])
    corpus.begin("b")
    start = len(corpus)
    corpus.extend([4, 5])
    corpus.relabel("c")
    corpus.extend([6, 7])
    assert [corpus.offset(start + place, "b") for place in range(4)] == [0, 1, 2, 3]  # the next passage goes on
    assert (corpus.offset(start + 2, "c"), corpus.offset(2, "a")) == (0, 2)
    assert corpus.offset(start + 2, "a") == corpus.offset(start, "other") == -1
    corpus.begin("aside")
    corpus.extend([8])
    corpus.begin("c")
    corpus.extend([7, 9])
    assert corpus.offset(len(corpus) - 1, "c") == corpus.offset(len(corpus) - 1, "b") == -1


def test_offsets_are_unknown_once_the_oldest_is_gone() -> None:
    corpus = Corpus(SMALLEST_CAP)
    corpus.begin("a")
    corpus.extend(np.random.default_rng(0).integers(0, 1000, 9000))
    assert corpus.first > 0 and corpus.offset(len(corpus) - 1, "a") == -1


def test_wrong_use_is_refused() -> None:
    with pytest.raises(ValueError, match=f"max_bytes is 100; {SMALLEST_CAP} or more is allowed"):
        Corpus(100)
    corpus = Corpus()
    with pytest.raises(RuntimeError, match="no document is open; call begin"):
        corpus.append(1)
    with pytest.raises(RuntimeError, match="no document is open; call begin"):
        corpus.extend([1])
    corpus.begin("a")
    with pytest.raises(ValueError, match="token ids run from"):
        corpus.extend([-5])
    assert len(corpus) == 0

from __future__ import annotations

import importlib
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookahead.index.static_corpus import LONGEST, Document, StaticCorpus, build
from lookahead.index.storage import StorageError
from lookahead.index.suffix_tree import CANDIDATE
from tests import twins

FEW = st.sampled_from([0, 1, 2**31 - 1])
TEXTS = st.lists(st.lists(FEW | st.integers(0, 9), max_size=12), min_size=1, max_size=5).filter(any)


@dataclass
class Named:
    fingerprint: str


def document(tokens: list[int], path: str = "a.py") -> Document:
    return Document(path, np.array(tokens, np.int32))


def corpus_of(folder: Path, *texts: list[int]) -> StaticCorpus:
    build([document(text) for text in texts], folder / "c.lkh", "abc")
    return StaticCorpus.open(folder / "c.lkh")


def stream_of(*texts: list[int]) -> list[int]:
    return [token for text in texts for token in (*text, -1)]


@given(TEXTS, st.lists(st.lists(FEW, max_size=5), max_size=6))
def test_cursors_equal_their_twin(
    tmp_path_factory: pytest.TempPathFactory, texts: list[list[int]], said: list[list[int]]
) -> None:
    corpus, stream = corpus_of(tmp_path_factory.getbasetemp(), *texts), stream_of(*texts)
    corpus.verify()
    assert corpus.tokens.tolist() == stream
    cursor, end = corpus.cursor(), list[int]()
    for piece in said:
        cursor.advance(piece)
        end = [*reversed(piece), *end]
        assert cursor.match_length == twins.search(stream, end)[1]
        assert cursor.candidates(100, 32).tolist() == twins.suggest(stream, end, 100, 32)
        assert cursor.candidates(3, 1).tolist() == twins.suggest(stream, end, 3, 1)
        for position, _, _ in cursor.candidates().tolist():
            assert cursor.continuation(position, 5).tolist() == twins.continuation(stream, position, 5)


def test_facts_and_documents(tmp_path: Path) -> None:
    given = [
        Document("ä/a.py", np.array([1, 2], np.int32), 9, 2**60, bytes(range(16))),
        Document("empty", np.empty(0, np.int32)),
        Document("odd \udcff", np.array([3], np.int32), 1, 1, b"\0" * 15 + b"\1"),
    ]
    build(iter(given), str(tmp_path / "mine.lkh"), "abc")
    corpus = StaticCorpus.open(str(tmp_path / "mine.lkh"))
    assert (corpus.name, corpus.fingerprint, len(corpus)) == ("mine", "abc", 6)
    assert corpus.nbytes == (tmp_path / "mine.lkh").stat().st_size
    assert corpus.tokens.tolist() == [1, 2, -1, -1, 3, -1]
    assert (corpus.tokens.dtype, corpus.tokens.flags.writeable) == (np.int32, False)
    assert len(corpus.documents) == 3
    for found, one in zip(corpus.documents, given, strict=True):
        assert found.tokens.tolist() == one.tokens.tolist()
        assert (found.path, found.size, found.mtime_ns, found.digest) == (
            one.path,
            one.size,
            one.mtime_ns,
            one.digest,
        )
    assert [one.path for one in corpus.documents[1:]] == ["empty", "odd \udcff"]
    assert corpus.documents[-1].path == "odd \udcff"
    with pytest.raises(IndexError):
        corpus.documents[3]


def test_the_longest_suffix_comes_first_and_then_what_came_most_often(tmp_path: Path) -> None:
    corpus = corpus_of(tmp_path, [1, 2, 3, 9], [5, 2, 3, 4], [6, 2, 3, 4], [7, 3, 8], [2, 3])
    cursor = corpus.cursor()
    cursor.advance([1])
    cursor.advance([2, 3])
    assert cursor.match_length == 3
    assert cursor.candidates().tolist() == [(3, 3, 1), (8, 2, 2), (13, 2, 2), (17, 1, 1)]
    assert cursor.candidates(per_token=1).tolist() == [(3, 3, 1), (8, 2, 2), (17, 1, 1)]
    assert cursor.candidates().dtype == CANDIDATE
    assert cursor.continuation(2, 9).tolist() == [3, 9]
    cursor.advance([77])
    assert (cursor.match_length, cursor.candidates().size) == (0, 0)


def test_a_match_longer_than_what_is_kept_counts_as_that_long(tmp_path: Path) -> None:
    text = np.random.default_rng(0).integers(0, 50, 1000).tolist()
    cursor = corpus_of(tmp_path, text).cursor()
    for begin in range(0, 900, 90):
        cursor.advance(text[begin : begin + 90])
    assert cursor.match_length == LONGEST
    assert cursor.candidates()[0].tolist() == (900, LONGEST, 1)
    cursor.advance(text[:900])
    assert cursor.candidates()[0].tolist() == (900, LONGEST, 1)


@given(st.lists(st.lists(FEW, min_size=1, max_size=4), min_size=60, max_size=200), st.integers(1, 8))
def test_beyond_its_bounds_what_candidates_gives_is_still_true(
    tmp_path_factory: pytest.TempPathFactory, texts: list[list[int]], limit: int
) -> None:
    corpus, stream = corpus_of(tmp_path_factory.getbasetemp(), *texts), stream_of(*texts)
    cursor = corpus.cursor()
    cursor.advance(texts[0])
    end = texts[0][::-1]
    rows = cursor.candidates(200, 32).tolist()
    assert cursor.candidates(limit, 32).tolist() == rows[:limit]
    assert len({place for place, _, _ in rows}) == len(rows)
    assert [length for _, length, _ in rows] == sorted((length for _, length, _ in rows), reverse=True)
    exact = {(stream[p], n): count for p, n, count in twins.suggest(stream, end, 10_000, 10_000)}
    for place, length, count in rows:
        assert stream[place] >= 0
        assert twins.shared(stream, end, place) == length
        assert count <= exact.get((stream[place], length), 64)
    if rows:
        assert rows[0][1] == max(length for _, length in exact)


def test_threads_share_a_corpus(tmp_path: Path) -> None:
    text = np.random.default_rng(0).integers(0, 5, 5000).tolist()
    corpus = corpus_of(tmp_path, text)
    answers: list[Any] = [None] * 4

    def follow(number: int) -> None:
        cursor = corpus.cursor()
        answers[number] = []
        for token in text[100 * (number // 2) :][:200]:
            cursor.advance([token])
            answers[number].append(cursor.candidates().tolist())

    threads = [threading.Thread(target=follow, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers[0] == answers[1] != answers[2] == answers[3]


def test_another_tokenizer_is_refused(tmp_path: Path) -> None:
    corpus_of(tmp_path, [1, 2])
    assert StaticCorpus.open(tmp_path / "c.lkh", Named("abc")).fingerprint == "abc"
    with pytest.raises(StorageError, match=r"another tokenizer \(abc; this one is abd\); build a corpus with this one"):
        StaticCorpus.open(tmp_path / "c.lkh", Named("abd"))
    with pytest.raises(TypeError, match=r"str has no fingerprint; give views.tokens.Tokens.of\(tokenizer\)"):
        StaticCorpus.open(tmp_path / "c.lkh", "abc")  # type: ignore[arg-type]


@pytest.mark.parametrize("section", ["tokens", "order", "starts"])
def test_damage_that_opening_does_not_see_is_harmless_and_found_by_verifying(tmp_path: Path, section: str) -> None:
    text = np.random.default_rng(0).integers(0, 40_000, 60_000).tolist()
    whole = (tmp_path / "c.lkh").read_bytes() if corpus_of(tmp_path, text) else b""
    begin = whole.index(getattr(StaticCorpus.open(tmp_path / "c.lkh"), section).tobytes()) + 4400
    (tmp_path / "d.lkh").write_bytes(whole[:begin] + bytes([255, 254, 253, 252]) * 1000 + whole[begin + 4000 :])
    damaged = StaticCorpus.open(tmp_path / "d.lkh")
    cursor = damaged.cursor()
    for token in text[:1000]:
        cursor.advance([token])
        for position, *_ in cursor.candidates().tolist():
            assert damaged.tokens[position] >= 0
    with pytest.raises(StorageError, match=f"section {section} is not what was written"):
        damaged.verify()


def test_wrong_use_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"have 0 tokens; 1 to 2147483646 is allowed"):
        build([document([])], tmp_path / "c.lkh", "abc")
    with pytest.raises(ValueError, match="run from -1 to 1"):
        build([document([1, -1])], tmp_path / "c.lkh", "abc")
    assert not list(tmp_path.iterdir())
    cursor = corpus_of(tmp_path, [1, 2]).cursor()
    with pytest.raises(ValueError, match="run from -1"):
        cursor.advance([-1])
    for limit, per_token in ((0, 1), (1, 0)):
        with pytest.raises(ValueError, match=f"limit is {limit} and per_token is {per_token}; 1 or more is allowed"):
            cursor.candidates(limit, per_token)
    for position in (-1, 4):
        with pytest.raises(ValueError, match=f"position is {position}; 0 to 3 is allowed"):
            cursor.continuation(position, 1)
    with pytest.raises(ValueError, match="length is -1"):
        cursor.continuation(0, -1)
    assert cursor.continuation(3, 4).size == 0


def test_without_the_package_that_sorts_the_line_to_install_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(name: str) -> None:
        raise ModuleNotFoundError(name=name)

    monkeypatch.setattr(importlib, "import_module", absent)
    with pytest.raises(ModuleNotFoundError, match=r"run: pip install 'hf-lookahead\[index\]'"):
        corpus_of(tmp_path, [1, 2])

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import normalizers
from transformers import PreTrainedTokenizerFast

from lookahead.views.tokens import Tokens
from tests.vocabularies import KINDS, SAMPLE, vocabulary

TEXTS = st.one_of(st.text(max_size=40), st.lists(st.sampled_from(SAMPLE.splitlines(True)), max_size=6).map("".join))


@given(TEXTS)
def test_the_pieces_of_a_byte_level_vocabulary_are_the_text(text: str) -> None:
    tokens = Tokens(vocabulary("byte_level"))
    said = text.encode("utf-8", "replace").decode()
    assert b"".join(tokens.pieces(tokens.encode(said).tolist())).decode() == said


@given(TEXTS)
def test_the_pieces_of_a_sentence_piece_vocabulary_are_the_text_behind_a_space(text: str) -> None:
    tokens = Tokens(vocabulary("sentence_piece"))
    said = text.encode("utf-8", "replace").decode().replace("\u2581", "")
    if said:
        assert b"".join(tokens.pieces(tokens.encode(said).tolist())).decode() == " " + said


def test_the_pieces_of_a_word_piece_vocabulary_are_the_words() -> None:
    tokens = Tokens(vocabulary("word_piece"))
    said = "def render(self, width):"
    assert (
        b"".join(tokens.pieces(tokens.encode(said).tolist())).decode().split()
        == "def render ( self , width ) :".split()
    )


@pytest.mark.parametrize("kind", ["byte_level", "sentence_piece", "word_piece"])
def test_special_tokens_and_ids_beyond_the_vocabulary(kind: str) -> None:
    tokens = Tokens(vocabulary(kind))
    assert tokens.pieces([1, 10**6, 1]) == [b"<eos>", b"", b"<eos>"]
    assert tokens.encode("").tolist() == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_fingerprint_tells_what_decides_ids_and_nothing_else(kind: str, tmp_path: Path) -> None:
    def copied() -> Any:
        vocabulary(kind).save_pretrained(tmp_path)
        return PreTrainedTokenizerFast.from_pretrained(tmp_path)

    tokenizer, other = copied(), copied()
    fingerprint = Tokens.of(tokenizer).fingerprint
    assert len(fingerprint) == 32
    other("bb bb bb bb", truncation=True, max_length=3)
    assert other.backend_tokenizer.truncation is not None
    assert Tokens.of(other).fingerprint == fingerprint
    other.add_tokens(["<more>"])
    assert Tokens.of(other).fingerprint != fingerprint
    normalized = copied()
    normalized.backend_tokenizer.normalizer = normalizers.Lowercase()
    assert Tokens.of(normalized).fingerprint != fingerprint


def test_vocabularies_have_fingerprints_of_their_own() -> None:
    assert len({Tokens.of(vocabulary(kind)).fingerprint for kind in KINDS}) == 3


def test_slow_tokenizers_have_fingerprints() -> None:
    class Slow:
        def __init__(self, *words: str) -> None:
            self._words = words
            self.added_tokens_decoder = {9: "<eos>"}

        def get_vocab(self) -> dict[str, int]:
            return {word: number for number, word in enumerate(self._words)}

    first, second, third = Slow("a", "b"), Slow("a", "b"), Slow("b", "a")
    assert Tokens(first).fingerprint == Tokens(second).fingerprint != Tokens(third).fingerprint
    second.added_tokens_decoder[10] = "<more>"
    assert Tokens(first).fingerprint != Tokens(second).fingerprint

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookahead.views.tokens import Tokens
from tests.vocabularies import SAMPLE, vocabulary

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

"""Mining: what many texts hold comes out, what few hold does not."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookahead.phrases import mine
from tests.vocabularies import KINDS, vocabulary

LICENCE = "# Licensed under the Apache License, Version 2.0; you may not use this file except in compliance with it.\n"
HEADER = "from __future__ import annotations\n\nimport pytest\nfrom hypothesis import given\n"


def files(count: int) -> list[str]:
    """Return files with a licence, of which every second has the header of a test; the rest differs."""
    return [
        f"{LICENCE}{HEADER * (number % 2)}value_{number * 7919}_{number} = {number**5}\n" for number in range(count)
    ]


@pytest.mark.parametrize("kind", ["byte_level", "sentence_piece"])
def test_what_many_texts_hold_is_found_the_most_promising_first(kind: str) -> None:
    found = mine(files(12), vocabulary(kind))
    assert found[0].startswith(LICENCE.strip())
    assert any(HEADER.strip()[-40:] in phrase for phrase in found)
    assert not any(re.search("value_[0-9]", phrase) for phrase in found)


def test_what_too_few_texts_hold_is_no_phrase() -> None:
    assert mine([LICENCE, HEADER, LICENCE], vocabulary("byte_level")) == []
    assert mine([LICENCE, HEADER, LICENCE], vocabulary("byte_level"), least=2) == [LICENCE.strip()]
    assert mine([], vocabulary("byte_level")) == mine(["", "x"], vocabulary("byte_level")) == []


def test_one_text_that_repeats_itself_is_one_text() -> None:
    assert mine([LICENCE * 9], vocabulary("byte_level"), least=2) == []


@given(st.sampled_from(KINDS), st.lists(st.sampled_from([LICENCE, HEADER, "é中 \n", "x = 1\n", ""]), max_size=9))
def test_what_is_found_stands_in_enough_texts_within_the_bounds(kind: str, pieces: list[str]) -> None:
    texts = ["".join(pieces[first:]) for first in range(len(pieces))]
    found = mine(texts, vocabulary(kind), count=2, max_bytes=150, least=2)
    assert len(found) <= 2 and sum(len(phrase.encode()) for phrase in found) <= 150
    assert len(set(found)) == len(found) and all(phrase.strip() for phrase in found)
    if kind == "byte_level":  # which writes texts as they are
        for phrase in found:
            ids = vocabulary(kind)(phrase, add_special_tokens=False)["input_ids"][1:-1]  # cut as in the texts
            parts = [vocabulary(kind).decode(ids[first : first + 8]).strip("\ufffd") for first in range(len(ids) - 7)]
            assert any(phrase in text for text in texts)
            assert all(sum(part in text for text in texts) >= 2 for part in parts)


@pytest.mark.parametrize(("name", "value", "lowest"), [("count", 0, 1), ("max_bytes", -1, 1), ("least", 1, 2)])
def test_a_bound_that_is_out_of_range(name: str, value: int, lowest: int) -> None:
    with pytest.raises(ValueError, match=f"{name}={value} is out of range; allowed is {lowest} and above"):
        mine([LICENCE], vocabulary("byte_level"), **{name: value})


@pytest.mark.parametrize("texts", [LICENCE, [LICENCE, 3], [None]])
def test_what_is_no_list_of_texts(texts: Any) -> None:
    with pytest.raises(TypeError, match="allowed is a list of texts"):
        mine(texts, vocabulary("byte_level"))


def test_halves_of_characters_are_no_hindrance() -> None:
    (phrase,) = mine([LICENCE + "\ud800"] * 3, vocabulary("byte_level"))
    assert phrase.startswith(LICENCE[:40].strip())


def test_what_is_no_tokenizer() -> None:
    with pytest.raises(TypeError, match="int is no tokenizer"):
        mine([LICENCE], 3)

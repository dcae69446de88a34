"""Phrases are drafted from their openings on, before anything similar was said."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookahead import Drafter
from lookahead.views.phrases import Phrases
from lookahead.views.tokens import Tokens
from tests.vocabularies import KINDS, vocabulary

LICENCE = "Licensed under the Apache License, Version 2.0; you may not use this file except in compliance."
OTHER = "Licensed under the terms of nobody at all, since this text was never meant to be used."


def replay(drafter: Drafter, prompt: str, answer: str, kind: str = "byte_level") -> dict[str, int]:
    """Replay an answer; return how many tokens were accepted from each source, and under "model" all others."""
    ids = vocabulary(kind)(answer, add_special_tokens=False)["input_ids"]
    drafter.begin(prompt)
    found = {"model": 0, "drafted": 0}
    while ids:
        draft = drafter.propose(32)
        path = draft.follow(ids)
        for node in path:
            found[draft.sources[node]] = found.get(draft.sources[node], 0) + 1
        found["drafted"] += sum(source == "phrase" for source in draft.sources)
        found["model"] += len(path) < len(ids)
        drafter.accept(ids[: len(path) + 1])
        ids = ids[len(path) + 1 :]
    return found


@pytest.mark.parametrize("kind", ["byte_level", "sentence_piece"])
def test_a_phrase_is_drafted_before_anything_similar_was_said(kind: str) -> None:
    drafter = Drafter(vocabulary(kind), phrases=[LICENCE], recycling=False, cost="linear:0.002")
    with_phrases = replay(drafter, "Write a file.", f"# {LICENCE}\nx = 1\n", kind)
    without = replay(Drafter(vocabulary(kind), recycling=False, cost="linear:0.002"), "Write a file.", LICENCE, kind)
    assert with_phrases["phrase"] > 20 and 3 * with_phrases["model"] < without["model"]


def test_of_phrases_that_open_alike_all_are_drafted() -> None:
    for said in (LICENCE, OTHER):
        drafter = Drafter(vocabulary("byte_level"), phrases=[LICENCE, OTHER], cost="linear:0.002")
        assert replay(drafter, "Write.", said)["phrase"] > 10


def test_a_prompt_may_open_a_phrase() -> None:
    drafter = Drafter(vocabulary("byte_level"), phrases=[LICENCE])
    opening = Phrases((LICENCE,), Tokens.of(vocabulary("byte_level")))[0].opening
    drafter.begin(f"x = 1\n{LICENCE[:opening]}")
    ids = vocabulary("byte_level")(LICENCE[opening:], add_special_tokens=False)["input_ids"]
    assert drafter.propose(8).follow(ids)


def test_phrases_that_never_go_on_as_foreseen_are_drafted_less_and_less() -> None:
    drafter = Drafter(vocabulary("byte_level"), phrases=[LICENCE], recycling=False, cost="linear:0.03")
    opening = Phrases((LICENCE,), Tokens.of(vocabulary("byte_level")))[0].opening
    wrong = [f"{LICENCE[:opening]}{character} = {number}\n" for number, character in enumerate("QXZJKVWY" * 6)]
    tried = [replay(drafter, "Write.", each)["drafted"] for each in wrong]
    assert sum(tried[-8:]) < sum(tried[:8]) / 2


@given(
    st.sampled_from(KINDS),
    st.lists(st.text(min_size=1, max_size=30).filter(str.strip), max_size=5),
    st.lists(st.integers(0, 30), max_size=5),
)
def test_any_phrases_may_be_said_in_any_pieces(kind: str, phrases: list[str], cuts: list[int]) -> None:
    drafter = Drafter(vocabulary(kind), phrases=phrases, max_bytes=65_536)
    drafter.begin("x")
    said = vocabulary(kind)("".join(phrases), add_special_tokens=False)["input_ids"]
    for cut in cuts:
        assert len(drafter.propose(16)) <= 16
        drafter.accept(said[:cut])
        said = said[cut:]


@given(st.sampled_from(KINDS), st.text(min_size=1, max_size=60).filter(str.strip), st.integers(0, 60))
def test_a_token_is_foreseen_only_where_the_phrase_was_said_so_far(kind: str, text: str, cut: int) -> None:
    tokens = Tokens.of(vocabulary(kind))
    phrase = Phrases((text,), tokens)[0]
    behind = phrase.text[phrase.opening : phrase.opening + cut]
    token = phrase.token(behind)
    assert phrase.token(behind + b"\xff") == -1
    assert token < len(phrase.ids)
    if token >= 0 and kind == "byte_level":
        left = b"".join(tokens.pieces(phrase.ids[token:].tolist()))
        assert phrase.text[: phrase.opening] + behind + left == phrase.text


def test_the_same_phrases_are_prepared_once() -> None:
    tokens = Tokens.of(vocabulary("byte_level"))
    assert Phrases.of((LICENCE, OTHER), tokens) is Phrases.of((LICENCE, OTHER), tokens)


@pytest.mark.compiled
def test_where_no_phrase_is_opened_a_step_takes_a_few_microseconds_more() -> None:
    phrases = Phrases(
        tuple(f"{LICENCE} number {number}" for number in range(1000)), Tokens.of(vocabulary("byte_level"))
    )
    watcher, best = phrases.watcher(), 1.0
    for _ in range(20):
        started = time.perf_counter()
        for _ in range(200):
            watcher.feed(b"    return self.value")
        best = min(best, (time.perf_counter() - started) / 200)
    assert best < 5e-6

"""Caches kept for next turns: an answer from a continued or cut cache is the one of a fresh run."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import GenerationConfig

from lookahead import Lookahead
from lookahead.hf.answering import Ask, Settings, answer
from lookahead.hf.prefixes import Prefixes
from tests.models import KINDS, prompt, tiny

TOKENS = 24
MUCH = 10**9


def vanilla(model: Any, ids: list[int]) -> list[int]:
    given = torch.tensor([ids])
    out = model.generate(given, attention_mask=torch.ones_like(given), max_new_tokens=TOKENS, do_sample=False)
    return out[0, len(ids) :].tolist()


def ask(
    model: Any, ids: list[int], prefixes: Prefixes, owner: str = "", ends_at: int = TOKENS
) -> tuple[list[int], int]:
    """Return the tokens of an answer, ended after some of them, and how much of the prompt was cached."""
    heard: list[int] = []

    def on_token(token: int, chances: Any) -> bool:
        heard.append(token)
        return len(heard) >= ends_at

    wanted = Ask(ids, Settings(TOKENS, {"do_sample": False}), on_token, owner)
    found = answer(model, Lookahead(cost="linear:0.01"), wanted, prefixes)
    assert found.tokens == heard
    return found.tokens, found.cached_tokens


@pytest.mark.parametrize("kind", KINDS)
def test_turns_continue_and_branches_cut(kind: str) -> None:
    model = tiny(kind)
    prefixes = Prefixes(model, MUCH)
    first = prompt(60)[0].tolist()
    tokens, cached = ask(model, first, prefixes)
    assert (tokens, cached) == (vanilla(model, first), 0)
    second = [*first, *tokens, *prompt(15, seed=3)[0].tolist()]
    tokens, cached = ask(model, second, prefixes)
    assert (tokens, cached) == (vanilla(model, second), len(first) + TOKENS - 1)
    is_cut = kind not in ("mistral", "gemma3")  # their windows have forgotten
    for branch in ([*first[:50], 5, 6, 7], second[:-9], second):  # from before, shorter, and once more
        expected_cached = {True: min(len(branch) - 1, len(second)), False: 0}[is_cut]
        tokens, cached = ask(model, branch, prefixes)
        assert tokens == vanilla(model, branch)
        assert cached == (50 if is_cut and branch[50:] == [5, 6, 7] else expected_cached)


@pytest.mark.parametrize("ends_at", [1, 2, 9])
@pytest.mark.parametrize("kind", ["llama", "mistral"])
def test_an_answer_that_was_ended_leaves_a_cache_that_serves(kind: str, ends_at: int) -> None:
    model = tiny(kind)
    prefixes = Prefixes(model, MUCH)
    ids = prompt(40)[0].tolist()
    tokens, _ = ask(model, ids, prefixes, ends_at=ends_at)
    assert tokens == vanilla(model, ids)[:ends_at]
    following = [*ids, *tokens, 9, 8, 7]
    tokens, cached = ask(model, following, prefixes)
    assert (tokens, cached) == (vanilla(model, following), len(ids) + ends_at - 1)


def test_owners_do_not_share_and_the_oldest_goes() -> None:
    model = tiny()
    ids = prompt(40)[0].tolist()
    one = Prefixes(model, MUCH)
    ask(model, ids, one)
    prefixes = Prefixes(model, int(2.5 * one.nbytes))
    ask(model, ids, prefixes, "a")
    assert ask(model, ids, prefixes, "b")[1] == 0
    assert ask(model, ids, prefixes, "a")[1] == len(ids) - 1
    ask(model, ids, prefixes, "c")  # gives up the one of b, which was used before the one of a
    assert len(prefixes) == 2
    assert ask(model, ids, prefixes, "a")[1] == len(ids) - 1
    assert ask(model, ids, prefixes, "b")[1] == 0


def test_none_is_kept_where_none_is_wanted() -> None:
    prefixes = Prefixes(tiny(), max_bytes=0)
    ids = prompt(40)[0].tolist()
    assert ask(tiny(), ids, prefixes) == (vanilla(tiny(), ids), 0)
    assert ask(tiny(), ids, prefixes) == (vanilla(tiny(), ids), 0)
    assert len(prefixes) == 0


def test_what_another_cache_holds_is_kept_once() -> None:
    model, prefixes = tiny(), Prefixes(tiny(), MUCH)
    ids = prompt(40)[0].tolist()
    tokens, _ = ask(model, ids, prefixes)
    once = prefixes.nbytes
    for _ in range(3):
        ask(model, ids, prefixes)
    assert (len(prefixes), prefixes.nbytes) == (1, once)
    ask(model, [*ids, *tokens, 9, 8, 7], prefixes)
    assert len(prefixes) == 1


def test_memory_is_bounded_and_measured_as_it_is_held() -> None:
    model, prefixes = tiny(), Prefixes(tiny(), 100_000)
    expected = 2 * 2 * 2 * 8 * 8  # layers, keys and values, heads, of 8 numbers of 8 bytes: for each token
    for number in range(12):
        ids = prompt(40, seed=number)[0].tolist()
        ask(model, ids, prefixes)
        held = sum(one.cache.get_seq_length() for one in prefixes._kept)
        assert held * (expected + 8) <= prefixes.nbytes <= 100_000
    assert 1 < len(prefixes) < 12
    ask(model, prompt(300)[0].tolist(), prefixes)  # too long to be kept at all
    assert prefixes.nbytes <= 100_000


def test_a_cache_is_lost_with_a_call_that_fails() -> None:
    model, prefixes = tiny(), Prefixes(tiny(), MUCH)
    ids = prompt(40)[0].tolist()
    tokens, _ = ask(model, ids, prefixes)

    def on_token(token: int, chances: Any) -> bool:
        raise RuntimeError("on purpose")

    with pytest.raises(RuntimeError, match="on purpose"):
        following = [*ids, *tokens, 5]
        answer(model, Lookahead(), Ask(following, Settings(TOKENS, {"do_sample": False}), on_token), prefixes)
    assert ask(model, following, prefixes) == (vanilla(model, following), 0)


def test_a_seed_is_that_of_generate_with_a_continued_cache_too() -> None:
    model, prefixes = tiny(), Prefixes(tiny(), MUCH)
    ids = prompt(40)[0].tolist()
    sampled = {"do_sample": True, "temperature": 0.7, "top_k": 0}
    for _ in range(2):
        wanted = Ask(ids, Settings(TOKENS, sampled, seed=11), lambda token, chances: False)
        found = answer(model, Lookahead(), wanted, prefixes)
        torch.manual_seed(11)
        given = torch.tensor([ids])
        config = GenerationConfig(max_new_tokens=TOKENS, pad_token_id=0, **sampled)
        expected = model.generate(given, attention_mask=torch.ones_like(given), generation_config=config)
        assert found.tokens == expected[0, len(ids) :].tolist()
    assert found.cached_tokens == len(ids) - 1

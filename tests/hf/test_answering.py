"""Answers in one batch: greedy ones are those of `generate`, each with processors and an end of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from lookahead import Lookahead
from lookahead.hf.answering import Answer, Ask, Settings, answer, answer_together, go_together
from lookahead.hf.prefixes import Prefixes
from lookahead.hf.refusals import Unsupported
from tests.models import prompt, tiny

GREEDY = {"do_sample": False}
END = 2
PROMPTS = [prompt(length, seed=length)[0].tolist() for length in (40, 25, 61)]


@pytest.fixture(autouse=True)
def end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the models an end, which batches need."""
    for model in (tiny(), tiny("gemma3")):
        monkeypatch.setattr(model.generation_config, "eos_token_id", END)


def vanilla(model: Any, ids: list[int], count: int = 20) -> list[int]:
    given = torch.tensor([ids])
    out = model.generate(given, attention_mask=torch.ones_like(given), max_new_tokens=count, do_sample=False)
    return out[0, len(ids) :].tolist()


def never(token: int, chances: Any) -> bool:
    return False


def ask(ids: list[int], owner: str = "", count: int = 20, hears: Callable[..., bool] = never, **settings: Any) -> Ask:
    return Ask(ids, Settings(count, **{"sampling": GREEDY, **settings}), hears, owner)


def together(model: Any, asks: list[Ask], prefixes: Prefixes | None = None) -> list[Answer]:
    return answer_together(
        model, Lookahead(cost="linear:0.01"), asks, Prefixes(model, 0) if prefixes is None else prefixes
    )


@pytest.mark.parametrize("kinds", [(), ("gemma3",)])
def test_greedy_answers_are_those_of_generate_and_end_where_each_does(kinds: tuple[str, ...]) -> None:
    model, counts = tiny(*kinds), (20, 5, 11)
    found = together(model, [ask(ids, count=count) for ids, count in zip(PROMPTS, counts, strict=True)])
    expected = [vanilla(model, ids, count) for ids, count in zip(PROMPTS, counts, strict=True)]
    assert [one.tokens for one in found] == expected


def test_every_answer_has_processors_of_its_own() -> None:
    model, heard = tiny(), list[Any]()

    def hears(token: int, chances: Any) -> bool:
        heard.append(chances)
        return False

    different: list[dict[str, Any]] = [
        {"bias": {7: 100.0}, "count": 4},
        {"presence": 1.5, "frequency": 0.5},
        {"logprobs": 3, "hears": hears},
    ]
    found = together(model, [ask(ids, **more) for ids, more in zip(PROMPTS, different, strict=True)])
    alone = [
        answer(model, Lookahead(), ask(ids, **{**more, "hears": never}), Prefixes(model, 0)).tokens
        for ids, more in zip(PROMPTS, different, strict=True)
    ]
    assert [one.tokens for one in found] == alone
    assert alone[0] == [7] * 4 and alone[1] != vanilla(model, PROMPTS[1])
    assert [one.token for one in heard] == alone[2] and len(heard[0].likeliest) == 3


@pytest.mark.parametrize("ends_at", [1, 2, 9])
def test_an_answer_that_nobody_waits_for_ends_and_the_others_go_on(ends_at: int) -> None:
    model, heard = tiny(), list[int]()

    def hears(token: int, chances: Any) -> bool:
        heard.append(token)
        return len(heard) == ends_at

    found = together(model, [ask(PROMPTS[0]), ask(PROMPTS[1], hears=hears), ask(PROMPTS[2])])
    expected = [vanilla(model, ids) for ids in PROMPTS]
    assert [one.tokens for one in found] == [expected[0], expected[1][:ends_at], expected[2]]


def test_each_ones_cache_is_kept_and_serves_alone_and_together() -> None:
    model = tiny()
    prefixes = Prefixes(model, 10**9)
    asks = [ask(ids, owner=str(number), count=8 + number) for number, ids in enumerate(PROMPTS)]
    first = together(model, asks, prefixes)
    assert len(prefixes) == 3 and [one.cached_tokens for one in first] == [0, 0, 0]
    following = [[*ids, *one.tokens, *PROMPTS[1][:6]] for ids, one in zip(PROMPTS, first, strict=True)]
    held = [len(ids) + len(one.tokens) - 1 for ids, one in zip(PROMPTS, first, strict=True)]
    assert [prefixes.common(str(number), ids) for number, ids in enumerate(following)] == held
    second = together(model, [ask(ids, owner=str(number)) for number, ids in enumerate(following)], prefixes)
    assert [one.tokens for one in second] == [vanilla(model, ids) for ids in following]
    assert [one.cached_tokens for one in second] == held  # as many new tokens in each
    last = [*following[0], *second[0].tokens, 9]
    third = answer(model, Lookahead(), ask(last, owner="0"), prefixes)
    assert (third.tokens, third.cached_tokens) == (vanilla(model, last), len(last) - 2)


@pytest.mark.parametrize("known", [0, 1, 2])
def test_rows_are_continued_from_one_slot(known: int) -> None:
    model = tiny()
    prefixes = Prefixes(model, 10**9)
    answer(model, Lookahead(), ask(PROMPTS[known], owner=str(known)), prefixes)
    following = [[*ids, 5, 6, 7] for ids in PROMPTS]
    found = together(model, [ask(ids, owner=str(number)) for number, ids in enumerate(following)], prefixes)
    assert [one.tokens for one in found] == [vanilla(model, ids) for ids in following]
    assert [one.cached_tokens for number, one in enumerate(found) if number != known] == [0, 0]


def test_who_goes_together() -> None:
    model, prefixes = tiny(), Prefixes(tiny(), 10**9)
    plain = ask(PROMPTS[0])
    assert go_together(model, [plain, ask(PROMPTS[1], count=3, bias={1: 2.0})], prefixes)
    assert not go_together(model, [plain, ask(PROMPTS[1], seed=3)], prefixes)
    assert not go_together(model, [plain, ask(PROMPTS[1], sampling={"do_sample": True})], prefixes)
    assert not go_together(model, [plain, Ask(PROMPTS[1], Settings(9, GREEDY), never, prediction=[1, 2])], prefixes)
    assert not go_together(model, [ask(PROMPTS[0], count=400), ask([3] * 200)], prefixes)  # more than the context
    long = [3, 4, 5] * 100
    assert not go_together(model, [ask(long), *[ask(PROMPTS[1])] * 3], prefixes)  # would read mostly padding
    answer(model, Lookahead(), ask(long, count=2), prefixes)
    assert go_together(model, [ask([*long, 9]), *[ask(PROMPTS[1])] * 3], prefixes)  # the long one is known


def test_a_model_whose_rows_would_not_end_is_refused_before_any_work() -> None:
    class Heard(Exception):
        pass

    def hears(token: int, chances: Any) -> bool:
        raise Heard

    with pytest.raises(Unsupported):
        together(tiny("qwen2"), [ask(ids, hears=hears) for ids in PROMPTS])

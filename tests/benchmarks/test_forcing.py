"""A forced model says what was recorded, in every way of generating, and a prefilled one feeds its prompt to no one."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from benchmarks.forcing import Forced, Prefilled
from lookahead import Lookahead
from tests.models import prompt, tiny

WAYS: dict[str, dict[str, Any]] = {
    "generate": {},
    "prompt lookup": {"prompt_lookup_num_tokens": 5},
    "lookahead": {"custom_generate": Lookahead(cost="linear:0.01")},
}


@pytest.fixture(scope="module")
def model() -> Any:
    made = tiny(dtype=torch.float32)
    made.generation_config.eos_token_id = None
    made.generation_config.pad_token_id = 0
    WAYS["lookahead"]["custom_generate"].generate(made, prompt(seed=3), max_new_tokens=2)  # tries the model out
    return made


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("prefilled", [False, True])
def test_what_is_forced_is_said(model: Any, way: str, prefilled: bool) -> None:
    ids = prompt(seed=1)
    length, answer = ids.shape[1], ids[0, 3:20].tolist() + ids[0, 5:9].tolist()
    fed, settings = list[int](), {"max_new_tokens": len(answer), "do_sample": False, **WAYS[way]}
    plain = model.generate(ids, **settings)
    assert plain[0, length:].tolist() != answer
    hook = model.register_forward_pre_hook(
        lambda _, __, named: fed.append(named["input_ids"].shape[1]), with_kwargs=True
    )
    with Forced(model, length, answer):
        if prefilled:
            with Prefilled(model, ids) as filled:
                fed.clear()
                out = model.generate(ids, **settings)
                assert filled.seconds > 0
        else:
            out = model.generate(ids, **settings)
    hook.remove()
    assert out[0, length:].tolist() == answer
    assert fed[0] >= length  # stock prompt lookup drafts behind the prompt at once
    assert (len(fed) < len(answer)) == (way != "generate")
    assert torch.equal(model.generate(ids, **settings), plain)


@pytest.mark.parametrize("way", WAYS)
def test_a_prefilled_prompt_changes_no_output(model: Any, way: str) -> None:
    ids, settings = prompt(seed=2), {"max_new_tokens": 12, "do_sample": False, **WAYS[way]}
    expected, fed = model.generate(ids, **settings), list[int]()
    with Prefilled(model, ids):
        hook = model.get_decoder().layers[0].register_forward_hook(lambda _, given, __: fed.append(given[0].shape[1]))
        assert torch.equal(model.generate(ids, **settings), expected)
        hook.remove()
    assert fed[0] == 1  # all but the last token stood in the cache

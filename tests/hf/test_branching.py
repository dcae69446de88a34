from __future__ import annotations

import copy
import functools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from transformers import DynamicCache

from lookahead import Lookahead
from lookahead.hf import names
from lookahead.hf.branching import takes_trees
from tests.models import prompt, tiny


def fresh(kind: str = "llama", **kwargs: Any) -> Any:
    """Return a model about which nothing is known yet."""
    return copy.deepcopy(tiny(kind, **kwargs))


def cache_of(model: Any) -> Any:
    return DynamicCache(config=model.config)


@contextmanager
def forwards(model: Any) -> Iterator[list[int]]:
    """Collect the number of rows of each forward."""
    seen: list[int] = []
    hook = model.register_forward_pre_hook(
        lambda _, args, kwargs: seen.append(kwargs["input_ids"].shape[-1]), with_kwargs=True
    )
    yield seen
    hook.remove()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("kind", ["llama", "qwen2", "gpt2"])
def test_models_that_take_trees(kind: str, attention: str, dtype: torch.dtype) -> None:
    model = fresh(kind, attention=attention, dtype=dtype)
    with torch.no_grad():
        assert takes_trees(model, cache_of(model)) == (torch.bool if attention == "sdpa" else dtype)


def test_a_model_with_alibi_takes_none() -> None:
    model = fresh("bloom")
    with torch.no_grad():
        assert takes_trees(model, cache_of(model)) is None


def test_a_model_that_refuses_the_mask_takes_none(monkeypatch: pytest.MonkeyPatch) -> None:
    model = fresh()
    plain = model.forward

    @functools.wraps(plain)
    def forward(*args: Any, attention_mask: Any = None, **kwargs: Any) -> Any:
        if attention_mask is not None and attention_mask.ndim == 4:
            raise ValueError("masks have two dimensions here")
        return plain(*args, attention_mask=attention_mask, **kwargs)

    monkeypatch.setattr(model, "forward", forward)
    with torch.no_grad():
        assert takes_trees(model, cache_of(model)) is None
    lookahead = Lookahead(cost="linear:0")
    ours = model.generate(prompt(), max_new_tokens=30, custom_generate=lookahead)
    assert torch.equal(ours, tiny().generate(prompt(), max_new_tokens=30))
    assert lookahead.stats.accepted > 0


def test_a_model_that_ignores_the_mask_takes_none(monkeypatch: pytest.MonkeyPatch) -> None:
    model = fresh()
    plain = model.forward

    @functools.wraps(plain)
    def forward(*args: Any, attention_mask: Any = None, **kwargs: Any) -> Any:
        return plain(*args, **kwargs)

    monkeypatch.setattr(model, "forward", forward)
    with torch.no_grad():
        assert takes_trees(model, cache_of(model)) is None


def test_training_mode_takes_none_and_runs_nothing() -> None:
    model = fresh().train()
    with forwards(model) as seen:
        assert takes_trees(model, cache_of(model)) is None
    assert seen == []


@pytest.mark.parametrize("kind", ["mistral", "gemma3"])
def test_sliding_windows_take_none_and_run_nothing(kind: str) -> None:
    model = fresh(kind)
    with forwards(model) as seen:
        assert takes_trees(model, cache_of(model)) is None
    assert seen == []


def test_the_answer_is_remembered_for_each_model_and_dtype() -> None:
    model, other = fresh(), fresh()
    with torch.no_grad(), forwards(model) as seen:
        assert takes_trees(model, cache_of(model)) == torch.bool
        assert len(seen) == 3
        assert max(seen) <= 5
        assert takes_trees(model, cache_of(model)) == torch.bool
        assert len(seen) == 3
        model.to(torch.float32)
        assert takes_trees(model, cache_of(model)) == torch.bool
        assert len(seen) == 6
        with forwards(other) as more:
            takes_trees(other, cache_of(other))
        assert len(more) == 3


def test_a_refusal_is_remembered_too() -> None:
    model = fresh("bloom")
    with torch.no_grad(), forwards(model) as seen:
        takes_trees(model, cache_of(model))
        before = len(seen)
        assert takes_trees(model, cache_of(model)) is None
    assert len(seen) == before


def test_the_probe_leaves_no_trace() -> None:
    model, ids = fresh(), prompt()
    cache = cache_of(model)
    with torch.no_grad():
        model(input_ids=ids, use_cache=True, **{names.cache_name(): cache})
        states = [(layer.keys.clone(), layer.values.clone()) for layer in cache.layers]
        torch.manual_seed(5)
        before = torch.get_rng_state()
        takes_trees(model, cache)
    assert torch.equal(torch.get_rng_state(), before)
    assert cache.get_seq_length() == ids.shape[1]
    for layer, (keys, values) in zip(cache.layers, states, strict=True):
        assert torch.equal(layer.keys, keys)
        assert torch.equal(layer.values, values)
    assert not any(parameter.requires_grad and parameter.grad is not None for parameter in model.parameters())


def test_a_model_is_asked_once_also_where_drafts_are_chains() -> None:
    model, lookahead = fresh(), Lookahead(tree=False)
    for asked in ([5, 2, 4], []):
        with forwards(model) as seen:
            model.generate(prompt(), max_new_tokens=1, custom_generate=lookahead)
        assert seen == [*asked, prompt().shape[1]]

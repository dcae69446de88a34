from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import DynamicCache

from lookahead.hf import names
from lookahead.hf.cache import keep_rows
from tests.models import prompt, tiny


def cache_of(length: int) -> tuple[Any, list[tuple[torch.Tensor, torch.Tensor]]]:
    """Return a cache of two layers with random states, and the states."""
    generator = torch.Generator().manual_seed(length)
    cache, states = DynamicCache(), []
    for layer in range(2):
        keys, values = torch.randn(2, 1, 3, length, 4, generator=generator)
        cache.update(keys.clone(), values.clone(), layer)
        states.append((keys, values))
    return cache, states


@given(st.integers(0, 6), st.integers(1, 8), st.data())
def test_what_stays_is_the_past_and_the_kept_rows(past: int, fed: int, data: st.DataObject) -> None:
    rows = sorted(data.draw(st.sets(st.integers(0, fed - 1))))
    cache, states = cache_of(past + fed)
    keep_rows(cache, fed, [rows])
    kept = [*range(past), *(past + row for row in rows)]
    for layer, (keys, values) in zip(cache.layers, states, strict=True):
        assert torch.equal(layer.keys, torch.stack([keys[:, :, i] for i in kept], dim=2) if kept else keys[:, :, :0])
        assert torch.equal(
            layer.values, torch.stack([values[:, :, i] for i in kept], dim=2) if kept else values[:, :, :0]
        )


def test_rows_at_the_front_are_not_moved() -> None:
    cache, states = cache_of(9)
    keep_rows(cache, 4, [[0, 1]])
    assert cache.get_seq_length() == 7
    assert torch.equal(cache.layers[0].keys, states[0][0][:, :, :7])


def test_all_rows_may_stay() -> None:
    cache, states = cache_of(9)
    keep_rows(cache, 4, [[0, 1, 2, 3]])
    assert torch.equal(cache.layers[1].values, states[1][1])


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_a_cache_goes_on_as_if_rejected_rows_had_never_been(kind: str) -> None:
    model, ids = tiny(kind), prompt(12)
    name = names.cache_name()
    clean, rolled = DynamicCache(config=model.config), DynamicCache(config=model.config)
    with torch.no_grad():
        model(input_ids=ids, use_cache=True, **{name: clean})
        model(input_ids=ids[:, :9], use_cache=True, **{name: rolled})
        branches = torch.cat([ids[:, 9:10], torch.tensor([[5]]), ids[:, 10:12], torch.tensor([[6]])], dim=1)
        mask = torch.ones(5, 14, dtype=torch.bool).tril(9)
        mask[2:, 10] = False  # behind row 0 stand two branches: row 1 alone, and rows 2 and 3
        positions = torch.tensor([[9, 10, 10, 11, 12]])
        model(
            input_ids=branches,
            attention_mask=mask[None, None],
            position_ids=positions,
            use_cache=True,
            **{name: rolled},
        )
        keep_rows(rolled, 5, [[0, 2, 3]])
        following = torch.tensor([[7, 8]])
        expected = model(input_ids=following, use_cache=True, **{name: clean}).logits
        found = model(input_ids=following, use_cache=True, **{name: rolled}).logits
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-6)
    assert rolled.get_seq_length() == clean.get_seq_length() == 14

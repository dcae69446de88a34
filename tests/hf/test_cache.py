from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import DynamicCache, EncoderDecoderCache, StaticCache
from transformers.cache_utils import QuantizedLayer, StaticLayer

from benchmarks.architectures import architectures
from benchmarks.architectures import tiny as small
from lookahead.hf import names
from lookahead.hf.cache import Rollback, keep_rows, rolls_back
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


NEWER = pytest.mark.skipif(not hasattr(StaticLayer, "crop"), reason="this release refuses static caches and states")


@NEWER
def test_what_rolls_back() -> None:
    config = tiny().config
    assert rolls_back(DynamicCache())
    assert rolls_back(DynamicCache(config=config))
    assert rolls_back(DynamicCache(config=tiny("gemma3").config))
    assert rolls_back(StaticCache(config=config, max_cache_len=32))
    assert rolls_back(StaticCache(config=tiny("gemma3").config, max_cache_len=32))
    assert rolls_back(EncoderDecoderCache(DynamicCache(), DynamicCache()))
    assert not rolls_back(None)
    assert not rolls_back({"layers": []})


class Packed(QuantizedLayer):
    """A quantized layer that packs nothing: what is packed, and when, shows in `packs`."""

    def __init__(self) -> None:
        super().__init__(residual_length=8)
        self.packs: list[int] = []

    def _quantize(self, tensor: torch.Tensor, axis: int) -> torch.Tensor:
        self.packs.append(tensor.shape[-2])
        return tensor

    def _dequantize(self, packed: torch.Tensor) -> torch.Tensor:
        return packed


@NEWER
def test_a_quantized_layer_packs_as_token_by_token() -> None:
    states = torch.randn(1, 2, 40, 4)
    single, several = Packed(), Packed()
    for layer in (single, several):
        layer.update(states[:, :, :5], states[:, :, :5])
    for at in range(5, 40):
        single.update(states[:, :, at : at + 1], states[:, :, at : at + 1])
    cache = DynamicCache()
    cache.layers = [several]
    rollback, at = Rollback(cache), 5
    assert not rollback.replays
    while at < 40:
        fed = max(1, min(rollback.room(), 3, 40 - at))
        kept = max(1, fed - 1)
        guess = torch.cat([states[:, :, at : at + kept], torch.zeros(1, 2, fed - kept, 4)], dim=2)
        rollback.before(fed > 1)
        several.update(guess, guess)
        rollback.keep(fed, list(range(kept)))
        at += kept
        assert several.get_seq_length() == at
    assert several.packs == single.packs and len(single.packs) > 6
    assert torch.equal(several.keys, single.keys)


@NEWER
def test_a_static_layer_has_room_for_what_is_free() -> None:
    cache = StaticCache(config=tiny().config, max_cache_len=24)
    with torch.no_grad():
        tiny()(input_ids=prompt(10), use_cache=True, **{names.cache_name(): cache})
    rollback = Rollback(cache)
    assert rollback.is_static and rollback.room() == 14
    with torch.no_grad():
        tiny()(input_ids=prompt(6), use_cache=True, **{names.cache_name(): cache})
    rollback.keep(6, [0, 1])
    assert int(cache.get_seq_length()) == 12 and rollback.room() == 12
    assert Rollback(DynamicCache()).room() > 1000


@NEWER
@pytest.mark.parametrize("kind", ["mamba2", "falcon_h1", "qwen3_next"])
def test_a_state_is_put_back_in_its_place(kind: str) -> None:
    if kind not in architectures():
        pytest.skip(f"this release has no {kind}")
    model = small(kind, architectures()[kind])
    cache = DynamicCache(config=model.config)
    ids = prompt(12)
    with torch.no_grad():
        model(input_ids=ids, use_cache=True, **{names.cache_name(): cache})
        clean = copy.deepcopy(cache)
        places = [layer.conv_states[0].data_ptr() for layer in cache.layers if hasattr(layer, "conv_states")]
        rollback = Rollback(cache)
        assert rollback.replays
        rollback.before(True)
        model(input_ids=ids[:, :5], use_cache=True, **{names.cache_name(): cache})
        rollback.keep(5, [0, 1])
        assert rollback.pending == 2
        assert places == [layer.conv_states[0].data_ptr() for layer in cache.layers if hasattr(layer, "conv_states")]
        ids = torch.cat([ids, ids[:, :2], prompt(3, seed=5)], dim=1)
        found = model(input_ids=ids[:, -5:], use_cache=True, **{names.cache_name(): cache}).logits
        expected = model(input_ids=ids[:, -5:], use_cache=True, **{names.cache_name(): clean}).logits
    assert torch.equal(found, expected)
    rollback.keep(3, [0, 1, 2])
    assert rollback.pending == 0

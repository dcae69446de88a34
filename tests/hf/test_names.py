"""Each private or changing name of transformers that the package uses exists on the installed release."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
import torch
from transformers import DynamicCache, EncoderDecoderCache, GenerationConfig, StaticCache, StopStringCriteria
from transformers.generation.stopping_criteria import (
    EosTokenCriteria,
    MaxLengthCriteria,
    MaxTimeCriteria,
    StoppingCriteriaList,
)
from transformers.generation.utils import GenerateDecoderOnlyOutput

from lookahead.hf import names
from lookahead.hf.cache import keep_rows
from tests.models import prompt, tiny

ROLLS_BACK_WINDOWS = hasattr(DynamicCache, "activate_past_recording")


def filled(model: Any, length: int = 40) -> Any:
    """Return the model's own kind of cache, holding a prompt."""
    cache = DynamicCache(config=model.config)
    with torch.no_grad():
        model(input_ids=prompt(length), use_cache=True, **{names.cache_name(): cache})
    return cache


@pytest.mark.parametrize(
    "name",
    [
        "_prefill",
        "_update_model_kwargs_for_generation",
        "_optimize_model_for_decode",
        "_get_candidate_generator",
        "prepare_inputs_for_generation",
    ],
)
def test_the_model_has_the_private_method(name: str) -> None:
    assert callable(getattr(tiny(), name))


def test_the_name_of_the_cache_is_the_one_that_the_model_takes_and_returns() -> None:
    model = tiny()
    name = names.cache_name()
    with torch.no_grad():
        outputs = model(input_ids=prompt(5), use_cache=True, **{name: DynamicCache()})
    assert getattr(outputs, name).get_seq_length() == 5
    assert name in GenerateDecoderOnlyOutput.__dataclass_fields__


def test_prefill_prepare_and_update_work_together() -> None:
    model, ids = tiny(), prompt(12)
    name = names.cache_name()
    kwargs: dict[str, Any] = {
        name: DynamicCache(config=model.config),
        "position_ids": torch.arange(12)[None],
        "attention_mask": torch.ones(1, 12, dtype=torch.long),
        "use_cache": True,
    }
    config = GenerationConfig(is_assistant=False)
    with torch.no_grad():
        outputs = names.prefill(model, ids, config, kwargs)
        grown = names.update_kwargs(model, outputs, kwargs, 3)
        assert kwargs["attention_mask"].shape == (1, 12), "the given keywords stay as they are"
        assert grown["attention_mask"].shape == (1, 15)
        assert grown["position_ids"][0, -3:].tolist() == [12, 13, 14]
        longer = torch.cat([ids, ids[:, :3]], dim=1)
        inputs = names.prepare_inputs(model, longer, 3, grown)
        assert inputs["input_ids"].tolist() == ids[:, :3].tolist()
        found = model(**inputs).logits[0]
        expected = model(input_ids=longer).logits[0, -3:]
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-6)


def test_decoding_is_a_context() -> None:
    with names.decoding(tiny()) as context:
        del context
    assert isinstance(names.decoding(tiny()), contextlib.AbstractContextManager)


def test_plain_layers_and_windows() -> None:
    assert all(names.is_plain_layer(layer) for layer in filled(tiny()).layers)
    assert names.windows(filled(tiny())) == [None, None]
    mixed = filled(tiny("gemma3"))
    assert [names.is_plain_layer(layer) for layer in mixed.layers] == [False, True]
    assert names.windows(mixed) == [24, None]
    assert names.windows(StaticCache(config=tiny().config, max_cache_len=64)) is None


def test_the_decoders_own_cache() -> None:
    decoder, cross = DynamicCache(), DynamicCache()
    assert names.decoder_cache(EncoderDecoderCache(decoder, cross)) is decoder
    assert names.decoder_cache(decoder) is decoder


def test_recording_is_switched_on_and_off() -> None:
    cache = filled(tiny("mistral"))
    names.activate_past_recording(cache)
    assert not ROLLS_BACK_WINDOWS or all(layer.record_past for layer in cache.layers)
    names.deactivate_past_recording(cache)
    assert not any(getattr(layer, "record_past", False) for layer in cache.layers)


def test_a_window_crops_back_to_what_it_was() -> None:
    if not ROLLS_BACK_WINDOWS:
        return
    model = tiny("mistral")
    cache, twin = filled(model), filled(model)
    names.activate_past_recording(cache)
    with torch.no_grad():
        model(input_ids=prompt(5, seed=3), use_cache=True, **{names.cache_name(): cache})
    keep_rows(cache, 5, [[]])
    for layer, other in zip(cache.layers, twin.layers, strict=True):
        assert torch.equal(layer.keys[..., -23:, :], other.keys[..., -23:, :])


END = EosTokenCriteria(eos_token_id=[7, 9])
LENGTH = MaxLengthCriteria(max_length=30)


def test_plain_stops_are_end_tokens_and_a_length() -> None:
    config = GenerationConfig(max_length=50)
    assert names.plain_stops(StoppingCriteriaList([END, LENGTH]), config) == ({7, 9}, 30)
    assert names.plain_stops(StoppingCriteriaList([LENGTH, MaxLengthCriteria(80)]), config) == (frozenset(), 30)
    assert names.plain_stops(StoppingCriteriaList([EosTokenCriteria(3), END]), config) == ({3, 7, 9}, 50)
    assert names.plain_stops(StoppingCriteriaList(), config) == (frozenset(), 50)


def test_anything_else_is_no_plain_stop() -> None:
    class Own(MaxLengthCriteria):
        pass

    class OwnList(StoppingCriteriaList):
        pass

    config = GenerationConfig(max_length=50)
    assert names.plain_stops(StoppingCriteriaList([LENGTH, MaxTimeCriteria(5.0)]), config) is None
    assert names.plain_stops(StoppingCriteriaList([Own(30)]), config) is None
    assert names.plain_stops(OwnList([LENGTH]), config) is None
    assert names.plain_stops([LENGTH], config) is None
    assert names.plain_stops(lambda ids, scores: False, config) is None
    assert StopStringCriteria not in (type(END), type(LENGTH))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_the_mask_is_boolean_for_sdpa_and_of_the_models_type_for_eager_attention(dtype: torch.dtype) -> None:
    assert names.mask_dtype(tiny(dtype=dtype)) == torch.bool
    assert names.mask_dtype(tiny(dtype=dtype, attention="eager")) == dtype


def test_one_process_has_no_peers() -> None:
    assert not names.has_unsynced_peers(tiny())


def test_plain_modes_are_the_ones_that_generate_knows() -> None:
    assert GenerationConfig().get_generation_mode() in names.PLAIN_MODES
    assert GenerationConfig(do_sample=True).get_generation_mode() in names.PLAIN_MODES
    assert GenerationConfig(num_beams=2).get_generation_mode() not in names.PLAIN_MODES
    assert GenerationConfig(prompt_lookup_num_tokens=2).get_generation_mode() not in names.PLAIN_MODES

"""What is not supported is refused with a ValueError before the model has run at all."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from transformers import DynamicCache, GenerationConfig, LogitsProcessor
from transformers.cache_utils import CacheLayerMixin, DynamicLayer
from transformers.generation.streamers import BaseStreamer

from lookahead import Lookahead
from lookahead.hf import names
from lookahead.hf.refusals import Unsupported, refuse_unsupported
from tests.models import prompt, tiny

IDS = prompt(20)


@contextmanager
def no_forward(model: Any) -> Iterator[None]:
    """Fail when the model runs inside."""
    count = 0

    def forwarded(*_: Any) -> None:
        nonlocal count
        count += 1

    hook = model.register_forward_pre_hook(forwarded)
    try:
        yield
    finally:
        hook.remove()
    assert count == 0, f"{count} forwards before the refusal"


def refused(model: Any, message: str, ids: torch.Tensor = IDS, **kwargs: Any) -> None:
    lookahead = Lookahead()
    before = lookahead.stats
    with no_forward(model), pytest.raises(ValueError, match=message):
        model.generate(ids, max_new_tokens=5, custom_generate=lookahead, **kwargs)
    assert lookahead.stats is before


def test_the_hook_counts() -> None:
    with pytest.raises(AssertionError, match="5 forwards before"), no_forward(tiny()):
        tiny().generate(IDS, max_new_tokens=5)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"output_scores": True, "return_dict_in_generate": True},
            "output_scores=True is not supported .* for a batch",
        ),
        ({"guidance_scale": 1.5}, "UnbatchedClassifierFreeGuidanceLogitsProcessor may keep a state for each row"),
        ({"logits_processor": [LogitsProcessor()]}, "LogitsProcessor may keep a state .* set row_wise = True on it"),
        ({"max_time": 10.0}, "need an eos_token_id in a batch"),
    ],
)
def test_a_batch_where_rows_would_differ_from_vanilla(settings: dict[str, Any], message: str) -> None:
    refused(tiny(), message, IDS.repeat(3, 1), **settings)


def test_a_streamer_for_a_batch() -> None:
    class Silent(BaseStreamer):
        def put(self, value: torch.Tensor) -> None: ...

        def end(self) -> None: ...

    with no_forward(tiny()), pytest.raises(ValueError, match="a streamer is not supported by Lookahead for a batch"):
        Lookahead().generate(tiny(), IDS.repeat(2, 1), max_new_tokens=5, streamer=Silent())


@pytest.mark.parametrize(
    ("settings", "mode"),
    [
        ({"num_beams": 2}, "beam_search"),
        ({"num_beams": 2, "do_sample": True}, "beam_sample"),
        ({"prompt_lookup_num_tokens": 3}, "assisted_generation"),
    ],
)
def test_other_modes_of_decoding(settings: dict[str, Any], mode: str) -> None:
    message = f"replaces greedy search and sampling, but the generation config asks for {mode}; unset what selects it "
    refused(tiny(), message, **settings)


def test_a_refusal_can_be_told_from_other_errors_and_survives_pickling() -> None:
    with pytest.raises(Unsupported) as refusal:
        tiny().generate(IDS, max_new_tokens=5, use_cache=False, custom_generate=Lookahead())
    assert refusal.value.reason == "Lookahead needs a cache, but got none (use_cache=False)"
    assert str(refusal.value) == f"{refusal.value.reason}; set use_cache=True"
    assert str(pickle.loads(pickle.dumps(refusal.value))) == str(refusal.value)


def test_no_cache() -> None:
    refused(tiny(), r"needs a cache, but got none \(use_cache=False\); set use_cache=True", use_cache=False)


def direct(config: GenerationConfig, **kwargs: Any) -> None:
    model = tiny()
    cache = {names.cache_name(): DynamicCache(config=model.config)}
    with no_forward(model):
        Lookahead()(model, IDS, [], [], config, **cache, **kwargs)


def test_synced_gpus() -> None:
    with pytest.raises(ValueError, match=r"synced_gpus \(FSDP, DeepSpeed ZeRO 3\) is not supported .*leave out custom"):
        direct(GenerationConfig(max_length=30), synced_gpus=True)


def test_unsynced_peers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "has_unsynced_peers", lambda model: True)
    with pytest.raises(ValueError, match="processes would take different numbers of forwards"):
        direct(GenerationConfig(max_length=30))


def test_token_healing() -> None:
    config = GenerationConfig(max_length=30)
    config.token_healing = True
    with pytest.raises(ValueError, match="token_healing is not supported by Lookahead; call model.heal_tokens"):
        direct(config)


def test_a_cache_that_is_none_of_transformers() -> None:
    with pytest.raises(ValueError, match=r"cannot roll back a dict \(no layers\)"):
        refuse_unsupported(tiny(), GenerationConfig(), False, {})


def test_layers_of_an_unknown_kind() -> None:
    class Own(CacheLayerMixin):
        def __init__(self) -> None: ...

        lazy_initialization = update = get_mask_sizes = get_seq_length = get_max_length = get_max_cache_shape = None

    cache = DynamicCache()
    cache.layers = [DynamicLayer(), Own()]
    with pytest.raises(ValueError, match=r"cannot roll back a DynamicCache \(DynamicLayer, Own\); allowed are the"):
        refuse_unsupported(tiny(), GenerationConfig(), False, cache)


def test_what_is_supported_is_not_refused() -> None:
    for config in (GenerationConfig(), GenerationConfig(do_sample=True)):
        refuse_unsupported(tiny(), config, None, DynamicCache())


def test_the_class_where_an_object_belongs() -> None:
    with no_forward(tiny()), pytest.raises(TypeError, match=r"tokenizer is a model, Llama.*Lookahead\(tokenizer\)"):
        tiny().generate(IDS, max_new_tokens=4, custom_generate=Lookahead)

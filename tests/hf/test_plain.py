"""Where rows of a batch cannot follow their own drafts, they are decoded as by `generate`, and the stats say why."""

from __future__ import annotations

import copy
import functools
from typing import Any

import pytest
import torch
import transformers
from transformers import DynamicCache, LogitsProcessor

import lookahead
from lookahead import Lookahead
from lookahead.hf import names
from tests.models import KINDS, VOCABULARY, prompt, tiny

OPTIONS: dict[str, Any] = {"cost": "linear:0.001"}
BATCH = torch.cat([prompt(seed=seed) for seed in range(3)])
PADDED = torch.ones_like(BATCH)
PADDED[1, :7] = PADDED[2, :3] = 0
SAMPLING: dict[str, Any] = {"do_sample": True, "temperature": 0.5}
NEEDS_STATES = pytest.mark.skipif("mistral" not in KINDS, reason="an old release: refused")


@functools.cache
def made(kind: str) -> Any:
    """Return a tiny model of a kind whose batches are decoded plainly."""
    torch.manual_seed(0)
    sizes = {"vocab_size": VOCABULARY, "pad_token_id": 0, "eos_token_id": 2}
    if kind == "t5":
        own: dict[str, Any] = {"d_model": 16, "d_kv": 8, "d_ff": 16, "num_layers": 1, "num_heads": 2}
        config: Any = transformers.T5Config(**sizes, **own, decoder_start_token_id=0)
        model: Any = transformers.T5ForConditionalGeneration(config)
    else:
        own = {"hidden_size": 32, "num_hidden_layers": 2, "num_heads": 8, "head_dim": 8, "n_groups": 1, "state_size": 8}
        model = transformers.Mamba2ForCausalLM(transformers.Mamba2Config(**sizes, **own, expand=2))
    model.generation_config.eos_token_id = None
    return model.eval()


def generated(model: Any, custom: Any = None, **settings: Any) -> Any:
    torch.manual_seed(0)
    return model.generate(BATCH, max_new_tokens=20, custom_generate=custom, **settings)


@pytest.mark.parametrize("settings", [{}, SAMPLING, {"attention_mask": PADDED}], ids=["greedy", "sampling", "padded"])
@pytest.mark.parametrize(
    ("kind", "why"),
    [("t5", "it is an encoder-decoder model"), pytest.param("mamba2", "a LinearAttention", marks=NEEDS_STATES)],
)
def test_a_model(kind: str, why: str, settings: dict[str, Any]) -> None:
    ahead = Lookahead(**OPTIONS)
    vanilla = generated(made(kind), **settings)
    assert torch.equal(vanilla, generated(made(kind), ahead, **settings))
    assert f"is decoded without drafts in a batch: {why}" in str(ahead.stats.note)
    assert ahead.stats.forwards == 20 and ahead.stats.tokens == 60 and not ahead.stats.drafted


@NEEDS_STATES
@pytest.mark.parametrize("settings", [{}, SAMPLING], ids=["greedy", "sampling"])
def test_a_static_cache(settings: dict[str, Any]) -> None:
    model, ahead = copy.deepcopy(tiny(dtype=torch.float32)), Lookahead(**OPTIONS)
    vanilla = generated(model, cache_implementation="static", **settings)
    assert torch.equal(vanilla, generated(model, ahead, cache_implementation="static", **settings))
    assert "only a dynamic cache on the device can follow its rows, no StaticCache" in str(ahead.stats.note)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind in ("mistral", "gemma3")])
def test_sliding_windows_in_the_callers_cache(kind: str) -> None:
    model, ahead, found = tiny(kind), Lookahead(**OPTIONS), []
    for custom in (None, ahead):
        cache = DynamicCache(config=model.config)
        found.append((generated(model, custom, **{names.cache_name(): cache}), cache.get_seq_length()))
    assert torch.equal(found[0][0], found[1][0]) and found[0][1] == found[1][1]
    assert "sliding windows in a cache of your own cannot follow its rows" in str(ahead.stats.note)


def test_what_a_batch_with_drafts_refuses_is_no_matter_then() -> None:
    class Own(LogitsProcessor):
        def __init__(self) -> None:
            self.calls = 0

        def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
            self.calls += 1
            return scores.roll(self.calls, dims=-1)

    wanted: dict[str, Any] = {"return_dict_in_generate": True, "output_scores": True}
    vanilla = generated(made("t5"), logits_processor=[Own()], **wanted)
    ours = generated(made("t5"), Lookahead(**OPTIONS), logits_processor=[Own()], **wanted)
    assert torch.equal(vanilla.sequences, ours.sequences)
    assert all(torch.equal(one, other) for one, other in zip(vanilla.scores, ours.scores, strict=True))


def test_an_enabled_model_warns() -> None:
    model = copy.deepcopy(made("t5"))
    vanilla = generated(model)
    with (
        lookahead.enabled(model),
        pytest.warns(UserWarning, match="is decoded without drafts in a batch: it is an enc"),
    ):
        assert torch.equal(vanilla, generated(model))

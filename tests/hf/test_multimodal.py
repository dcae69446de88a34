"""Models that also take images: text alone is decoded as ever, and a prompt with an image is refused."""

from __future__ import annotations

import functools
from typing import Any

import pytest
import torch
import transformers

from lookahead import Lookahead
from tests.models import SMALL, prompt

_TEXT = {**SMALL, "head_dim": 8}
_VISION = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
_IMAGE = 60
_KINDS: dict[str, dict[str, Any]] = {
    "Gemma3": {
        "text_config": {**_TEXT, "sliding_window": 24, "layer_types": ["sliding_attention", "full_attention"]},
        "vision_config": {**_VISION, "image_size": 28, "patch_size": 14},
        "image_token_index": _IMAGE,
        "mm_tokens_per_image": 4,
    },
    "Qwen2VL": {
        "text_config": {**_TEXT, "rope_scaling": {"type": "mrope", "mrope_section": [1, 1, 2]}},
        "vision_config": {"embed_dim": 16, "hidden_size": 32, "depth": 1, "num_heads": 2, "patch_size": 14},
        "image_token_id": _IMAGE,
        "video_token_id": 59,
        "vision_start_token_id": 58,
    },
    "Llava": {
        "text_config": {**_TEXT, "model_type": "llama"},
        "vision_config": {**_VISION, "model_type": "clip_vision_model", "image_size": 28, "patch_size": 14},
        "image_token_index": _IMAGE,
    },
}


@functools.cache
def tiny(kind: str) -> Any:
    config = getattr(transformers, f"{kind}Config")(**_KINDS[kind])
    torch.manual_seed(0)
    model = getattr(transformers, f"{kind}ForConditionalGeneration")(config).to(torch.float64).eval()
    model.generation_config.eos_token_id = None
    model.generation_config.pad_token_id = 0
    return model


@pytest.mark.skipif(not hasattr(transformers.DynamicCache, "activate_past_recording"), reason="refused on old releases")
@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("kind", _KINDS)
def test_text_is_decoded_as_by_vanilla(kind: str, rows: int) -> None:
    lookahead, ids = Lookahead(cost="linear:0.001"), torch.cat([prompt(seed=seed) for seed in range(rows)]) % 50
    vanilla = tiny(kind).generate(ids, max_new_tokens=60)
    ours = tiny(kind).generate(ids, max_new_tokens=60, custom_generate=lookahead)
    assert torch.equal(vanilla, ours)
    assert lookahead.stats.accepted > 0


@pytest.mark.parametrize("kind", _KINDS)
def test_a_prompt_with_an_image_is_refused(kind: str) -> None:
    ids = prompt() % 50
    ids[0, 5] = _IMAGE
    with pytest.raises(ValueError, match="the prompt holds an image, a video or a sound"):
        tiny(kind).generate(ids, max_new_tokens=5, custom_generate=Lookahead())

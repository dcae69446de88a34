"""Models that also take images: with and without one in the prompt, they decode as vanilla does."""

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
    for name, weights in model.named_parameters():
        if "projector" in name and weights.ndim == 2:
            torch.nn.init.normal_(weights)  # Gemma's is zero, and images would make no difference
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


def with_image(kind: str, rows: int) -> tuple[torch.Tensor, dict[str, Any]]:
    """Return prompts in which an image of four placeholders stands twice, and what the model is given for it."""
    ids = torch.cat([prompt(seed=seed) for seed in range(rows)]) % 50
    ids[:, 5:9] = _IMAGE
    generator = torch.Generator().manual_seed(1)
    if kind == "Qwen2VL":
        ids[:, 4] = 58
        pixels = torch.randn(16 * rows, 3 * 2 * 14 * 14, generator=generator, dtype=torch.float64)
        types = (ids == _IMAGE).int()
        grid = torch.tensor([[1, 4, 4]] * rows)
        return ids, {"pixel_values": pixels, "image_grid_thw": grid, "mm_token_type_ids": types}
    pixels = torch.randn(rows, 3, 28, 28, generator=generator, dtype=torch.float64)
    return ids, {"pixel_values": pixels} | ({"token_type_ids": (ids == _IMAGE).int()} if kind == "Gemma3" else {})


@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("kind", _KINDS)
def test_a_prompt_with_an_image(kind: str, rows: int) -> None:
    ids, image = with_image(kind, rows)
    lookahead = Lookahead(cost="linear:0.001")
    vanilla = tiny(kind).generate(ids, max_new_tokens=60, **image)
    expected = vanilla[0, -60:].clone()
    expected[9::10] = 7
    settings = {"max_new_tokens": 1, "output_logits": True, "return_dict_in_generate": True}
    seen = [
        tiny(kind).generate(ids, **{**image, "pixel_values": sign * image["pixel_values"]}, **settings).logits[0]
        for sign in (1, -1)
    ]
    assert not torch.allclose(*seen), "the image makes no difference"
    ours = tiny(kind).generate(ids, max_new_tokens=60, custom_generate=lookahead, prediction=expected.tolist(), **image)
    assert torch.equal(vanilla, ours)
    assert lookahead.stats.accepted > 20

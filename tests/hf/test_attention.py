"""Attention functions that users register: what they can verify is found by trying, and the output is vanilla's."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from lookahead import Lookahead
from tests.models import prompt, tiny

BATCH = torch.cat([prompt(seed=seed) for seed in range(3)])
PADDED = torch.ones_like(BATCH)
PADDED[1, :7] = 0


def without_mask(*_: Any, **__: Any) -> None:
    return None


def attend(module: Any, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, seen: Any, scale: Any) -> Any:
    groups = query.shape[1] // key.shape[1]
    key, value = key.repeat_interleave(groups, dim=1), value.repeat_interleave(groups, dim=1)
    output = scaled_dot_product_attention(query, key, value, seen, scale=scale)
    return output.transpose(1, 2).contiguous(), None


def behind(
    module: Any, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: Any, scaling: Any = None, **_: Any
) -> Any:
    """Every token sees what stands before it, whatever the mask says: right for chains of one prompt."""
    seen = torch.ones(query.shape[2], key.shape[2], dtype=torch.bool).tril(key.shape[2] - query.shape[2])
    return attend(module, query, key, value, seen, scaling)


def alone(
    module: Any, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: Any, scaling: Any = None, **_: Any
) -> Any:
    """A single token sees everything, of several each sees too little: right for plain decoding only."""
    seen = torch.ones(query.shape[2], key.shape[2], dtype=torch.bool).tril() if query.shape[2] > 1 else None
    return attend(module, query, key, value, seen, scaling)


AttentionInterface.register("own_with_mask", sdpa_attention_forward)
AttentionMaskInterface.register("own_with_mask", sdpa_mask)
AttentionInterface.register("own_behind", behind)
AttentionMaskInterface.register("own_behind", without_mask)
AttentionInterface.register("own_alone", alone)
AttentionMaskInterface.register("own_alone", without_mask)

IMPLEMENTATIONS = {"eager": "trees", "own_with_mask": "trees", "own_behind": "chains", "own_alone": "nothing"}


def model_with(attention: str) -> Any:
    model = copy.deepcopy(tiny(dtype=torch.float32))
    model.set_attn_implementation(attention)
    return model


@pytest.mark.parametrize("settings", [{}, {"do_sample": True, "temperature": 0.3}], ids=["greedy", "sampling"])
@pytest.mark.parametrize("attention", IMPLEMENTATIONS)
def test_one_prompt(attention: str, settings: dict[str, Any]) -> None:
    model, ahead, found = model_with(attention), Lookahead(cost="linear:0.001"), []
    for custom in (None, ahead):
        torch.manual_seed(0)
        found.append(model.generate(prompt(), max_new_tokens=40, custom_generate=custom, **settings))
    assert torch.equal(*found)
    assert (ahead.stats.accepted > 0) == (IMPLEMENTATIONS[attention] != "nothing")
    assert (ahead.stats.note is None) == (IMPLEMENTATIONS[attention] != "nothing")


@pytest.mark.parametrize("mask", [None, PADDED], ids=["full", "padded"])
@pytest.mark.parametrize("attention", IMPLEMENTATIONS)
def test_a_batch(attention: str, mask: torch.Tensor | None) -> None:
    model, ahead = model_with(attention), Lookahead(cost="linear:0.001")
    vanilla = model.generate(BATCH, attention_mask=mask, max_new_tokens=40)
    assert torch.equal(vanilla, model.generate(BATCH, attention_mask=mask, max_new_tokens=40, custom_generate=ahead))
    assert (ahead.stats.accepted > 0) == (IMPLEMENTATIONS[attention] == "trees")

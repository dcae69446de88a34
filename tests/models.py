"""Tiny models with random weights, made from their configs: fast, and loops come early, so drafts get accepted."""

from __future__ import annotations

import functools
from typing import Any

import torch
import transformers
from transformers import DynamicCache

VOCABULARY = 61

SMALL = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "initializer_range": 0.3,  # peaked distributions, so that sampling follows drafts too
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
_KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("Llama", {}),
    "qwen2": ("Qwen2", {}),
    "qwen3": ("Qwen3", {"head_dim": 8}),
    "gpt_neox": ("GPTNeoX", {}),
    "olmo2": ("Olmo2", {}),
    "mixtral": ("Mixtral", {"num_local_experts": 4}),
    "mistral": ("Mistral", {"sliding_window": 24}),
    "gemma3": (
        "Gemma3Text",
        {"head_dim": 8, "sliding_window": 24, "layer_types": ["sliding_attention", "full_attention"]},
    ),
    "bloom": ("Bloom", {"n_layer": 2, "n_head": 4}),  # alibi: takes no tree
    "gpt2": ("GPT2", {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 512}),
}

_LEFT_OUT = {  # on old releases
    "mistral": not hasattr(DynamicCache, "activate_past_recording"),  # windows cannot be rolled back, and are refused
    "gemma3": not hasattr(DynamicCache, "activate_past_recording"),
    "olmo2": transformers.Olmo2Config.__annotations__.get("tie_word_embeddings") is int,  # 5.4 refuses its own default
}
KINDS = tuple(kind for kind in _KINDS if not _LEFT_OUT.get(kind))


@functools.cache
def tiny(
    kind: str = "llama",
    dtype: torch.dtype = torch.float64,
    attention: str = "sdpa",
    seed: int = 0,
    vocabulary: int = VOCABULARY,
) -> Any:
    """Return a causal model of some architecture in evaluation mode, on the CPU."""
    family, extra = _KINDS[kind]
    if kind == "mixtral" and dtype == torch.float64:
        dtype = torch.float32  # its grouped product knows no wider type
    if kind == "bloom":
        attention = "eager"
    config = getattr(transformers, f"{family}Config")(**{**SMALL, **extra, "vocab_size": vocabulary})
    config._attn_implementation = attention
    name = f"{family.removesuffix('Text')}{'LMHeadModel' if kind == 'gpt2' else 'ForCausalLM'}"
    torch.manual_seed(seed)
    model = getattr(transformers, name)(config).to(dtype).eval()
    model.generation_config.eos_token_id = None
    model.generation_config.pad_token_id = 0
    return model


def prompt(length: int = 40, period: int = 11, seed: int = 0) -> torch.Tensor:
    """Return ids, int64 [1, length], that repeat themselves with a few changes."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(3, VOCABULARY, (period,), generator=generator).repeat(length // period + 1)[:length]
    changed = torch.randint(0, length, (length // 12,), generator=generator)
    ids[changed] = torch.randint(3, VOCABULARY, (len(changed),), generator=generator)
    return ids[None]

"""Tiny models with random weights of every architecture that the installed transformers can generate text with."""

from __future__ import annotations

import inspect
from typing import Any

import torch
import transformers
from transformers.models.auto import modeling_auto

__all__ = ["VOCABULARY", "architectures", "tiny"]

VOCABULARY = 61
_MOST = 5_000_000  # parameters; what is larger did not take the small sizes
_SMALL: dict[str, Any] = {
    "attention_hidden_size": 32,
    "attention_window_size": 24,
    "bos_token_id": 1,
    "context_length": 512,
    "d_ff": 48,
    "d_kv": 8,
    "d_model": 32,
    "decoder_attention_heads": 4,
    "decoder_ffn_dim": 48,
    "decoder_layers": 2,
    "decoder_start_token_id": 1,
    "embed_dim": 32,
    "encoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "encoder_layers": 2,
    "eos_token_id": 2,
    "ffn_dim": 48,
    "ffn_hidden_size": 48,
    "first_k_dense_replace": 1,
    "forced_eos_token_id": None,
    "head_dim": 8,
    "hidden_size": 32,
    "hidden_size_per_layer_input": 8,
    "init_std": 0.3,
    "initializer_range": 0.3,
    "intermediate_size": 48,
    "is_decoder": True,
    "kv_lora_rank": 8,
    "linear_key_head_dim": 8,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_value_head_dim": 8,
    "lru_width": 32,
    "max_position_embeddings": 512,
    "moe_intermediate_size": 16,
    "n_embd": 32,
    "n_group": 1,
    "n_head": 4,
    "n_heads": 4,
    "n_layer": 2,
    "n_layers": 2,
    "n_positions": 512,
    "n_routed_experts": 4,
    "num_attention_heads": 4,
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "num_heads": 4,
    "num_hidden_layers": 2,
    "num_key_value_groups": 2,
    "num_key_value_heads": 2,
    "num_layers": 2,
    "num_local_experts": 4,
    "pad_token_id": 0,
    "q_lora_rank": 8,
    "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 4,
    "rotary_dim": 4,
    "shared_expert_intermediate_size": 16,
    "sliding_window": 24,
    "state_size": 8,
    "topk_group": 1,
    "v_head_dim": 8,
    "vocab_size": VOCABULARY,
    "vocab_size_per_layer_input": VOCABULARY,
    "word_embed_proj_dim": 32,
}
_MLA = {"num_key_value_heads": 4, "head_dim": 4}
_LINEAR = {"layer_types": ["linear_attention", "full_attention"]}
_MAMBA_2 = {"mamba_n_heads": 8, "mamba_d_head": 8, "mamba_d_state": 8, "mamba_n_groups": 1}
_OWN: dict[str, dict[str, Any]] = {  # what small sizes alone do not make consistent
    "axk1": _MLA,
    "axk2": _MLA,
    "bamba": {**_MAMBA_2, "attn_layer_indices": [1]},
    "deepseek_v2": _MLA,
    "deepseek_v3": _MLA,
    "deepseek_v32": _MLA,
    "falcon_h1": {**_MAMBA_2, "mamba_d_ssm": 64, "mamba_chunk_size": 16},
    "glm4_moe_lite": _MLA,
    "glm_moe_dsa": _MLA,
    "gpt_neo": {"attention_types": [[["global", "local"], 1]], "window_size": 24},
    "granitemoehybrid": {**_MAMBA_2, "layer_types": ["mamba", "attention"]},
    "jamba": {"attn_layer_period": 2, "attn_layer_offset": 1, "mamba_d_state": 8},
    "lfm2": {"layer_types": ["conv", "full_attention"]},
    "lfm2_moe": {"layer_types": ["conv", "full_attention"]},
    "mamba2": {"num_heads": 8, "head_dim": 8, "n_groups": 1},
    "minicpm3": _MLA,
    "qwen3_5": _LINEAR,
    "qwen3_5_moe": _LINEAR,
    "qwen3_5_moe_text": _LINEAR,
    "qwen3_5_text": _LINEAR,
    "qwen3_next": _LINEAR,
    "recurrent_gemma": {"num_hidden_layers": 3, "block_types": ["recurrent", "recurrent", "attention"]},
    "sarvam_mla": _MLA,
    "switch_transformers": {"num_layers": 2, "num_decoder_layers": 2},
    "t5": {"decoder_start_token_id": 0},
    "youtu": _MLA,
    "zaya": {"num_experts_per_tok": 1},
}


def architectures() -> dict[str, Any]:
    """Return the classes that generate text, by the model type of their configs."""
    causal = modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    translating = modeling_auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES
    named = {**causal, **translating}
    return {kind: getattr(transformers, name, None) for kind, name in named.items() if isinstance(name, str)}


def tiny(kind: str, model_class: Any, dtype: torch.dtype = torch.float32, attention: str | None = None) -> Any:
    """Return a tiny model of some architecture with random weights, in evaluation mode, that never ends by itself.

    Raises
    ------
    ValueError
        For one that stays large, since its sizes go by other names; and whatever its config says against the sizes.
    """
    config_class = model_class.config_class
    known = {name for base in config_class.__mro__ for name in getattr(base, "__annotations__", {})}
    known |= set(inspect.signature(config_class.__init__).parameters)
    sizes = {**_SMALL, **_OWN.get(kind, {})}
    config = config_class(
        **{name: value for name, value in sizes.items() if name in known or name in _OWN.get(kind, {})}
    )
    if attention:
        config._attn_implementation = attention
    with torch.device("meta"):
        count = sum(weights.numel() for weights in model_class(config).parameters())
    if count > _MOST:
        raise ValueError(f"{count / 1e6:.0f} million parameters with all known sizes set small; allowed are 5 million")
    torch.manual_seed(0)
    model = model_class(config).to(dtype).eval()
    model.generation_config.update(
        eos_token_id=None, pad_token_id=0, forced_eos_token_id=None, forced_bos_token_id=None
    )
    return model

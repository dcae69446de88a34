"""What is not supported yet is refused before any work is done."""

from __future__ import annotations

from typing import Any

import torch

from . import names

__all__ = ["refuse_unsupported"]


def refuse_unsupported(
    model: Any, input_ids: torch.Tensor, generation_config: Any, synced_gpus: bool | None, cache: Any
) -> None:
    """Raise ValueError, naming what was given, what is allowed and what to do, where the loop would not be exact."""
    _refuse_modes(generation_config)
    _refuse_shapes(input_ids, generation_config)
    _refuse_models(model)
    _refuse_caches(generation_config, cache)
    if synced_gpus or names.has_unsynced_peers(model):
        raise ValueError(
            "synced_gpus (FSDP, DeepSpeed ZeRO 3) is not supported by Lookahead: processes would take different "
            "numbers of forwards; leave out custom_generate there"
        )


def _refuse_modes(generation_config: Any) -> None:
    """Refuse beams and everything but greedy search and sampling."""
    mode = generation_config.get_generation_mode()
    if mode not in names.PLAIN_MODES:
        raise ValueError(
            f"Lookahead replaces greedy search and sampling, but the generation config asks for {mode.value}; unset "
            "what selects it (num_beams, prompt_lookup_num_tokens, penalty_alpha, ...) or leave out custom_generate"
        )
    if getattr(generation_config, "token_healing", False):
        raise ValueError("token_healing is not supported by Lookahead; call model.heal_tokens on the prompt before")


def _refuse_shapes(input_ids: torch.Tensor, generation_config: Any) -> None:
    """Refuse more than one sequence."""
    returned = generation_config.num_return_sequences or 1  # None in a config that `generate` has not completed
    if returned > 1:
        raise ValueError(
            f"num_return_sequences={returned} is not supported by Lookahead, allowed is 1; call generate repeatedly"
        )
    if input_ids.shape[0] != 1:
        raise ValueError(
            f"a batch of {input_ids.shape[0]} is not supported by Lookahead, allowed is 1; loop over the rows"
        )


def _refuse_models(model: Any) -> None:
    """Refuse models whose state cannot be taken back."""
    name = type(model).__name__
    if model.config.is_encoder_decoder:
        raise ValueError(f"{name} is an encoder-decoder model; Lookahead supports decoder-only models")
    if getattr(model, "_is_stateful", False):
        raise ValueError(
            f"{name} keeps a recurrent state, which Lookahead cannot roll back; use a model with attention layers "
            "only, or leave out custom_generate"
        )


def _refuse_caches(generation_config: Any, cache: Any) -> None:
    """Refuse to run without a cache, or with one that rejected tokens cannot be taken off."""
    if cache is None:
        given = f"use_cache={generation_config.use_cache}"
        raise ValueError(f"Lookahead needs a cache, but got none ({given}); set use_cache=True")
    if not names.is_croppable(cache):
        kinds = ", ".join(sorted({type(layer).__name__ for layer in cache.layers})) if hasattr(cache, "layers") else ""
        raise ValueError(
            f"Lookahead cannot roll back a {type(cache).__name__} ({kinds or 'no layers'}); allowed is a DynamicCache "
            "on the model's device: leave cache_implementation unset"
        )

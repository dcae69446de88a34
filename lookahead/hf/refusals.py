"""What is not supported yet is refused before any work is done."""

from __future__ import annotations

from typing import Any

import torch

from . import names
from .cache import is_cut_anywhere, rolls_back
from .plain import why_plain, why_plain_at_sight

__all__ = ["Unsupported", "refuse", "refuse_exact", "refuse_in_batches", "refuse_unsupported"]

_INSTEAD = "loop over the rows, or leave out custom_generate"


class Unsupported(ValueError):
    """A call that the loop would not decode exactly; raised before any work, and for nothing else.

    Parameters
    ----------
    reason : str
        What was given.
    instead : str
        What is allowed, and what to do.
    """

    def __init__(self, reason: str, instead: str) -> None:
        super().__init__(reason, instead)
        self.reason = reason

    def __str__(self) -> str:
        """Return both in one line."""
        return "; ".join(self.args)


def refuse(
    model: Any,
    input_ids: torch.Tensor,
    logits_processor: Any,
    stopping_criteria: Any,
    generation_config: Any,
    synced_gpus: bool | None = False,
    streamer: Any = None,
    **model_kwargs: Any,
) -> str | None:
    """Raise Unsupported for a call that the loop would not decode exactly; the arguments are those of the loop.

    Returns why it has to be decoded plainly, if so.
    """
    cache, rows = model_kwargs.get(names.cache_name()), len(input_ids)
    refuse_unsupported(model, generation_config, synced_gpus, cache)
    reason = why_plain_at_sight(model, cache, rows)
    if rows > 1 and reason is None:
        refuse_in_batches(generation_config, logits_processor, stopping_criteria, streamer)
    return reason or why_plain(model, cache, generation_config, rows)


def refuse_unsupported(model: Any, generation_config: Any, synced_gpus: bool | None, cache: Any) -> None:
    """Raise Unsupported, naming what was given, what is allowed and what to do, where the loop would not be exact."""
    _refuse_modes(generation_config)
    _refuse_caches(generation_config, cache)
    if synced_gpus or names.has_unsynced_peers(model):
        raise Unsupported(
            "synced_gpus (FSDP, DeepSpeed ZeRO 3) is not supported by Lookahead: processes would take different "
            "numbers of forwards",
            "leave out custom_generate there",
        )


def _refuse_modes(generation_config: Any) -> None:
    """Refuse beams and everything but greedy search and sampling."""
    mode = generation_config.get_generation_mode()
    if mode not in names.PLAIN_MODES:
        raise Unsupported(
            f"Lookahead replaces greedy search and sampling, but the generation config asks for {mode.value}",
            "unset what selects it (num_beams, prompt_lookup_num_tokens, penalty_alpha, ...) or leave out "
            "custom_generate",
        )
    if getattr(generation_config, "token_healing", False):
        raise Unsupported("token_healing is not supported by Lookahead", "call model.heal_tokens on the prompt before")


def _refuse_caches(generation_config: Any, cache: Any) -> None:
    """Refuse to run without a cache, or with one that rejected tokens cannot be taken off."""
    if cache is None and generation_config.use_cache:
        return  # the model keeps its state by itself
    if cache is None:
        raise Unsupported("Lookahead needs a cache, but got none (use_cache=False)", "set use_cache=True")
    if not rolls_back(cache):
        kinds = ", ".join(sorted({type(layer).__name__ for layer in cache.layers})) if hasattr(cache, "layers") else ""
        raise Unsupported(
            f"Lookahead cannot roll back a {type(cache).__name__} ({kinds or 'no layers'})",
            "allowed are the dynamic, static, offloaded and quantized caches of transformers: leave "
            "cache_implementation unset",
        )


def refuse_in_batches(generation_config: Any, processors: Any, criteria: Any, streamer: Any) -> None:
    """Raise Unsupported for what is exact for one row only; rows of a batch go on by different numbers of tokens."""
    wanted = ("output_scores", "output_logits", "output_attentions", "output_hidden_states")
    asked = [name for name in wanted if getattr(generation_config, name)]
    if generation_config.return_dict_in_generate and asked:
        raise Unsupported(f"{asked[0]}=True is not supported by Lookahead for a batch", _INSTEAD)
    if streamer is not None:
        raise Unsupported("a streamer is not supported by Lookahead for a batch", _INSTEAD)
    for one in [*processors, *criteria]:
        if not names.is_row_wise(one) and not names.sees_a_batch(one):
            raise Unsupported(
                f"{type(one).__name__} may keep a state for each row, which Lookahead cannot give it in a batch, where "
                "rows go on by different numbers of tokens",
                "if what it returns for a row follows from that row's ids and scores alone, set row_wise = True on it; "
                f"else {_INSTEAD}",
            )
    if names.plain_stops(criteria, generation_config) is None and not names.has_end(criteria):
        raise Unsupported(
            "other stopping criteria than a length limit need an eos_token_id in a batch: without one plain decoding "
            "goes on in rows that have ended",
            f"set eos_token_id, or {_INSTEAD}",
        )


def refuse_exact(rows: int, processors: Any, generation_config: Any, cache: Any) -> None:
    """Raise Unsupported for calls whose near-ties cannot be told and decided as plain decoding does."""
    given = f"{rows} rows" if rows > 1 else "sampling" if generation_config.do_sample else None
    if given is not None:
        raise Unsupported(
            f"exact=True does not go with {given}",
            "allowed is greedy search, one prompt at a time: leave out exact, or custom_generate",
        )
    for one in processors:
        if not names.is_row_wise(one) and not names.sees_a_batch(one):
            raise Unsupported(
                f"exact=True does not go with {type(one).__name__}, which may keep a state and would see near-ties "
                "twice",
                "if its scores follow from ids and logits alone, set row_wise = True on it; else leave out exact, or "
                "custom_generate",
            )
    if not is_cut_anywhere(cache):
        raise Unsupported(
            "exact=True needs a cache that can be cut anywhere, which sliding windows, quantized caches and recurrent "
            "layers are not",
            "leave out exact, or custom_generate",
        )

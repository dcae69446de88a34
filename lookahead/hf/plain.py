"""Models of which no draft can be taken back are decoded plainly, by the method that `generate` itself uses."""

from __future__ import annotations

import time
from typing import Any

import torch
from transformers import StaticCache

from ..stats import MODEL, Stats
from ..trace.recorder import Recorder
from . import names
from .branching import hides_free_slots, takes_chains, takes_trees

__all__ = ["decode_plainly", "why_plain"]


def why_plain(model: Any, cache: Any, generation_config: Any) -> str | None:
    """Return why drafts cannot be verified or taken back, None where they can.

    Parameters
    ----------
    model : PreTrainedModel
    cache : Cache or None
        As `generate` prepared it; None where the model keeps its state elsewhere.
    generation_config : GenerationConfig
    """
    name = type(model).__name__
    if names.has_own_loop(model):
        return f"{name} brings a decoding loop of its own"
    if model.training:
        return f"{name} is in training mode, in which dropout changes every forward; call model.eval() before"
    if cache is None or not names.takes_cache(model):
        return f"{name} keeps its state outside of a cache"
    if isinstance(names.decoder_cache(cache), StaticCache) and not hides_free_slots(model):
        return f"{name} looks at slots of a static cache that are still free"
    attentions = bool(generation_config.return_dict_in_generate and generation_config.output_attentions)
    if not attentions and takes_trees(model, cache) is not None:
        return None  # if branches are right, so are chains
    if not takes_chains(model, attentions):
        return f"{name} gives other logits where several tokens are fed at once"
    return None


def decode_plainly(
    model: Any, stats: Stats, input_ids: torch.Tensor, *call: Any, recorder: Recorder | None = None, **kwargs: Any
) -> Any:
    """Decode as without lookahead and count what is emitted; takes and returns what the loop of `generate` does."""
    started = time.perf_counter()
    output = names.stock_loop(model)(input_ids, *call, **kwargs)
    ids = output if isinstance(output, torch.Tensor) else output.sequences
    rows, steps = ids.shape[0], ids.shape[1] - input_ids.shape[1]
    stats.forwards, stats.tokens, stats.token_sources = steps, rows * steps, [MODEL] * (rows * steps)
    stats.verify_seconds = stats.total_seconds = time.perf_counter() - started
    if recorder is not None and ids.ndim == 2:
        recorder.plain(input_ids.tolist(), ids[:, input_ids.shape[1] :].tolist(), stats.total_seconds)
    if not isinstance(output, torch.Tensor):
        output.stats = stats
    return output

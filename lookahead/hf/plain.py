"""What no draft can be taken back of is decoded plainly, by the method that `generate` itself uses."""

from __future__ import annotations

import time
from typing import Any

import torch
from transformers import DynamicCache, StaticCache

from ..stats import MODEL, Stats
from ..trace.recorder import Recorder
from . import names
from .branching import hides_free_slots, takes_chains, takes_ragged_batches, takes_trees
from .cache import hides_windows

__all__ = ["decode_plainly", "why_plain", "why_plain_at_sight"]


def why_plain(model: Any, cache: Any, generation_config: Any, rows: int = 1) -> str | None:
    """Return why drafts cannot be verified or taken back, None where they can.

    Parameters
    ----------
    model : PreTrainedModel
    cache : Cache or None
        As `generate` prepared it; None where the model keeps its state elsewhere.
    generation_config : GenerationConfig
    rows : int
        How many texts are decoded at once.
    """
    reason = why_plain_at_sight(model, cache, rows)
    if reason is not None:
        return reason
    name = type(model).__name__
    if isinstance(names.decoder_cache(cache), StaticCache) and not hides_free_slots(model):
        return f"{name} looks at slots of a static cache that are still free"
    attentions = bool(generation_config.return_dict_in_generate and generation_config.output_attentions)
    trees = not attentions and takes_trees(model, cache) is not None
    if not trees and not takes_chains(model, attentions):  # if branches are right, so are chains
        return f"{name} gives other logits where several tokens are fed at once"
    if rows > 1 and not takes_ragged_batches(model):
        return f"{name} does not keep rows of a batch apart that go on by different numbers of tokens"
    return None


def why_plain_at_sight(model: Any, cache: Any, rows: int) -> str | None:
    """Return those of the reasons that show without running the model."""
    name = type(model).__name__
    if names.has_own_loop(model):
        return f"{name} brings a decoding loop of its own"
    if model.training:
        return f"{name} is in training mode, in which dropout changes every forward; call model.eval() before"
    if cache is None or not names.takes_cache(model):
        return f"{name} keeps its state outside of a cache"
    reason = _why_plain_rows(model, cache) if rows > 1 else None
    return reason and f"{name} is decoded without drafts in a batch: {reason}"


def _why_plain_rows(model: Any, cache: Any) -> str | None:
    """Return why rows of a batch cannot go on by different numbers of tokens, as far as model and cache show it."""
    if model.config.is_encoder_decoder:
        return "it is an encoder-decoder model"
    if type(cache) is not DynamicCache or getattr(cache, "offloading", False):
        return f"only a dynamic cache on the device can follow its rows, no {type(cache).__name__}"
    others = [layer for layer in cache.layers if not names.is_plain_layer(layer)]
    unknown = [type(layer).__name__ for layer in others if not names.is_windowed_layer(layer)]
    if unknown:
        return f"a {unknown[0]} cannot follow its rows"
    if hides_windows(model, cache) or others and (cache.get_seq_length() > 0 or names.is_callers(cache)):
        return "sliding windows in a cache of your own cannot follow its rows"
    if others and (names.windows_by_mask(model) is None or names.mask_dtype(model) is None):
        return "it takes no dense mask, which sliding windows of single rows need"
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

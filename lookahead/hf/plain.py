"""Models of which no draft can be taken back are decoded plainly, by the method that `generate` itself uses."""

from __future__ import annotations

import time
from typing import Any

import torch

from ..stats import MODEL, Stats
from . import names
from .branching import continues_states
from .cache import Rollback

__all__ = ["decode_plainly", "why_plain"]


def why_plain(model: Any, cache: Any) -> str | None:
    """Return why drafts cannot be taken back, None where they can.

    Parameters
    ----------
    model : PreTrainedModel
    cache : Cache or None
        As `generate` prepared it; None where the model keeps its state elsewhere.
    """
    name = type(model).__name__
    if names.has_own_loop(model):
        return f"{name} brings a decoding loop of its own"
    if cache is None or getattr(model, "_is_stateful", False) and not hasattr(cache, "layers"):
        return f"{name} keeps its state outside of a cache"
    if Rollback.replays_on(cache) and not continues_states(model):
        return f"{name} forgets its state where several tokens are fed at once"
    return None


def decode_plainly(model: Any, stats: Stats, input_ids: torch.Tensor, *call: Any, **kwargs: Any) -> Any:
    """Decode as without lookahead and count what is emitted; takes and returns what the loop of `generate` does."""
    started = time.perf_counter()
    output = names.stock_loop(model)(input_ids, *call, **kwargs)
    ids = output if isinstance(output, torch.Tensor) else output.sequences
    rows, steps = ids.shape[0], ids.shape[1] - input_ids.shape[1]
    stats.forwards, stats.tokens, stats.token_sources = steps, rows * steps, [MODEL] * (rows * steps)
    stats.verify_seconds = stats.total_seconds = time.perf_counter() - started
    if not isinstance(output, torch.Tensor):
        output.stats = stats
    return output

"""What forwards of a model cost on this machine, measured on purpose."""

from __future__ import annotations

import time
from typing import Any

import torch

from ..draft.cost import MeasuredCost
from . import names

__all__ = ["SIZES", "time_forwards"]

SIZES = (0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)


def time_forwards(model: Any, cost: MeasuredCost, context: int, rounds: int) -> None:
    """Run forwards behind a random context with drafts of all `SIZES`, in turns, and tell `cost`."""
    generator = torch.Generator().manual_seed(0)
    length = max(context, SIZES[-1] + 1)
    ids = torch.randint(model.config.get_text_config().vocab_size, (1, length), generator=generator).to(model.device)
    name = names.cache_name()
    with torch.no_grad():
        cache = model(ids[:, :context], use_cache=True, logits_to_keep=1)[name]
        for round_ in range(rounds + 1):
            for size in SIZES if round_ % 2 else reversed(SIZES):
                started = time.perf_counter()
                model(ids[:, : size + 1], **{name: cache}, use_cache=True).logits[0].argmax(-1).tolist()
                seconds = time.perf_counter() - started
                cache.crop(-size - 1)
                if round_:  # the first round warms up
                    cost.learn(size, context, seconds)

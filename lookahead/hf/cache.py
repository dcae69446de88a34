"""What has to happen to a cache so that rejected tokens leave no trace."""

from __future__ import annotations

from typing import Any

import torch

from . import names

__all__ = ["keep_rows", "shorten", "slots"]


def keep_rows(cache: Any, fed: int, rows: list[list[int]]) -> None:
    """Keep some of the last forward's rows in the cache and drop its others.

    Positions are baked into the cached keys, so a row may be moved to another slot as it is.

    Parameters
    ----------
    cache : DynamicCache
        Changed in place; its last `fed` entries are the forward's rows.
    fed : int
        Rows of the last forward.
    rows : list of list of int
        For each sequence of the batch the rows to keep, rising; where it keeps fewer than another, any may follow.
    """
    width = max(len(kept) for kept in rows)
    if any(kept != list(range(len(kept))) for kept in rows):
        chosen = torch.tensor([kept + [0] * (width - len(kept)) for kept in rows])
        for layer in cache.layers:
            for states in (layer.keys, layer.values):
                start = states.shape[-2] - fed
                states[..., start : start + width, :] = slots(states, chosen + start)
    names.crop(cache, fed - width)


def shorten(cache: Any, length: int) -> None:
    """Take off each layer what stands in it behind `length` tokens, as where a forward failed between two layers."""
    for layer in cache.layers:
        if layer.get_seq_length() > length:
            layer.crop(length - layer.get_seq_length())


def slots(states: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
    """Return the `chosen` slots, int64 [batch, n], of keys or values [batch, heads, slots, head size]."""
    index = chosen[:, None, :, None].to(states.device)
    return states.gather(2, index.expand(-1, states.shape[1], -1, states.shape[3]))

"""What has to happen to a cache so that rejected tokens leave no trace."""

from __future__ import annotations

from typing import Any

import torch

from . import names

__all__ = ["keep_rows"]


def keep_rows(cache: Any, fed: int, rows: list[int]) -> None:
    """Keep some of the last forward's rows in the cache and drop its others.

    Positions are baked into the cached keys, so a row may be moved to another slot as it is.

    Parameters
    ----------
    cache : DynamicCache
        Changed in place; its last `fed` entries are the forward's rows.
    fed : int
        Rows of the last forward.
    rows : list of int
        The rows to keep, rising.
    """
    if rows != list(range(len(rows))):
        for layer in cache.layers:
            _gather(layer.keys, fed, rows)
            _gather(layer.values, fed, rows)
    names.crop(cache, fed - len(rows))


def _gather(states: torch.Tensor, fed: int, rows: list[int]) -> None:
    """Move the kept rows [batch, heads, row, head size] of the last `fed` to their front, in place."""
    start = states.shape[-2] - fed
    chosen = torch.tensor(rows, device=states.device) + start
    states[..., start : start + len(rows), :] = states.index_select(-2, chosen)

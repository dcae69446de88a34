"""Per-token outputs that `generate` returns on request, cut from forwards that computed several tokens at once."""

from __future__ import annotations

from typing import Any

import torch

__all__ = ["Recording"]


class Recording:
    """Attentions and hidden states, one tuple of layers per emitted token as plain decoding returns them.

    `attentions` and `hidden_states` are None where not asked for. The first entry holds the whole prompt.
    """

    def __init__(self, attentions: bool, hidden_states: bool) -> None:
        self.attentions: tuple[Any, ...] | None = () if attentions else None
        self.hidden_states: tuple[Any, ...] | None = () if hidden_states else None

    def prompt(self, outputs: Any) -> None:
        """Keep the prefill's outputs as they are."""
        if self.attentions is not None:
            self.attentions += (outputs.attentions,)
        if self.hidden_states is not None:
            self.hidden_states += (outputs.hidden_states,)

    def step(self, outputs: Any, fed: int, rows: list[int], windows: list[int | None]) -> None:
        """Keep the outputs of some rows.

        Parameters
        ----------
        outputs : ModelOutput
            Of a forward over `fed` tokens, before rejected ones leave the cache.
        fed : int
            Rows of the forward.
        rows : list of int
            The rows whose tokens were emitted, each row's ancestors before it.
        windows : list of int or None
            Of each layer the size of its sliding window, None where it sees everything.
        """
        for position, row in enumerate(rows):
            if self.hidden_states is not None:
                self.hidden_states += (tuple(states[:, row : row + 1] for states in outputs.hidden_states),)
            if self.attentions is not None:
                layers = zip(outputs.attentions, windows, strict=True)
                seen = rows[: position + 1]
                self.attentions += (tuple(_visible(weights, fed, row, seen, size) for weights, size in layers),)


def _visible(weights: torch.Tensor, fed: int, row: int, seen: list[int], window: int | None) -> torch.Tensor:
    """Cut one row's weights to the keys that it could see.

    Parameters
    ----------
    weights : Tensor [1, heads, fed, keys]
    fed, row : int
        Rows of the forward, and the row wanted.
    seen : list of int
        Its ancestors and itself.
    window : int or None
        Most keys that the layer sees.
    """
    past = weights.shape[-1] - fed
    columns = [*range(past), *(past + node for node in seen)][-(window or 0) :]
    return weights[:, :, row : row + 1].index_select(-1, torch.tensor(columns, device=weights.device))

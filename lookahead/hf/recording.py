"""Per-token outputs that `generate` returns on request, cut from forwards that computed several tokens at once."""

from __future__ import annotations

from typing import Any

import torch

__all__ = ["Recording"]

_Layers = tuple[Any, ...]


class Recording:
    """Attentions and hidden states, one tuple of layers per emitted token as plain decoding returns them.

    `attentions`, `cross_attentions` (of encoder-decoder models) and `hidden_states` are None where not asked for. The
    first entry holds the whole prompt.
    """

    def __init__(self, attentions: bool, hidden_states: bool, is_encoder_decoder: bool = False) -> None:
        self.attentions: _Layers | None = () if attentions else None
        self.cross_attentions: _Layers | None = () if attentions and is_encoder_decoder else None
        self.hidden_states: _Layers | None = () if hidden_states else None
        self._prefix = "decoder_" if is_encoder_decoder else ""

    def prompt(self, outputs: Any) -> None:
        """Keep the prefill's outputs as they are."""
        if self.attentions is not None:
            self.attentions += (outputs[f"{self._prefix}attentions"],)
        if self.cross_attentions is not None:
            self.cross_attentions += (outputs.cross_attentions,)
        if self.hidden_states is not None:
            self.hidden_states += (outputs[f"{self._prefix}hidden_states"],)

    def step(self, outputs: Any, before: int, rows: list[int], windows: list[int | None] | None) -> None:
        """Keep the outputs of some rows.

        Parameters
        ----------
        outputs : ModelOutput
            Of a forward, before rejected tokens leave the cache.
        before : int
            Its first rows, which repeat known tokens.
        rows : list of int
            Those of the other rows whose tokens were emitted, each row's ancestors before it, counted from `before`.
        windows : list of int or None, or None
            Of each layer the size of its sliding window, None where it sees everything; None for a static cache, whose
            unused slots are a part of the attentions.
        """
        seen = list(range(before))
        for row in (before + row for row in rows):
            seen.append(row)
            if self.hidden_states is not None:
                layers = outputs[f"{self._prefix}hidden_states"]
                self.hidden_states += (tuple(states[:, row : row + 1] for states in layers),)
            if self.cross_attentions is not None:
                self.cross_attentions += (tuple(w[:, :, row : row + 1] for w in outputs.cross_attentions),)
            if self.attentions is not None:
                self.attentions += (_attended(outputs[f"{self._prefix}attentions"], row, seen, windows),)


def _attended(layers: _Layers, row: int, seen: list[int], windows: list[int | None] | None) -> _Layers:
    """Return one row's weights of all layers; there are none where the implementation keeps none."""
    if windows is None:
        return tuple(weights[:, :, row : row + 1] for weights in layers)
    return tuple(_visible(weights, row, seen, window) for weights, window in zip(layers, windows, strict=False))


def _visible(weights: torch.Tensor | None, row: int, seen: list[int], window: int | None) -> torch.Tensor | None:
    """Cut one row's weights to the keys that it could see.

    Parameters
    ----------
    weights : Tensor [1, heads, fed, keys]
        None of a layer without attention.
    row : int
        The row wanted.
    seen : list of int
        Its ancestors and itself among the rows of the forward.
    window : int or None
        Most keys that the layer sees.
    """
    if weights is None:
        return None
    past = weights.shape[-1] - weights.shape[-2]
    columns = [*range(past), *(past + node for node in seen)][-(window or 0) :]
    return weights[:, :, row : row + 1].index_select(-1, torch.tensor(columns, device=weights.device))

"""How much the logits behind a text depend on how the text was cut into forwards: the noise of the arithmetic."""

from __future__ import annotations

import inspect
from typing import Any

import torch
from transformers import DynamicCache

from . import names

__all__ = ["clean_logits", "distance", "resolution"]


def clean_logits(model: Any, known: list[int], start: int, step: int, others: list[int], width: int) -> dict[str, Any]:
    """Return the logits behind a text from forwards that never rolled anything back, by what they were.

    Parameters
    ----------
    model : PreTrainedModel
        The model.
    known : list of int, length n
        The text: the prompt and what was emitted.
    start : int
        Length of the prompt.
    step : int
        How many of the last known tokens the last forward of several tokens fed.
    others : list of int
        What it fed besides them, which no row before sees.
    width : int
        Most tokens that forwards behind the prompt fed.

    Returns
    -------
    dict of str to float32 [vocabulary]
    """
    found = {
        "the whole text": _behind(model, [known], 1, cached=False),
        "1 token, rest at once": _behind(model, [known[:-1], known[-1:]], 1),
    }
    begun = len(known) - step
    if begun >= start:
        between = [known[at : min(at + width, begun)] for at in range(start, begun, width)]
        pieces = [known[:start], *between, known[begun:] + others]
        found[f"{step + len(others)} tokens, clean cache"] = _behind(model, pieces, 1 + len(others))
    return found


def _behind(model: Any, pieces: list[list[int]], row: int, cached: bool = True) -> torch.Tensor:
    """Feed a text in pieces through a cache; return the logits of the last piece's row, counted from its end."""
    pieces = [piece for piece in pieces if piece]
    kwargs: dict[str, Any] = {"use_cache": cached, "return_dict": True}
    if cached:
        kwargs[names.cache_name()] = DynamicCache(config=model.config.get_text_config())
    if "logits_to_keep" in inspect.signature(model.forward).parameters:
        kwargs["logits_to_keep"] = 1
    with torch.no_grad():
        outputs = _fed(model, pieces[0], row if len(pieces) == 1 else 1, kwargs)
        with names.decoding(model):
            for piece in pieces[1:]:
                outputs = _fed(model, piece, row if piece is pieces[-1] else 1, kwargs)
    logits: torch.Tensor = outputs.logits[0, -row].to(model.device, torch.float32)
    return logits


def _fed(model: Any, piece: list[int], rows: int, kwargs: dict[str, Any]) -> Any:
    """Run one forward and have the logits of its last rows computed."""
    if "logits_to_keep" in kwargs:
        kwargs["logits_to_keep"] = rows
    return model(input_ids=torch.tensor([piece], device=model.device), **kwargs)


def distance(one: torch.Tensor, other: torch.Tensor) -> float:
    """Return the greatest difference of two forwards' logits, float [vocabulary]; infinite where one has none."""
    if bool(one.isnan().any() != other.isnan().any()):
        return float("inf")
    same = one == other  # also where both are infinite
    return float((one - other).masked_fill(same, 0.0).abs().max())


def resolution(model: Any, logits: torch.Tensor) -> float:
    """Return one step of the model's type at the size of the largest logit: differences below do not exist."""
    step = max(torch.finfo(model.dtype).eps, torch.finfo(torch.float32).eps)
    return step * float(logits[logits.isfinite()].abs().max())

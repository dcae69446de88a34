"""What a generation saw when it chose a token: listened to from outside, through hooks that every model has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from transformers.generation.streamers import BaseStreamer

from . import names
from .rule import generator_state

__all__ = ["Forwards", "Sight", "Witness"]


class Forwards:
    """Keeps the inputs and the logits of a model's last forward, while it is entered.

    Attributes
    ----------
    cache : Cache or None
        Forwards through other caches than this one are not kept; None keeps them all.
    inputs : dict
        The keywords of the last forward.
    logits : float [rows, vocabulary]
        What came of it.
    widest : int
        Tokens of the widest forward but the prompt's.
    count : int
        Forwards so far.
    state : uint8 [bytes]
        The random generator when the last forward was through.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        self.device: torch.device = model.device
        self.cache: Any = None
        self.inputs: dict[str, Any] = {}
        self.logits = torch.empty(0, 0)
        self.widest = 1
        self.count = 0
        self.state = generator_state(self.device)

    def __enter__(self) -> Forwards:
        """Start to listen."""
        self._handle = self._model.register_forward_hook(self._hear, with_kwargs=True)
        return self

    def __exit__(self, *error: object) -> None:
        """Stop listening."""
        self._handle.remove()

    def _hear(self, model: Any, given: tuple[Any, ...], inputs: dict[str, Any], outputs: Any) -> None:
        """Keep one forward; called by the model."""
        if self.cache is not None and inputs.get(names.cache_name()) is not self.cache:
            return
        self.inputs, self.logits = inputs, outputs.logits[0]
        self.state = generator_state(self.device)
        if self.count:
            self.widest = max(self.widest, inputs["input_ids"].shape[1])
        self.count += 1


@dataclass(frozen=True)
class Sight:
    """The forward behind which a token was chosen.

    Attributes
    ----------
    position : int
        Number of the token in the output.
    logits : float32 [vocabulary]
        The logits that the token should have been chosen from; NaN where the forward has no such row.
    fed : list of int
        Tokens of the forward.
    accepted : list of int
        Tokens that the same forward gave before.
    row : int or None
        The row of the forward that saw exactly these; None where there is none.
    state : uint8 [bytes]
        The random generator before the token was chosen.
    """

    position: int
    logits: torch.Tensor
    fed: list[int]
    accepted: list[int]
    row: int | None
    state: torch.Tensor


class Witness(BaseStreamer):  # type: ignore[misc, unused-ignore]
    """Hears a generation's tokens and keeps what it saw at the first one that another generation has not.

    Attributes
    ----------
    sight : Sight or None
        That forward; None as long as the tokens are those of the other generation.
    """

    def __init__(self, forwards: Forwards, others: list[int]) -> None:
        self._forwards = forwards
        self._others = others
        self._heard: list[int] = []
        self._forward = self._before = 0  # which forward is the last one, and how many tokens were known before it
        self.sight: Sight | None = None

    def put(self, value: torch.Tensor) -> None:
        """Hear one token, int64 [1]; the prompt, int64 [1, length], is passed over."""
        if value.ndim > 1:
            return
        if self._forwards.count != self._forward:
            self._forward, self._before = self._forwards.count, len(self._heard)
        token, at = int(value), len(self._heard)
        if self.sight is None and self._others[at : at + 1] != [token]:
            self.sight = self._look()
        self._heard.append(token)
        self._forwards.state = generator_state(self._forwards.device)

    def end(self) -> None:
        """Hear that the generation ended."""

    def _look(self) -> Sight:
        """Return what the next token is chosen from."""
        fed = self._forwards.inputs["input_ids"][0].tolist()
        accepted = self._heard[self._before :]
        if self._heard:
            row = _row_behind(accepted, fed, self._forwards.inputs.get("attention_mask"))
        else:
            row = len(self._forwards.logits) - 1  # of the prompt only the last row counts
        logits, state = self._forwards.logits, self._forwards.state
        seen = logits[row] if row is not None else torch.full_like(logits[0], torch.nan)
        seen = seen.to(self._forwards.device, torch.float32, copy=True)
        return Sight(len(self._heard), seen, fed, accepted, row, state)


def _row_behind(accepted: list[int], fed: list[int], mask: torch.Tensor | None) -> int | None:
    """Return the row of a forward that saw, of the forward's tokens, the first and then the accepted ones.

    Parameters
    ----------
    accepted : list of int
        The tokens behind the first.
    fed : list of int, length n
        The forward's tokens.
    mask : Tensor [1, 1, n, keys] or other
        A tree's mask, boolean or 0 where a token is seen; any other makes the tokens a chain.
    """
    if not isinstance(mask, torch.Tensor) or mask.ndim != 4:
        return len(accepted) if fed[1 : len(accepted) + 1] == accepted else None
    seen = mask[0, 0, :, -len(fed) :]
    seen = (seen if seen.dtype == torch.bool else seen == 0).cpu()
    for row, ancestors in enumerate(seen.tolist()):
        if [token for token, is_seen in zip(fed, ancestors, strict=True) if is_seen][1:] == accepted:
            return row
    return None

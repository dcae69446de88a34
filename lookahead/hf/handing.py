"""What drafters that read the target's states are handed, as stock assisted decoding hands it over."""

from __future__ import annotations

from typing import Any, cast

import torch
from transformers.modeling_outputs import BaseModelOutput

__all__ = ["Handing"]

_HIDDEN = "output_hidden_states"


class Handing:
    """Collects the states of verified tokens until a generator is asked for a draft.

    Stock assisted decoding asks after every forward and hands over that forward's outputs. Here the index may have
    drafted several times since, also trees; the states of the tokens that were accepted in between are put together, in
    order, as if one forward had brought them all.
    """

    def __init__(self, generator: Any) -> None:
        self._overrides: dict[str, Any] = getattr(generator, "model_kwargs_overrides", {})
        if _HIDDEN not in self._overrides:
            raise ValueError(
                f"{type(generator).__name__} requires the target's outputs without saying which; allowed are "
                f"generators that draft from hidden states: set model_kwargs_overrides = {{'{_HIDDEN}': ...}} on it"
            )
        self._hidden: list[list[torch.Tensor | None]] = []
        self._shared: Any = None
        self._least: int = getattr(generator, "num_mtp_layers", 0)
        self._waiting = self._given = 0

    def wanted(self, model_kwargs: dict[str, Any]) -> dict[str, Any]:
        """Return the keywords by which the target's forwards bring the states; a caller who wants all gets all."""
        return {name: True if model_kwargs.get(name) is True else value for name, value in self._overrides.items()}

    def prompt(self, outputs: Any) -> None:
        """Keep the states of the prompt's forward, as they are."""
        self._take(list(outputs.hidden_states))
        self._shared = getattr(outputs, "shared_kv_states", None)

    def step(self, outputs: Any, before: int, rows: list[int]) -> None:
        """Keep the states of a forward's rows, counted from `before`, the rows of tokens that were known already."""
        fed = [before + row for row in rows]
        self._take([None if states is None else states[:, fed] for states in outputs.hidden_states])
        shared = getattr(outputs, "shared_kv_states", None)
        if shared is not None and rows != list(range(len(rows))):  # behind a chain generators cut by themselves
            wide = next(states.shape[1] for states in outputs.hidden_states if states is not None)
            kept = [*range(before), *fed]
            shared = {name: tuple(_without_refused(one, wide, kept) for one in pair) for name, pair in shared.items()}
        self._shared = shared

    def _take(self, states: list[torch.Tensor | None]) -> None:
        """Put the layers' states, [1, tokens, size] each, behind those that wait; None of layers not asked for."""
        self._waiting += next(layer.shape[1] for layer in states if layer is not None)
        self._hidden.append(states)

    def is_complete(self, length: int) -> bool:
        """Tell whether the generator can be told all that it needs of a text of `length` tokens.

        It cannot where a cache was continued or the prompt came in chunks, unless it reads the keys and values; and
        heads take back as many tokens as they are.
        """
        seen = self._given + self._waiting
        return self._shared is not None or seen == length - 1 and seen >= self._least

    def give(self, model_kwargs: dict[str, Any]) -> dict[str, Any]:
        """Return what `get_candidates` takes besides the ids, and begin to collect anew."""
        layers = zip(*self._hidden, strict=True)
        hidden = tuple(None if layer[0] is None else torch.cat(layer, dim=1) for layer in layers)
        outputs: Any = BaseModelOutput(hidden_states=cast(Any, hidden))
        if self._shared is not None:
            outputs["shared_kv_states"] = self._shared
        waiting, self._hidden, self._waiting = self._waiting, [], 0
        self._given += waiting
        return {
            "model_kwargs": {"attention_mask": None, **model_kwargs},
            "model_outputs": outputs,
            "is_first_iteration": False,
            "n_last_matches": waiting - 1,
        }


def _without_refused(states: torch.Tensor, fed: int, rows: list[int]) -> torch.Tensor:
    """Return keys or values [1, heads, slots, size] with only these of the last `fed` slots."""
    past = states.shape[2] - fed
    return states[:, :, [*range(past), *(past + row for row in rows)]]

"""FORCED ANSWERS: a model's real forward runs and is paid for, and then says what was recorded.

Behind the forward the logit of the recorded answer's next token is lifted by a large finite number, at each position by
itself. So would a stronger model of the same size behave: one that writes this answer. No logits processor takes part,
which stock prompt lookup would run over every draft position once more, and nothing waits for an accelerator.
"""

from __future__ import annotations

import time
from typing import Any

import torch

__all__ = ["Forced", "Prefilled", "clock"]

_LIFT = 1e4
_READ = 2048


class Forced:
    """A context in which a model with rotary positions (Llama and its like) says an answer behind one prompt."""

    def __init__(self, model: Any, prompt: int, answer: list[int]) -> None:
        self._model, self._prompt = model, prompt
        self._answer = torch.tensor(answer, device=model.device)
        self._positions = torch.empty(0)
        self._hooks: list[Any] = []

    def __enter__(self) -> Forced:
        """Change what the model says."""
        rotary, head = self._model.get_decoder().rotary_emb, self._model.get_output_embeddings()
        noted = rotary.register_forward_pre_hook(self._note, with_kwargs=True)
        self._hooks = [noted, head.register_forward_hook(self._lift)]
        return self

    def __exit__(self, *_: object) -> None:
        """Let the model say what it does."""
        for hook in self._hooks:
            hook.remove()

    def _note(self, module: Any, given: tuple[Any, ...], named: dict[str, Any]) -> None:
        """Hear the positions of a forward, int64 [1, tokens]."""
        self._positions = named["position_ids"] if "position_ids" in named else given[1]

    def _lift(self, module: Any, given: Any, logits: torch.Tensor) -> torch.Tensor:
        """Lift the next token's logit behind the last tokens, [1, kept, vocabulary]."""
        at = self._positions[:, -logits.shape[1] :] + 1 - self._prompt
        inside = (at >= 0) & (at < len(self._answer))
        tokens = self._answer[at.clamp(0, len(self._answer) - 1)]
        return logits.scatter_add(2, tokens.unsqueeze(2), (inside * _LIFT).to(logits.dtype).unsqueeze(2))


class Prefilled:
    """A context in which the forward over one prompt takes no time: all but its last token come from a cache kept here.

    Stock assisted decoding feeds the whole prompt again where it is given a cache; so the cache of each call is filled
    behind its back, for all ways of generating alike. What a forward costs depends on how much a cache holds and not on
    what: only the prompt's last 2048 tokens are read once, and their keys and values fill the places of earlier ones.

    Attributes
    ----------
    seconds : float
        What filling the last call's cache took.
    """

    def __init__(self, model: Any, ids: torch.Tensor) -> None:
        self._model, self._known = model, ids.shape[1] - 1
        with torch.no_grad():
            kept = model(input_ids=ids[:, :-1][:, -_READ:], use_cache=True, logits_to_keep=1).cache
        self._layers = [(self._filled(layer.keys), self._filled(layer.values)) for layer in kept.layers]
        self.seconds = 0.0

    def _filled(self, states: torch.Tensor) -> torch.Tensor:
        """Repeat states, [1, heads, read, size], until there is one for every known token; the last ones stay last."""
        times = -(-self._known // states.shape[2])
        return states.repeat(1, 1, times, 1)[:, :, -self._known :]

    def __enter__(self) -> Prefilled:
        """Fill caches from now on."""
        self._hook = self._model.register_forward_pre_hook(self._fill, with_kwargs=True)
        return self

    def __exit__(self, *_: object) -> None:
        """Fill no more."""
        self._hook.remove()

    def _fill(self, module: Any, given: Any, named: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Fill an empty cache before a forward over the prompt, and feed what is left of it."""
        cache = named["cache"]
        if cache is None or cache.get_seq_length() or named["input_ids"].shape[1] <= self._known:
            return given, named
        started = clock(self._model)
        for number, (keys, values) in enumerate(self._layers):
            cache.update(keys, values, number)
        left = {"input_ids": named["input_ids"][:, self._known :]}
        if named.get("position_ids") is not None:
            left["position_ids"] = named["position_ids"][:, self._known :]
        self.seconds = clock(self._model) - started
        return given, named | left


def clock(model: Any) -> float:
    """Return the time in seconds, on an accelerator once it has done what it was given."""
    if model.device.type == "cuda":
        torch.cuda.synchronize(model.device)
    return time.perf_counter()

"""FORCED ANSWERS: a model's real forward runs and is paid for, and then says what was recorded.

Behind the forward the logit of the recorded answer's next token is lifted by a large finite number, at each position by
itself. So would a stronger model of the same size behave: one that writes this answer. No logits processor takes part,
which stock prompt lookup would run over every draft position once more, and nothing waits for an accelerator.
"""

from __future__ import annotations

from typing import Any

import torch

__all__ = ["Forced"]

_LIFT = 1e4


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

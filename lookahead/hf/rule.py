"""How a token is chosen at one position, to be asked as often as one likes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

__all__ = ["Rule", "generator_state"]


def generator_state(device: torch.device) -> torch.Tensor:
    """Return the state of torch's global generator on a device."""
    return torch.cuda.get_rng_state(device) if device.type == "cuda" else torch.get_rng_state()


@contextlib.contextmanager
def _generator(state: torch.Tensor, device: torch.device) -> Iterator[None]:
    """Draw from a state of the generator, and leave the generator as it was."""
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        if device.type == "cuda":
            torch.cuda.set_rng_state(state, device)
        else:
            torch.set_rng_state(state)
        yield


@dataclass(frozen=True)
class Rule:
    """Processors, then the maximum or one draw.

    Attributes
    ----------
    processors : callable
        ``processors(ids, logits) -> scores``, without a state of their own.
    ids : int64 [1, length]
        The text before the position.
    temperature : float or None
        That of the draw, as one of the processors applies it; None takes the maximum.
    state : uint8 [bytes]
        The random generator before the draw.
    """

    processors: Any
    ids: torch.Tensor
    temperature: float | None
    state: torch.Tensor

    def choose(self, logits: torch.Tensor) -> int:
        """Choose from float32 [vocabulary] as `generate` does."""
        scores = self._scores(logits)
        if self.temperature is None:
            return int(scores.argmax())
        with _generator(self.state, logits.device):
            return int(torch.multinomial(scores.softmax(-1), 1))

    def heights(self, logits: torch.Tensor) -> torch.Tensor:
        """Return what the chosen token is the maximum of, float32 [vocabulary], in units of logits.

        A draw is the maximum of p / q, where q are exponential numbers: Efraimidis and Spirakis 2006, and
        ``torch.multinomial`` for one sample.
        """
        scores = self._scores(logits)
        if self.temperature is None:
            return scores
        with _generator(self.state, logits.device):
            waits = torch.empty_like(scores)[None].exponential_()[0]
        return self.temperature * (scores - waits.log())

    def _scores(self, logits: torch.Tensor) -> torch.Tensor:
        """Process a copy of the logits."""
        scores: torch.Tensor = self.processors(self.ids, logits[None].clone())[0]
        return scores

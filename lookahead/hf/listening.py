"""What a server hangs into a call of `generate`: who hears each token and may end it, and what looks at the scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from transformers import LogitsProcessor
from transformers.generation.stopping_criteria import StoppingCriteria

__all__ = ["Bias", "Chances", "Listener", "Repetition", "TokenChances"]


@dataclass(frozen=True)
class TokenChances:
    """The log-probability of an emitted token, and the likeliest tokens of its place with theirs, the best first."""

    token: int
    logprob: float
    likeliest: tuple[tuple[int, float], ...] = ()


class Chances(LogitsProcessor):  # type: ignore[misc, no-untyped-call, unused-ignore]
    """Looks at the scores as they come from the model, before temperature and filters, and changes nothing.

    Parameters
    ----------
    count : int
        Likeliest tokens wanted of each place.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._row: torch.Tensor | None = None

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Note the row of the token that comes next."""
        self._row = scores[0].float().log_softmax(dim=-1)
        return scores

    def of(self, token: int) -> TokenChances | None:
        """Return what was noted for the token that was just emitted."""
        if self._row is None:
            return None
        values, tokens = self._row.topk(min(self._count, len(self._row)))
        likeliest = tuple(zip(tokens.tolist(), values.tolist(), strict=True))
        return TokenChances(token, float(self._row[token]), likeliest)


class Bias(LogitsProcessor):  # type: ignore[misc, no-untyped-call, unused-ignore]
    """Adds a number to the scores of some tokens (OpenAI's ``logit_bias``)."""

    def __init__(self, bias: Mapping[int, float]) -> None:
        self._tokens, self._values = torch.tensor(list(bias)), torch.tensor(list(bias.values()), dtype=torch.float32)

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Return the changed scores."""
        tokens, values = self._tokens.to(scores.device), self._values.to(scores)
        return scores.index_add(-1, tokens, values[None].expand(len(scores), -1))


class Repetition(LogitsProcessor):  # type: ignore[misc, no-untyped-call, unused-ignore]
    """Lowers the scores of tokens that the answer holds: by `presence`, and by `frequency` for each time.

    As OpenAI defines ``presence_penalty`` and ``frequency_penalty``; what stands in the prompt does not count.
    """

    def __init__(self, prompt: int, presence: float, frequency: float) -> None:
        self._prompt, self._presence, self._frequency = prompt, presence, frequency

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Return the changed scores."""
        tokens, counts = torch.unique(input_ids[0, self._prompt :], return_counts=True)
        lowered = self._presence + self._frequency * counts.to(scores)
        return scores.index_add(-1, tokens.to(scores.device), -lowered[None].to(scores.device))


class Listener(StoppingCriteria):  # type: ignore[misc, no-untyped-call, unused-ignore]
    """Hears every token once, in order, and ends the generation when `on_token` says so.

    Parameters
    ----------
    on_token : callable
        ``on_token(token, chances) -> bool``: whether the generation ends here.
    most : int
        Tokens with which it ends anyway.
    chances : Chances, optional
        Where log-probabilities are wanted.

    Attributes
    ----------
    tokens : list of int
        What was heard.
    """

    def __init__(
        self, on_token: Callable[[int, TokenChances | None], bool], most: int, chances: Chances | None = None
    ) -> None:
        self._on_token, self._most, self._chances = on_token, most, chances
        self.tokens: list[int] = []

    def __call__(self, input_ids: torch.Tensor, scores: Any, **kwargs: Any) -> torch.Tensor:
        """Tell of the last token; bool [1]."""
        token = int(input_ids[0, -1])
        self.tokens.append(token)
        ends = self._on_token(token, None if self._chances is None else self._chances.of(token))
        ends = ends or len(self.tokens) >= self._most
        return torch.full((1,), ends, device=input_ids.device, dtype=torch.bool)

"""One answer of a server: a call of `generate` that continues a kept cache and tells of every token."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from ..stats import Stats
from . import names
from .listening import Bias, Chances, Listener, Repetition, TokenChances
from .loop import Lookahead
from .prefixes import Prefixes

__all__ = ["Answer", "Settings", "answer", "context_length", "end_tokens", "is_sampled", "vocabulary_size"]


@dataclass(frozen=True)
class Settings:
    """How an answer is chosen.

    Attributes
    ----------
    max_new_tokens : int
        Most tokens of the answer.
    sampling : dict
        Arguments of `generate` that are not the model's own defaults: ``do_sample``, ``temperature``, ``top_p`` ...
    seed : int or None
        With one, the answer is the one that `generate` gives after ``torch.manual_seed``.
    presence, frequency : float
        OpenAI's penalties.
    bias : dict
        What is added to the score of a token.
    logprobs : int or None
        Likeliest tokens wanted of each place, 0 for the chosen token alone; None wants no log-probabilities.
    grammar : callable or None
        Makes a new logits processor for each answer.
    """

    max_new_tokens: int
    sampling: Mapping[str, Any] = field(default_factory=dict)
    seed: int | None = None
    presence: float = 0.0
    frequency: float = 0.0
    bias: Mapping[int, float] = field(default_factory=dict)
    logprobs: int | None = None
    grammar: Callable[[], Any] | None = None


@dataclass(frozen=True)
class Answer:
    """What became of it: the emitted tokens, what of the prompt was cached, and the figures of the call."""

    tokens: list[int]
    cached_tokens: int
    stats: Stats


def answer(
    model: Any,
    lookahead: Lookahead,
    prompt: Sequence[int],
    settings: Settings,
    on_token: Callable[[int, TokenChances | None], bool],
    prefixes: Prefixes,
    owner: str = "",
    prediction: Any = None,
) -> Answer:
    """Answer a prompt, as `generate` would from the same seed.

    Parameters
    ----------
    model : PreTrainedModel
    lookahead : Lookahead
    prompt : list of int
    settings : Settings
    on_token : callable
        ``on_token(token, chances) -> bool``, called as soon as a token is emitted; True ends the answer with it.
    prefixes : Prefixes
        Where the cache comes from and goes to, under the name of `owner`.
    owner : str
    prediction : str or int [length], optional
        What the answer is expected to resemble.
    """
    chances = None if settings.logprobs is None else Chances(settings.logprobs)
    listener = Listener(on_token, chances)
    cache, cached = prefixes.take(owner, prompt)
    ids = torch.tensor([list(prompt)], device=model.device)
    given: dict[str, Any] = {} if cache is None else {names.cache_name(): cache}
    torch.manual_seed(settings.seed) if settings.seed is not None else torch.seed()
    lookahead.generate(
        model,
        ids,
        attention_mask=torch.ones_like(ids),
        max_new_tokens=settings.max_new_tokens,
        stopping_criteria=[listener],
        logits_processor=_processors(settings, len(prompt), chances),
        prediction=prediction,
        **settings.sampling,
        **given,
    )
    prefixes.keep(owner, [*prompt, *listener.tokens], cache)
    return Answer(listener.tokens, cached, lookahead.stats)


def _processors(settings: Settings, prompt: int, chances: Chances | None) -> list[Any]:
    """Return what is asked of the scores, those that only look first."""
    found: list[Any] = [] if chances is None else [chances]
    if settings.bias:
        found.append(Bias(settings.bias))
    if settings.presence or settings.frequency:
        found.append(Repetition(prompt, settings.presence, settings.frequency))
    if settings.grammar is not None:
        found.append(settings.grammar())
    return found


def end_tokens(model: Any) -> frozenset[int]:
    """Return the tokens that end an answer."""
    ends = model.generation_config.eos_token_id
    return frozenset([] if ends is None else [ends] if isinstance(ends, int) else ends)


def context_length(model: Any) -> int | None:
    """Return how many tokens prompt and answer may have together; None where the model does not say."""
    length: int | None = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    return length


def is_sampled(model: Any) -> bool:
    """Tell whether answers are sampled where nothing is said."""
    return bool(model.generation_config.do_sample)


def vocabulary_size(model: Any) -> int:
    """Return how many tokens the model reads."""
    size: int = model.get_input_embeddings().weight.shape[0]
    return size

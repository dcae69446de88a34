"""Answers of a server: calls of `generate` that continue kept caches and tell of every token."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from . import names
from .listening import Bias, Chances, Listener, Repetition, TokenChances
from .loading import context_length
from .loop import Lookahead
from .prefixes import Prefixes
from .rows import RowCriteria, RowProcessors

__all__ = [
    "Answer",
    "Ask",
    "Settings",
    "answer",
    "answer_together",
    "end_tokens",
    "go_together",
    "is_sampled",
    "vocabulary_size",
]

_MOST = 65_536  # tokens of a batch, the paddings and the longest answer for each row included
_FREE = 64  # tokens that a row may read beyond what it needs to


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
class Ask:
    """One answer that is wanted.

    Attributes
    ----------
    prompt : list of int
    settings : Settings
    on_token : callable
        ``on_token(token, chances) -> bool``, called as soon as a token is emitted; True ends the answer with it.
    owner : str
        Under whose name caches are taken and kept.
    prediction : str or int [length], optional
        What the answer is expected to resemble.
    """

    prompt: Sequence[int]
    settings: Settings
    on_token: Callable[[int, TokenChances | None], bool]
    owner: str = ""
    prediction: Any = None


@dataclass(frozen=True)
class Answer:
    """What became of it: the emitted tokens, what of the prompt was cached, and what of the prediction was right."""

    tokens: list[int]
    cached_tokens: int
    accepted_prediction_tokens: int = 0
    rejected_prediction_tokens: int = 0


def answer(model: Any, lookahead: Lookahead, ask: Ask, prefixes: Prefixes) -> Answer:
    """Answer a prompt, as `generate` would from the same seed; the figures are those of `lookahead` afterwards.

    Parameters
    ----------
    model : PreTrainedModel
    lookahead : Lookahead
    ask : Ask
    prefixes : Prefixes
        Where the cache comes from and goes to.
    """
    settings, (listener, processors) = ask.settings, _attached(ask, len(ask.prompt))
    cache, cached = prefixes.take(ask.owner, ask.prompt)
    ids = torch.tensor([list(ask.prompt)], device=model.device)
    torch.manual_seed(settings.seed) if settings.seed is not None else torch.seed()
    lookahead.generate(
        model,
        ids,
        attention_mask=torch.ones_like(ids),
        max_new_tokens=settings.max_new_tokens,
        stopping_criteria=[listener],
        logits_processor=processors,
        prediction=ask.prediction,
        **settings.sampling,
        **_given(cache),
    )
    prefixes.keep(ask.owner, [*ask.prompt, *listener.tokens], cache)
    stats = lookahead.stats
    return Answer(listener.tokens, cached, stats.accepted_prediction_tokens, stats.rejected_prediction_tokens)


def answer_together(model: Any, lookahead: Lookahead, asks: Sequence[Ask], prefixes: Prefixes) -> list[Answer]:
    """Answer several prompts in one batch; they are sampled alike, have no seeds, and may differ in all else.

    Greedy answers are those that `answer` gives. Predictions are not looked at.

    Raises
    ------
    Unsupported
        Before any work, for a model whose rows of a batch cannot go on by different numbers of tokens.
    """
    prompts, width = [ask.prompt for ask in asks], max(len(ask.prompt) for ask in asks)
    attached = [_attached(ask, width) for ask in asks]
    listeners = [listener for listener, _ in attached]
    cache, cached = prefixes.take_together([ask.owner for ask in asks], prompts)

    def leave(row: int, cache_of: Callable[[], Any]) -> None:
        if prefixes.serves_batches:
            prefixes.keep(asks[row].owner, [*prompts[row], *listeners[row].tokens], cache_of())

    ids = torch.tensor([[0] * (width - len(prompt)) + list(prompt) for prompt in prompts], device=model.device)
    mask = torch.tensor([[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in prompts], device=model.device)
    torch.seed()
    lookahead.generate(
        model,
        ids,
        attention_mask=mask,
        max_new_tokens=max(ask.settings.max_new_tokens for ask in asks),
        stopping_criteria=[RowCriteria(listeners, leave)],
        logits_processor=[RowProcessors([row for _, row in attached])] if any(row for _, row in attached) else [],
        **asks[0].settings.sampling,
        **_given(cache),
    )
    return [Answer(listener.tokens, held) for listener, held in zip(listeners, cached, strict=True)]


def go_together(model: Any, asks: Sequence[Ask], prefixes: Prefixes) -> bool:
    """Tell whether prompts can be answered in one batch that reads hardly more than each of them alone would."""
    if any(ask.settings.seed is not None or ask.prediction is not None for ask in asks):
        return False
    if any(ask.settings.sampling != asks[0].settings.sampling for ask in asks):
        return False
    width, longest = max(len(ask.prompt) for ask in asks), max(ask.settings.max_new_tokens for ask in asks)
    new = [len(ask.prompt) - prefixes.common(ask.owner, ask.prompt) for ask in asks]
    is_wide = (width + longest) * len(asks) > _MOST or width + longest > (context_length(model) or _MOST)
    return not is_wide and max(new) * len(asks) <= 2 * sum(new) + _FREE * len(asks)


def _given(cache: Any) -> dict[str, Any]:
    """Return what tells `generate` of a cache."""
    return {} if cache is None else {names.cache_name(): cache}


def _attached(ask: Ask, width: int) -> tuple[Listener, list[Any]]:
    """Return who hears the tokens, and what is asked of the scores; the prompt is padded to a width."""
    settings = ask.settings
    chances = None if settings.logprobs is None else Chances(settings.logprobs)
    return Listener(ask.on_token, settings.max_new_tokens, chances), _processors(settings, width, chances)


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


def is_sampled(model: Any) -> bool:
    """Tell whether answers are sampled where nothing is said."""
    return bool(model.generation_config.do_sample)


def vocabulary_size(model: Any) -> int:
    """Return how many tokens the model reads."""
    size: int = model.get_input_embeddings().weight.shape[0]
    return size

"""Compares the outputs with and without lookahead, and tells a near-tie of the arithmetic from a bug.

Greedy or drawn, a token is the maximum of something: of the processed logits, or of these plus what the random
generator adds to each token (the Gumbel-max trick). So one rule serves both. Lookahead is right if its token is the
maximum behind the logits that its own forward gave, and if these lie no further from those of clean forwards over the
same text than clean forwards lie from each other.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import torch
from torch import Tensor
from transformers import LogitsProcessor

from . import names
from .loop import Lookahead
from .noise import clean_logits, distance, resolution
from .rule import Rule
from .witness import Forwards, Sight, Witness

__all__ = ["BUG", "EQUAL", "NEAR_TIE", "Finding", "Reading", "Token", "check"]

EQUAL, NEAR_TIE, BUG = "equal", "near-tie", "bug"
_CONTEXT = 24  # tokens shown before a difference
_CLEARLY = 2.0  # the noise is the greatest of a handful of measurements; what lies above twice that is something else
_OURS = ("custom_generate", "streamer", "return_dict_in_generate", "num_return_sequences", "inputs", "input_ids")
_STATEFUL = ("logits_processor", "stopping_criteria", "guidance_scale")


@dataclass(frozen=True)
class Token:
    """A token as it stands in an output."""

    id: int
    text: str


@dataclass(frozen=True)
class Reading:
    """What one forward says of the position where two outputs part.

    Attributes
    ----------
    forward : str
        What was fed, and how.
    vanilla, lookahead : float
        The logits of generate's token and of lookahead's.
    chosen : Token
        The token that these logits choose.
    margin : float
        How far the chosen token is ahead of the second one. With sampling each token counts with what the draw adds to
        it, so this is how far the draw lies from the border; in units of logits too.
    """

    forward: str
    vanilla: float
    lookahead: float
    chosen: Token
    margin: float


@dataclass(frozen=True)
class Finding:
    """What came of one prompt.

    Attributes
    ----------
    prompt : int
        Number of the prompt, from 0.
    verdict : str
        ``"equal"``, ``"near-tie"`` or ``"bug"``.
    reason : str
        The verdict in a sentence.
    tokens, forwards, accepted : int
        Tokens of generate's output; forwards of lookahead, and the draft tokens that it accepted.
    position : int or None
        Number of the first token that differs, from 0; this and the rest only where one does.
    context : str
        The end of the text before it.
    vanilla, lookahead : Token or None
        The token of each; None where an output has ended.
    readings : tuple of Reading
        generate's forward over one token, lookahead's over several, then clean ones, that never rolled anything back.
    margin : float or None
        How far the two tokens lie apart: the lesser of generate's lead in its forward and lookahead's in its own.
    noise : float or None
        Greatest difference of the position's logits between generate's forward and clean ones.
    deviation : float or None
        Difference of lookahead's logits from the nearest of these.
    """

    prompt: int
    verdict: str
    reason: str
    tokens: int
    forwards: int
    accepted: int
    position: int | None = None
    context: str = ""
    vanilla: Token | None = None
    lookahead: Token | None = None
    readings: tuple[Reading, ...] = ()
    margin: float | None = None
    noise: float | None = None
    deviation: float | None = None


def check(
    model: Any,
    tokenizer: Any,
    prompts: Sequence[str | Sequence[int]],
    *,
    seed: int = 0,
    options: dict[str, Any] | None = None,
    **settings: Any,
) -> list[Finding]:
    """Generate without and with lookahead, and explain the first difference of each prompt.

    Parameters
    ----------
    model : PreTrainedModel
        The model.
    tokenizer : PreTrainedTokenizerBase or None
        Its tokenizer; without one the prompts are token ids.
    prompts : sequence of str or of int [length]
        Texts as they are (no chat template is applied), or token ids.
    seed : int
        Seed of both generations of each prompt.
    options : dict, optional
        The fields of `Options` for lookahead.
    **settings
        What ``model.generate`` takes: ``max_new_tokens``, ``do_sample``, ``temperature`` ...

    Returns
    -------
    list of Finding
        One for each prompt.

    Raises
    ------
    ValueError
        For settings that cannot be compared, an empty prompt, or one that is too long for the model.
    """
    _refuse_settings(settings)
    settings = {"max_new_tokens": 256, **settings}
    rows = [_encoded(model, tokenizer, prompt, number) for number, prompt in enumerate(prompts)]
    for number, row in enumerate(rows):
        _refuse_length(model, row, number, settings["max_new_tokens"])
    comparison = _Comparison(model, tokenizer, seed, options or {}, settings)
    return [comparison.finding(number, row) for number, row in enumerate(rows)]


def _refuse_settings(settings: dict[str, Any]) -> None:
    """Refuse what the check sets itself, and what cannot be asked twice for the same position."""
    for name in (*_OURS, *_STATEFUL):
        if settings.get(name) is not None:
            why = "is set by the check itself" if name in _OURS else "may keep a state, and cannot be asked again"
            raise ValueError(
                f"{name} {why}; leave it out, and compare the outputs of generate yourself where you need it"
            )


def _encoded(model: Any, tokenizer: Any, prompt: str | Sequence[int], number: int) -> list[int]:
    """Return a prompt's ids."""
    if isinstance(prompt, str):
        if tokenizer is None:
            raise ValueError(f"prompt {number + 1} is a text, which needs the tokenizer; give one, or give token ids")
        ids: list[int] = tokenizer(prompt)["input_ids"] if prompt else []
    else:
        ids = [int(token) for token in prompt]
    if not ids:
        raise ValueError(f"prompt {number + 1} is empty; a prompt needs one token at least")
    return ids


def _refuse_length(model: Any, ids: list[int], number: int, new: int) -> None:
    """Refuse a prompt that, with its answer, passes the model's positions."""
    positions = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    if positions is not None and len(ids) + new > positions:
        room = positions - len(ids)
        what = f"allow {room} new tokens at most" if room > 0 else "shorten the prompt"
        raise ValueError(
            f"prompt {number + 1} has {len(ids)} tokens and {new} new ones may follow, but the model has {positions} "
            f"positions; {what}"
        )


class _Watched(Lookahead):
    """Lookahead that tells by what its tokens are chosen."""

    forwards: Forwards
    processors: Any
    config: Any

    def __call__(
        self,
        model: Any,
        input_ids: Tensor,
        logits_processor: Any,
        stopping_criteria: Any,
        generation_config: Any,
        *given: Any,
        **kwargs: Any,
    ) -> Any:
        """Decode as `Lookahead` does."""
        self.processors, self.config = logits_processor, generation_config
        self.forwards.cache = kwargs.get(names.cache_name())
        return super().__call__(
            model, input_ids, logits_processor, stopping_criteria, generation_config, *given, **kwargs
        )


class _Reached(Exception):
    """Plain decoding has come to the position of interest."""


class _Forced(LogitsProcessor):  # type: ignore[misc, unused-ignore]
    """Makes plain decoding write a known text, and ends it there."""

    def __init__(self, known: list[int]) -> None:
        self._known = known

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """Return scores, float32 [1, vocabulary], that leave one token."""
        at = input_ids.shape[1]
        if at == len(self._known):
            raise _Reached
        forced = torch.full_like(scores, -torch.inf)
        forced[:, self._known[at]] = 0.0
        return forced


class _Comparison:
    """One model and its settings, for many prompts."""

    def __init__(
        self, model: Any, tokenizer: Any, seed: int, options: dict[str, Any], settings: dict[str, Any]
    ) -> None:
        self._model = model
        self._tokenizer = tokenizer
        self._seed = seed
        self._settings = settings
        self._ahead = _Watched(tokenizer, **options)

    def finding(self, number: int, prompt: list[int]) -> Finding:
        """Run both, and explain where they part."""
        vanilla = self._plain(prompt)
        with Forwards(self._model) as forwards:
            self._ahead.forwards = forwards
            witness = Witness(forwards, vanilla)
            torch.manual_seed(self._seed)
            output = self._ahead.generate(self._model, **self._inputs(prompt), **self._settings, streamer=witness)
        ours = output[0, len(prompt) :].tolist()
        stats = self._ahead.stats
        found = Finding(number, EQUAL, "The outputs are equal.", len(vanilla), stats.forwards, stats.accepted)
        if ours == vanilla:
            return found
        at = next((at for at, (one, other) in enumerate(zip(vanilla, ours, strict=False)) if one != other), None)
        at = min(len(vanilla), len(ours)) if at is None else at
        found = replace(found, position=at, vanilla=self._token(vanilla, at), lookahead=self._token(ours, at))
        found = replace(found, context=self._text([*prompt, *ours[:at]][-_CONTEXT:]))
        if at in (len(vanilla), len(ours)):
            return replace(found, verdict=BUG, reason="One output ends where the other goes on.")
        if witness.sight is None or witness.sight.position != at:
            return replace(found, verdict=BUG, reason="A streamer hears other tokens than are returned.")
        return self._explained(found, prompt, prompt + ours[:at], witness.sight, forwards.widest)

    def _explained(self, found: Finding, prompt: list[int], known: list[int], sight: Sight, widest: int) -> Finding:
        """Look at the position in several ways, and judge."""
        assert found.vanilla and found.lookahead
        ours, state = f"{len(sight.fed)} tokens (lookahead)", sight.state
        plain, plain_state = self._forced(prompt, known)
        others = list((Counter(sight.fed) - Counter(known[len(known) - len(sight.accepted) - 1 :])).elements())
        step, others = (1, []) if found.position == 0 else (len(sight.accepted) + 1, others)
        clean = clean_logits(self._model, known, len(prompt), step, others, widest)
        seen = {"1 token (generate)": plain, ours: sight.logits, **clean}
        config = self._ahead.config
        ids = torch.tensor([known], device=self._model.device)
        rule = Rule(self._ahead.processors, ids, config.temperature if config.do_sample else None, state)
        pair = found.vanilla.id, found.lookahead.id
        leads = [float(heights[pair[0]] - heights[pair[1]]) for heights in map(rule.heights, (plain, sight.logits))]
        steady = [plain, *clean.values()]
        found = replace(
            found,
            readings=tuple(self._reading(name, logits, rule, pair) for name, logits in seen.items()),
            margin=max(0.0, min(leads[0], -leads[1])),
            noise=max(resolution(self._model, plain), *(distance(*two) for two in combinations(steady, 2))),
            deviation=min(distance(sight.logits, logits) for logits in steady),
        )
        return _judged(found, sight, rule.choose(sight.logits), torch.equal(state, plain_state))

    def _reading(self, name: str, logits: Tensor, rule: Rule, pair: tuple[int, int]) -> Reading:
        """Return what some logits say of two tokens."""
        first, second = rule.heights(logits).topk(2).values.tolist()
        chosen = rule.choose(logits)
        return Reading(
            forward=name,
            vanilla=float(logits[pair[0]]),
            lookahead=float(logits[pair[1]]),
            chosen=Token(chosen, self._text([chosen])),
            margin=first - second,
        )

    def _plain(self, prompt: list[int]) -> list[int]:
        """Return what `generate` gives."""
        torch.manual_seed(self._seed)
        settings = dict(self._settings)
        if settings.get("stop_strings"):
            settings["tokenizer"] = self._tokenizer
        output = self._model.generate(**self._inputs(prompt), **settings)
        tokens: list[int] = output[0, len(prompt) :].tolist()
        return tokens

    def _forced(self, prompt: list[int], known: list[int]) -> tuple[Tensor, Tensor]:
        """Return the logits and the random generator with which `generate` chooses the token behind a text."""
        torch.manual_seed(self._seed)
        settings = {**self._settings, "stop_strings": None, "logits_processor": [_Forced(known)]}
        with Forwards(self._model) as forwards, contextlib.suppress(_Reached):
            self._model.generate(**self._inputs(prompt), **settings)
        return forwards.logits[-1].to(self._model.device, torch.float32, copy=True), forwards.state

    def _inputs(self, prompt: list[int]) -> dict[str, Tensor]:
        """Return the model's inputs for a prompt."""
        ids = torch.tensor([prompt], device=self._model.device)
        return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}

    def _token(self, tokens: list[int], at: int) -> Token | None:
        """Return a token with its text, None behind the last one."""
        return Token(tokens[at], self._text(tokens[at : at + 1])) if at < len(tokens) else None

    def _text(self, tokens: list[int]) -> str:
        """Return the text of some tokens, empty without a tokenizer."""
        return str(self._tokenizer.decode(tokens)) if self._tokenizer is not None else ""


def _judged(found: Finding, sight: Sight, chosen: int, draws_agree: bool) -> Finding:
    """Return the finding with its verdict: a near-tie if nothing else can explain the difference."""
    assert found.lookahead and found.margin is not None and found.noise is not None and found.deviation is not None
    allowed = _CLEARLY * found.noise
    if sight.row is None:
        bug = "Lookahead's forward was not over the tokens that it emitted."
    elif not draws_agree:
        bug = "Lookahead drew more or fewer random numbers than generate before this token."
    elif chosen != found.lookahead.id:
        bug = "Lookahead's token is not the one that the logits of its own forward choose."
    elif found.deviation > allowed:
        bug = "The logits of lookahead's forward lie clearly further from clean ones than these from each other."
    elif allowed < found.margin < float("inf"):
        bug = "The two tokens lie clearly further apart than the noise."
    else:
        return replace(found, verdict=NEAR_TIE, reason="The two tokens lie closer together than the noise can tell.")
    return replace(found, verdict=BUG, reason=bug)

"""Compares the outputs with and without lookahead, and tells a near-tie of the arithmetic from a bug.

Greedy or drawn, a token is the maximum of something: of the processed logits, or of these plus what the random
generator adds to each token (the Gumbel-max trick). So one rule serves both. Lookahead is right if its token is the
maximum behind the logits that its own forward gave, and if these lie no further from those of clean forwards over the
same text than clean forwards lie from each other.
"""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import torch
from torch import Tensor
from transformers import LogitsProcessor

from . import names
from .finding import BUG, EQUAL, Finding, Reading, Token, judge
from .loading import room_behind
from .loop import Lookahead
from .noise import clean_logits, distance, resolution
from .rule import Rule
from .witness import Forwards, Sight, Witness

__all__ = ["check"]

_CONTEXT = 24  # tokens shown before a difference
_OURS = ("custom_generate", "streamer", "return_dict_in_generate", "num_return_sequences", "inputs", "input_ids")
_UNREPEATABLE = ("logits_processor", "stopping_criteria", "guidance_scale", "max_time")


def check(
    model: Any,
    tokenizer: Any,
    prompts: Sequence[str | Sequence[int]],
    *,
    seed: int = 0,
    options: dict[str, Any] | None = None,
    on_finding: Callable[[Finding], None] | None = None,
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
    on_finding : callable, optional
        ``on_finding(finding)``, called as soon as a prompt is done.
    **settings
        What ``model.generate`` takes: ``max_new_tokens``, ``do_sample``, ``temperature`` ...

    Returns
    -------
    list of Finding
        One for each prompt.

    Raises
    ------
    ValueError
        For settings that cannot be compared, no prompts, an empty prompt, or one that is too long for the model.
    """
    _refuse_settings(settings)
    if isinstance(prompts, str):
        raise ValueError("got one text for prompts; allowed is a sequence of them: put it into a list")
    if len(prompts) == 0:
        raise ValueError("got no prompts; allowed is a sequence of one and more texts or rows of token ids")
    settings = {"max_new_tokens": 256, **settings}
    rows = [_encoded(model, tokenizer, prompt, number) for number, prompt in enumerate(prompts)]
    for number, row in enumerate(rows, 1):
        room_behind(model, f"prompt {number}", len(row), settings["max_new_tokens"])
    comparison = _Comparison(model, tokenizer, seed, options or {}, settings)
    findings = list[Finding]()
    for number, row in enumerate(rows):
        findings.append(comparison.finding(number, row))
        if on_finding is not None:
            on_finding(findings[-1])
    return findings


def _refuse_settings(settings: dict[str, Any]) -> None:
    """Refuse what the check sets itself, and what cannot be asked twice for the same position."""
    for name in (*_OURS, *_UNREPEATABLE):
        if settings.get(name) is not None:
            why = "is set by the check itself" if name in _OURS else "may say something else when it is asked again"
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
        shape = list(torch.as_tensor(prompt).shape)
        if len(shape) != 1:
            raise ValueError(f"prompt {number + 1} has shape {shape}; allowed is one row of token ids, [length]")
        ids = [int(token) for token in prompt]
    if not ids:
        raise ValueError(f"prompt {number + 1} is empty; a prompt needs one token at least")
    return ids


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
        found = Finding(number, EQUAL, "The outputs are equal.", len(ours), stats.forwards, stats.accepted)
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
        ours = f"{len(sight.fed)} tokens (lookahead)"
        plain, plain_state = self._forced(prompt, known)
        others = list((Counter(sight.fed) - Counter(known[len(known) - len(sight.accepted) - 1 :])).elements())
        step, others = (1, []) if found.position == 0 else (len(sight.accepted) + 1, others)
        clean = clean_logits(self._model, known, len(prompt), step, others, widest)
        seen = {"1 token (generate)": plain, ours: sight.logits, **clean}
        config = self._ahead.config
        ids = torch.tensor([known], device=self._model.device)
        rule = Rule(self._ahead.processors, ids, config.temperature if config.do_sample else None, sight.state)
        pair = found.vanilla.id, found.lookahead.id
        steady = [plain, *clean.values()]
        found = replace(
            found,
            readings=tuple(self._reading(name, logits, rule, pair) for name, logits in seen.items()),
            margin=_margin(rule.heights(plain), rule.heights(sight.logits), pair),
            noise=max(resolution(self._model, plain), *(distance(*two) for two in combinations(steady, 2))),
            deviation=min(distance(sight.logits, logits) for logits in steady),
        )
        is_own_text = sight.row is not None
        return judge(found, rule.choose(sight.logits), is_own_text, torch.equal(sight.state, plain_state))

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


def _margin(plain: Tensor, ours: Tensor, pair: tuple[int, int]) -> float | None:
    """Return how far two tokens are apart, in heights, float32 [vocabulary]; None where one of them has none."""
    leads = [float(heights[pair[0]] - heights[pair[1]]) for heights in (plain, ours)]
    return min(map(abs, leads)) if all(map(math.isfinite, leads)) else None

"""Drafters of transformers for where the index has nothing: assistant models, early exit and the like."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from transformers import LogitsProcessorList, PreTrainedModel
from transformers.generation.candidate_generator import CandidateGenerator

from ..tree import Accepted, Draft
from . import names
from .handing import Handing

__all__ = ["Fallback", "check_fallback"]

_ENOUGH = 0.5  # tokens that the index is expected to gain; with less the fallback is asked
_ALLOWED = (
    "a model (an assistant with the same tokenizer, or one that reads the target's states), 'mtp' for heads of the "
    "target's own, a pair (model, tokenizer) of an assistant with another tokenizer, a CandidateGenerator, or a "
    "function that makes one: fallback(model=, input_ids=, logits_processor=, generation_config=, model_kwargs=)"
)


def check_fallback(fallback: Any) -> None:
    """Raise ValueError for what cannot draft."""
    if isinstance(fallback, tuple) and len(fallback) == 2 and isinstance(fallback[0], PreTrainedModel):
        return
    if fallback is None or isinstance(fallback, PreTrainedModel | CandidateGenerator) or callable(fallback):
        return
    if fallback == names.OWN_HEADS:
        return
    raise ValueError(f"fallback={fallback!r} cannot draft; allowed is {_ALLOWED}")


class Fallback:
    """One call's other drafter.

    Its drafts are chains. When sampling, tokens that it drew come with their distribution, and are accepted by the
    general rule; the output is distributed as without them, but draws come in another order, so a seed gives other
    tokens than plain decoding's.

    Parameters
    ----------
    fallback
        What `check_fallback` let pass.
    tokenizer : PreTrainedTokenizerBase or None
        The target's.
    call : dict
        The arguments that stock generators are made of, before the prompt has run: ``input_ids`` int64 [1, length],
        ``model``, ``logits_processor``, ``generation_config`` and ``model_kwargs``.

    Attributes
    ----------
    wanted : dict
        Keywords that the target's forwards are to be given, so that their outputs hold what it drafts from.
    """

    def __init__(self, fallback: Any, tokenizer: Any, call: dict[str, Any]) -> None:
        self._fallback, self._tokenizer, self._call = fallback, tokenizer, call
        self._generator: Any = None
        self._handing: Handing | None = None
        self.wanted: dict[str, Any] = {}
        if names.reads_states(fallback):  # others are made when they are asked, of the arguments as they stand then
            self._generator = self._made(call)
            self._handing = Handing(self._generator)
            self.wanted = self._handing.wanted(call["model_kwargs"])
        self._asked = False

    def propose(self, draft: Draft, budget: int, ids: torch.Tensor, model_kwargs: dict[str, Any]) -> Draft:
        """Return the index's draft where it promises enough, else a chain of at most `budget` tokens of our own.

        Parameters
        ----------
        draft : Draft
            The index's.
        budget : int
            Most tokens.
        ids : int64 [1, length]
            The known tokens.
        model_kwargs : dict
            What the target is given besides them in its next forward.
        """
        self._asked = budget > 0 and float(draft.probs.sum()) < _ENOUGH
        if self._asked and self._handing is not None:
            self._asked = self._handing.is_complete(ids.shape[1])
        if not self._asked:
            return draft
        if self._generator is None:
            self._generator = self._made({**self._call, "input_ids": ids, "model_kwargs": model_kwargs})
        states = {} if self._handing is None else self._handing.give(model_kwargs)
        candidates, logits = self._generator.get_candidates(ids, **states)
        chain = Draft.chain(candidates[0, ids.shape[1] :].cpu().numpy()[:budget], source="fallback")
        if (
            logits is None
            or not self._call["generation_config"].do_sample
            or not len(chain)
            or names.takes_maxima(self._generator)
        ):
            return chain
        drawn_from = torch.softmax(logits[0, : len(chain)].float(), dim=-1)
        return replace(chain, drawn_from=drawn_from)

    def _made(self, call: dict[str, Any]) -> Any:
        """Return the generator for a call; processors that keep a state hear nothing of its drafts."""
        if isinstance(self._fallback, CandidateGenerator):
            return self._fallback
        blind = [one for one in call["logits_processor"] if names.is_row_wise(one)]
        call = {**call, "logits_processor": LogitsProcessorList(blind)}
        if isinstance(self._fallback, PreTrainedModel | tuple) or self._fallback == names.OWN_HEADS:
            return names.candidate_generator(self._fallback, self._tokenizer, call)
        made = self._fallback(**call)
        if getattr(made, "requires_model_outputs", False) and not names.reads_states(self._fallback):
            raise ValueError(
                f"{type(made).__name__} drafts from the target's states, but the function that made it does not say so "
                "before the prompt is run; set requires_model_outputs = True on the function, too"
            )
        return made

    def prompt(self, outputs: Any) -> None:
        """Keep of the prompt's outputs what the generator drafts from."""
        if self._handing is not None:
            self._handing.prompt(outputs)

    def step(self, outputs: Any, before: int, rows: list[int]) -> None:
        """Keep it of the rows of a forward that were emitted, counted from `before`."""
        if self._handing is not None:
            self._handing.step(outputs, before, rows)

    def hear(self, ids: torch.Tensor, draft: Draft, accepted: Accepted) -> None:
        """Tell the generator what became of its draft."""
        if self._asked:
            scores = torch.empty(1, len(draft) + 1, 0)
            self._generator.update_candidate_strategy(ids, scores, len(accepted.path))

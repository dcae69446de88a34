"""Drafters of transformers for where the index has nothing: assistant models, early exit and the like."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from transformers import LogitsProcessorList, PreTrainedModel
from transformers.generation.candidate_generator import CandidateGenerator

from ..tree import Accepted, Draft
from . import names

__all__ = ["Fallback", "check_fallback"]

_ENOUGH = 0.5  # tokens that the index is expected to gain; with less the fallback is asked
_ALLOWED = (
    "a model (an assistant with the same tokenizer), a pair (model, tokenizer) of an assistant with another one, a "
    "CandidateGenerator, or a function that makes one: fallback(model=, input_ids=, logits_processor=, "
    "generation_config=, model_kwargs=)"
)


def check_fallback(fallback: Any) -> None:
    """Raise ValueError for what cannot draft."""
    if isinstance(fallback, tuple) and len(fallback) == 2 and isinstance(fallback[0], PreTrainedModel):
        return
    if fallback is None or isinstance(fallback, PreTrainedModel | CandidateGenerator) or callable(fallback):
        return
    raise ValueError(f"fallback={fallback!r} cannot draft; allowed is {_ALLOWED}")


class Fallback:
    """One call's other drafter.

    Its drafts are chains. When sampling, tokens that it drew come with their distribution, and are accepted by the
    general rule; the output is distributed as without them, but draws come in another order, so a seed gives other
    tokens than plain decoding's.
    """

    def __init__(self, fallback: Any, tokenizer: Any, do_sample: bool) -> None:
        self._fallback, self._tokenizer, self._do_sample = fallback, tokenizer, do_sample
        self._generator: Any = None
        self._asked = False

    def propose(self, draft: Draft, budget: int, call: dict[str, Any]) -> Draft:
        """Return the index's draft where it promises enough, else a chain of at most `budget` tokens of our own.

        `call` are the arguments that stock generators are made of, as they stand: ``input_ids`` int64 [1, length],
        ``model``, ``logits_processor``, ``generation_config`` and ``model_kwargs``.
        """
        self._asked = budget > 0 and float(draft.probs.sum()) < _ENOUGH
        if not self._asked:
            return draft
        if self._generator is None:
            self._generator = self._made(call)
        ids = call["input_ids"]
        candidates, logits = self._generator.get_candidates(ids)
        chain = Draft.chain(candidates[0, ids.shape[1] :].cpu().numpy()[:budget], source="fallback")
        if logits is None or not self._do_sample or not len(chain):
            return chain
        drawn_from = torch.softmax(logits[0, : len(chain)].float(), dim=-1)
        return replace(chain, drawn_from=drawn_from)

    def _made(self, call: dict[str, Any]) -> Any:
        """Return the generator for a call; processors that keep a state hear nothing of its drafts."""
        if isinstance(self._fallback, CandidateGenerator):
            made: Any = self._fallback
        else:
            blind = [one for one in call["logits_processor"] if names.is_row_wise(one)]
            call = {**call, "logits_processor": LogitsProcessorList(blind)}
            is_assistant = isinstance(self._fallback, PreTrainedModel | tuple)
            made = names.candidate_generator(self._fallback, self._tokenizer, call) if is_assistant else None
            made = made or self._fallback(**call)
        if getattr(made, "requires_model_outputs", False):
            raise ValueError(
                f"{type(made).__name__} drafts from the target's hidden states, which is not supported as a fallback; "
                f"allowed is {_ALLOWED}"
            )
        return made

    def hear(self, ids: torch.Tensor, draft: Draft, accepted: Accepted) -> None:
        """Tell the generator what became of its draft."""
        if self._asked:
            scores = torch.empty(1, len(draft) + 1, 0)
            self._generator.update_candidate_strategy(ids, scores, len(accepted.path))

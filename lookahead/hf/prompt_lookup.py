"""Stock prompt lookup behind the calls of `lookahead.Drafter`, to compare with."""

from __future__ import annotations

from typing import Any

import torch
from transformers.generation.candidate_generator import PromptLookupCandidateGenerator
from transformers.generation.logits_process import LogitsProcessorList

from ..tree import Accepted, Draft

__all__ = ["PromptLookup"]


class PromptLookup:
    """Stock prompt lookup of transformers, its own class.

    Parameters
    ----------
    vocabulary : int
        The size of the model's vocabulary: for each token that it drafts, the class fills and reads as many logits.
    tokens, ngram : int
        ``prompt_lookup_num_tokens`` and ``max_matching_ngram_size``, by themselves the documented defaults.
    """

    def __init__(self, vocabulary: int, tokens: int = 10, ngram: int = 2) -> None:
        self._generator = PromptLookupCandidateGenerator(
            eos_token_id=None,
            num_output_tokens=tokens,
            max_matching_ngram_size=ngram,
            max_length=2**30,
            logits_processor=LogitsProcessorList(),
            vocab_size=vocabulary,
        )
        self._ids: Any = torch.empty(1, 0, dtype=torch.long)

    def begin(self, prompt: list[int]) -> None:
        """Start a sequence."""
        self._ids = torch.tensor([prompt])

    def propose(self, budget: int) -> Draft:
        """Draft a chain."""
        found, _ = self._generator.get_candidates(self._ids)
        return Draft.chain(found[0, self._ids.shape[1] :][:budget].numpy())

    def accept(self, accepted: Accepted) -> None:
        """Take in what was said."""
        self._ids = torch.cat([self._ids, torch.tensor([accepted.tokens])], dim=1)

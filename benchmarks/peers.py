"""Other drafters behind the calls of `lookahead.Drafter`, so that all replay the same stream."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import torch
from transformers.generation.candidate_generator import PromptLookupCandidateGenerator
from transformers.generation.logits_process import LogitsProcessorList

from lookahead.tree import Accepted, Draft

__all__ = ["Arctic", "PromptLookup"]


class PromptLookup:
    """Stock prompt lookup of transformers, its own class."""

    def __init__(self, tokens: int = 10, ngram: int = 2) -> None:
        self._generator = PromptLookupCandidateGenerator(
            eos_token_id=None,
            num_output_tokens=tokens,
            max_matching_ngram_size=ngram,
            max_length=2**30,
            logits_processor=LogitsProcessorList(),
            vocab_size=2**20,
        )
        self._ids = torch.empty(1, 0, dtype=torch.long)

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


class Arctic:
    """Arctic's suffix decoding (arctic-inference 0.3.0), its own cache; one request, nothing cached of others."""

    installed = importlib.util.find_spec("arctic_inference") is not None

    def __init__(self, factor: float = 4.0, tree: bool = False, depth: int = 64) -> None:
        from arctic_inference.suffix_decoding import SuffixDecodingCache

        self._cache: Any = SuffixDecodingCache(max_tree_depth=depth, max_cached_requests=0)
        self._factor, self._tree, self._depth = factor, tree, depth
        self._ids: list[int] = []

    def begin(self, prompt: list[int]) -> None:
        """Start a request; the one before is dropped."""
        for request in list(self._cache.active_requests):
            self._cache.stop_request(request)
        self._ids = list(prompt)
        self._cache.start_request(0, np.asarray(prompt, np.int32))

    def propose(self, budget: int) -> Draft:
        """Draft a chain or a tree."""
        draft = self._cache.speculate(
            0,
            np.asarray(self._ids[-self._depth :], np.int32),
            max_spec_tokens=budget,
            max_spec_factor=self._factor,
            min_token_prob=0.1,
            use_tree_spec=self._tree,
        )
        return Draft(
            tokens=np.asarray(draft.token_ids, np.int32),
            parents=np.asarray(draft.parents, np.int32),
            probs=np.asarray(draft.probs, np.float32),
            sources=("arctic",) * len(draft.token_ids),
        )

    def accept(self, accepted: Accepted) -> None:
        """Take in what was said."""
        self._ids += accepted.tokens
        self._cache.add_active_response(0, np.asarray(accepted.tokens, np.int32))

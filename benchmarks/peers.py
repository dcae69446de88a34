"""Other drafters behind the calls of `lookahead.Drafter`, so that all replay the same stream."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from transformers.generation.candidate_generator import PromptLookupCandidateGenerator
from transformers.generation.logits_process import LogitsProcessorList

from lookahead.bench.ngrams import Ngrams
from lookahead.tree import Accepted, Draft

__all__ = ["Arctic", "ArcticMemory", "PromptLookup", "peers", "quick"]


def peers(budget: int, vocabulary: int) -> dict[str, dict[str, Callable[[], Any]]]:
    """Return for each peer its documented defaults first, then the other settings that are worth a try."""
    lookups: dict[str, Callable[[], Any]] = {"10, n=2": partial(PromptLookup, vocabulary, 10, 2)}
    lookups |= {f"{budget}, n={n}": partial(PromptLookup, vocabulary, budget, n) for n in (2, 3, 5, 10)}
    ngrams: dict[str, Callable[[], Any]] = {
        f"n={least}-{most}": partial(Ngrams, least, most) for least, most in ((5, 5), (1, 5), (2, 5), (3, 5), (3, 10))
    }
    found = {"prompt lookup": lookups, "vLLM n-gram": ngrams}
    if Arctic.installed:
        # A match and what is drafted from it fit into the depth together, hence the deeper trees.
        found["Arctic"] = {"factor 1": Arctic} | {
            f"factor {factor}, depth {depth}{', tree' if tree else ''}": partial(Arctic, factor, tree, depth)
            for factor in (1, 2, 4)
            for depth in sorted({64, 2 * budget})
            for tree in (False, True)
        }
        # The others keep nothing of other requests; with the global tree outputs serve all later ones.
        found["Arctic"] |= {
            f"factor {factor}, depth {depth}, global tree": partial(_remembering, factor, depth)
            for factor in (1, 2, 4)
            for depth in sorted({64, 2 * budget})
        }
    return found


def quick(make: Callable[[], Any]) -> Callable[[], Any]:
    """Return what drafts the same in less time: prompt lookup written anew, anything else as it is."""
    if isinstance(make, partial) and make.func is PromptLookup:
        _, tokens, ngram = make.args
        return partial(Ngrams, 1, ngram, tokens)
    return make


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
    """Arctic's suffix decoding (arctic-inference 0.3.0), its own cache; keeps nothing of other requests."""

    installed = importlib.util.find_spec("arctic_inference") is not None

    def __init__(self, factor: float = 1.0, tree: bool = False, depth: int = 64, cache: Any = None) -> None:
        self._cache = _arctic_cache(depth, 0) if cache is None else cache
        self._factor, self._tree, self._depth = factor, tree, depth
        self._request, self._ids = 0, list[int]()

    def begin(self, prompt: list[int]) -> None:
        """Start a request; the one before has ended."""
        self.end()
        known = (*self._cache.active_requests, *self._cache.cached_requests)
        self._request, self._ids = max(known, default=-1) + 1, list(prompt)
        self._cache.start_request(self._request, np.asarray(prompt, np.int32))

    def end(self) -> None:
        """End the request."""
        if self._request in self._cache.active_requests:
            self._cache.stop_request(self._request)

    def propose(self, budget: int) -> Draft:
        """Draft a chain or a tree."""
        draft = self._cache.speculate(
            self._request,
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
        self._cache.add_active_response(self._request, np.asarray(accepted.tokens, np.int32))


class ArcticMemory:
    """Arctic's suffix decoding with its global tree, which keeps the outputs of all requests."""

    def __init__(self, factor: float = 1.0, tree: bool = False, depth: int = 64) -> None:
        self._settings, self._cache = (factor, tree, depth), _arctic_cache(depth, -1)

    def drafter(self) -> Arctic:
        """Return the drafter of the next request."""
        return Arctic(*self._settings, cache=self._cache)


def _remembering(factor: float, depth: int) -> Arctic:
    """Return a drafter with a global tree of its own."""
    return ArcticMemory(factor, depth=depth).drafter()


def _arctic_cache(depth: int, requests: int) -> Any:
    """Return a cache of Arctic's; a negative number of cached requests sets no limit."""
    from arctic_inference.suffix_decoding import SuffixDecodingCache

    return SuffixDecodingCache(max_tree_depth=depth, max_cached_requests=requests)

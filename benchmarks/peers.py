"""Other drafters behind the calls of `lookahead.Drafter`, so that all replay the same stream."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from lookahead.bench.copy_limit import letters
from lookahead.hf.prompt_lookup import PromptLookup
from lookahead.tree import Accepted, Draft

__all__ = ["Arctic", "ArcticMemory", "Ngram", "peers"]


def peers(budget: int, vocabulary: int) -> dict[str, dict[str, Callable[[], Any]]]:
    """Return for each peer its documented defaults first, then the other settings that are worth a try."""
    lookups: dict[str, Callable[[], Any]] = {"10, n=2": partial(PromptLookup, vocabulary)}
    lookups |= {f"{budget}, n={n}": partial(PromptLookup, vocabulary, budget, n) for n in (2, 3, 5, 10)}
    ngrams: dict[str, Callable[[], Any]] = {
        f"n={least}-{most}": partial(Ngram, least, most) for least, most in ((5, 5), (1, 5), (2, 5), (3, 5), (3, 10))
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
    return found


class Ngram:
    """The n-gram rule of vLLM (v1/spec_decode/ngram_proposer.py), written anew.

    It takes the longest end of the text, of `least` to `most` tokens, that stands further ahead, where it does so
    first, and what follows there, as much as the budget takes.
    """

    def __init__(self, least: int = 5, most: int = 5) -> None:
        self._least, self._most, self._text = least, most, ""

    def begin(self, prompt: list[int]) -> None:
        """Start a sequence."""
        self._text = letters(prompt)

    def propose(self, budget: int) -> Draft:
        """Draft a chain."""
        for length in range(min(self._most, len(self._text) - 1), self._least - 1, -1):
            found = self._text.find(self._text[-length:], 0, -1)
            if found >= 0:
                start = found + length
                return Draft.chain([ord(letter) for letter in self._text[start : start + budget]])
        return Draft.empty()

    def accept(self, accepted: Accepted) -> None:
        """Take in what was said."""
        self._text += letters(accepted.tokens)


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


def _arctic_cache(depth: int, requests: int) -> Any:
    """Return a cache of Arctic's; a negative number of cached requests sets no limit."""
    from arctic_inference.suffix_decoding import SuffixDecodingCache

    return SuffixDecodingCache(max_tree_depth=depth, max_cached_requests=requests)

"""The same drafter behind the interface of transformers' stock assisted decoding."""

from __future__ import annotations

from typing import Any

import torch
from transformers.generation.candidate_generator import CandidateGenerator

from ..draft.drafter import Drafter

__all__ = ["LookaheadCandidateGenerator"]


class LookaheadCandidateGenerator(CandidateGenerator):
    """Drafts chains for people who drive the stock assisted loop themselves.

    The stock loop has no public argument for a generator of one's own; see the README for how it is handed over. What
    that loop does not keep exact (stop strings, stateful processors, seeds) it does not keep exact with this one.

    Parameters
    ----------
    tokenizer : PreTrainedTokenizerBase, optional
        The model's tokenizer.
    max_length : int, optional
        Length that no draft shall pass; the stock loop does not look after it.
    **options
        The fields of `Options`; ``tree`` is False here.
    """

    def __init__(self, tokenizer: Any = None, max_length: int | None = None, **options: Any) -> None:
        if options.setdefault("tree", False):
            raise ValueError(
                "tree=True is not possible here: the stock assisted loop verifies chains only; leave it out"
            )
        if max_length is not None and max_length < 1:
            raise ValueError(f"max_length={max_length} is out of range; allowed is 1 and above, or None for no limit")
        self._drafter = Drafter(tokenizer, **options)
        self._max_length = max_length
        self._known: list[int] = []

    def get_candidates(  # type: ignore[override]  # a copied token has no logits, which the stock loop knows as None
        self, input_ids: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, None]:
        """Return the sequence with a draft behind it.

        Parameters
        ----------
        input_ids : int64 [1, length]
            The sequence so far; what is new since the last call is taken in first.
        *args, **kwargs
            What some releases pass besides; not needed here.

        Returns
        -------
        int64 [1, length + n], and None since a copied token has no logits

        Raises
        ------
        ValueError
            For a batch.
        """
        if input_ids.shape[0] != 1:
            raise ValueError(f"a batch of {input_ids.shape[0]} is not supported, allowed is 1: loop over the rows")
        ids = input_ids[0].tolist()
        if self._known and ids[: len(self._known)] == self._known:
            self._drafter.accept(ids[len(self._known) :])
        else:
            self._drafter.begin(ids)
        self._known = ids
        room = None if self._max_length is None else max(0, self._max_length - len(ids) - 1)
        draft = self._drafter.propose(room)
        tokens = torch.from_numpy(draft.tokens).to(input_ids)
        return torch.cat([input_ids, tokens[None]], dim=-1), None

    def update_candidate_strategy(self, input_ids: torch.Tensor, scores: torch.Tensor, num_matches: int) -> None:
        """Do nothing: what was accepted shows in the next call's `input_ids`."""

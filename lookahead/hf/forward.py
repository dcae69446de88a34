"""One forward of the target model over the last known token and a draft."""

from __future__ import annotations

from typing import Any

import torch

from ..tree import Draft
from ..verify.attention import position_offsets, tree_mask
from ..verify.sequence import Sequence
from . import names
from .cache import Rollback

__all__ = ["Target"]

_WIDTHS = (1, 8, 32, 128)  # tokens of a forward over a static cache: a compiled model sees few shapes


class Target:
    """The model during one generation: its cache, its mask and its positions.

    `prefill` comes first, then `forward` and `keep` in turn; `outputs` are the model's outputs of the last of them.
    `tree_mask` is the type of the mask for branching drafts; it has to be set before the first of them. `before` says
    how many rows of the outputs stand before the last known token's.
    """

    def __init__(self, model: Any, generation_config: Any, model_kwargs: dict[str, Any]) -> None:
        self._model = model
        self._generation_config = generation_config
        self._kwargs = model_kwargs
        self.cache_name = names.cache_name()
        self._fed = self.before = 0
        self.outputs: Any = None
        self.tree_mask: torch.dtype | None = None

    @property
    def kwargs(self) -> dict[str, Any]:
        """What the model is given besides the ids."""
        return self._kwargs

    @property
    def cache(self) -> Any:
        """The model's cache."""
        return self._kwargs[self.cache_name]

    @property
    def is_plain(self) -> bool:
        """Whether the cache is what plain decoding makes, to the last bit: all behind the prompt was fed one by one."""
        return self._clean[0] is self._kwargs

    def want(self, more: dict[str, Any]) -> None:
        """Have every forward given more keywords, by which it returns more."""
        self._kwargs = {**self._kwargs, **more}

    def prefill(self, sequence: Sequence) -> torch.Tensor:
        """Run the prompt; return the logits behind its last token, [1, vocabulary]."""
        self.outputs = names.prefill(self._model, sequence.ids, self._generation_config, self._kwargs)
        self._kwargs = names.update_kwargs(self._model, self.outputs, self._kwargs, 1)
        self._rollback = Rollback(self.cache)
        self._call = names.decoding_call(self._model, self._kwargs, self._generation_config)
        self._clean = self._kwargs, len(sequence)
        return self._logits(1)

    def room(self) -> int:
        """Return the most draft tokens that the next forward may be fed."""
        return self._widest(self._rollback.room() - self._rollback.pending) - 1

    def _widest(self, free: int) -> int:
        """Return the most tokens that fit where `free` do."""
        return max([width for width in _WIDTHS if width <= free], default=0) if self._rollback.is_static else free

    def forward(self, sequence: Sequence, draft: Draft) -> torch.Tensor:
        """Run the last known token and the draft; return the logits behind each, [n + 1, vocabulary].

        Draft nodes stand in the cache until `keep` decides over them; none does after a forward that failed.
        """
        rows, ids = len(draft) + 1, sequence.drafted(draft)
        self._fed = min(width for width in _WIDTHS if width >= rows) if self._rollback.is_static else rows
        if self._fed > rows:
            ids = torch.cat([ids, ids[:, -1:].expand(-1, self._fed - rows)], dim=1)
        kwargs = self._extended(draft) if self._fed > 1 else self._kwargs
        self.before = self._rollback.pending
        self._rollback.before(len(draft) > 0)
        self._run(ids, self.before + self._fed, kwargs)
        return self._logits(self._fed)[:rows]

    def keep(self, nodes: list[int]) -> None:
        """Keep the last known token and these nodes of the draft in the cache, drop the others."""
        self._rollback.keep(self._fed, [0, *(node + 1 for node in nodes)])
        self._cached = self._kwargs, len(nodes)
        was_clean = self.is_plain
        self._kwargs = names.update_kwargs(self._model, self.outputs, self._kwargs, len(nodes) + 1)
        if was_clean and self._fed == 1:
            self._clean = self._kwargs, self._clean[1] + 1

    def refeed(self, sequence: Sequence) -> int:
        """Feed the known tokens but the last once more, those that were fed together one by one; return how many.

        The cache, one that can be cut anywhere, is then what plain decoding makes, to the last bit.
        """
        kwargs, length = self._clean
        behind = len(sequence) - 1 - length
        if behind <= 0:
            return 0
        self._rollback.keep(behind, [])
        self._fed = 1
        for known in range(length + 1, len(sequence)):
            self._run(sequence.ids[:, :known], 1, kwargs)
            kwargs = names.update_kwargs(self._model, self.outputs, kwargs, 1)
        self._kwargs, self._clean = kwargs, (kwargs, len(sequence) - 1)
        return behind

    def drop(self) -> None:
        """Keep nothing of the last forward, not even the last known token, which is fed again."""
        self._rollback.keep(self._fed, [])

    def settle(self, sequence: Sequence) -> None:
        """Bring a cache that is handed back up to the last token but one, as plain decoding leaves it."""
        if self._rollback.pending:
            kwargs, accepted = self._cached
            if accepted:
                kwargs = names.update_kwargs(self._model, self.outputs, kwargs, accepted)
            self._run(sequence.ids[:, :-1], self._rollback.pending, kwargs)
            self._rollback.pending = 0

    def _run(self, ids: torch.Tensor, tokens: int, kwargs: dict[str, Any]) -> None:
        """Feed the last `tokens` of `ids`."""
        inputs = names.prepare_inputs(self._model, ids, tokens, kwargs, self._fed)
        try:
            self.outputs = self._call(**inputs, return_dict=True)
        except BaseException:
            self._rollback.fail()
            raise

    def _logits(self, rows: int) -> torch.Tensor:
        """Return the last rows' logits; the first dimension is the batch of one."""
        logits: torch.Tensor = self.outputs.logits[0, -rows:]
        return logits

    def _extended(self, draft: Draft) -> dict[str, Any]:
        """Return the model's keywords with mask and positions for the draft; a tree brings its own of both."""
        kwargs = names.update_kwargs(self._model, self.outputs, self._kwargs, self._fed - 1)
        if self.tree_mask is not None and not draft.is_chain:
            self._branch(kwargs, draft, self.tree_mask)
        return kwargs

    def _branch(self, kwargs: dict[str, Any], draft: Draft, kind: torch.dtype) -> None:
        """Replace the chain's mask and positions by the tree's."""
        positions, rows = kwargs["position_ids"], len(draft) + 1
        offsets = position_offsets([draft]).to(positions.device)
        base = positions[..., -rows : positions.shape[-1] - rows + 1]
        kwargs["position_ids"] = torch.cat([positions[..., :-rows], base + offsets], dim=-1)
        past = self.cache.get_seq_length()
        mask = self._kwargs.get("attention_mask")
        seen = torch.ones(1, past, dtype=torch.bool, device=positions.device) if mask is None else mask[:, :past].bool()
        kwargs["attention_mask"] = tree_mask([draft], seen, kind)

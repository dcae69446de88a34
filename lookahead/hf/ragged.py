"""Forwards of a batch whose rows accept different numbers of tokens."""

from __future__ import annotations

from typing import Any

import torch
from transformers import DynamicCache

from ..tree import Draft
from ..verify.attention import position_offsets, tree_mask, within_window
from . import names
from .cache import keep_rows, shorten, slots

__all__ = ["RaggedTarget"]

_WASTE = 0.25  # share of dead slots from which on the cache is compacted


class RaggedTarget:
    """The model during one generation of several rows: its cache, and which of its slots count.

    All rows take the same number of slots in every forward. What a row does not need (padding of the prompt, the rest
    of a shorter draft, refused tokens) is a dead slot that the mask hides, so nothing is padded anew in each step; each
    row counts its own positions. Once a quarter of the slots are dead the live ones are moved together; what the mask
    of the prompt hides behind its first token keeps its slot, as in plain decoding. Sliding windows count slots, so
    layers that have one keep everything here, and the mask counts each row's tokens.

    `prefill` comes first, then `forward` and `keep` in turn. `tree_mask` is the type of the mask for branching drafts;
    it has to be set before the first of them; `beginnings` are the slots at which the prompts begin.
    """

    def __init__(self, model: Any, generation_config: Any, model_kwargs: dict[str, Any]) -> None:
        self._model = model
        self._generation_config = generation_config
        self._kwargs = model_kwargs
        self._outputs: Any = None
        self._live = self._masked = torch.empty(0, 0, dtype=torch.bool)
        self._positions: torch.Tensor | None = None
        self._fed, self._counts, self._prompts = 0, list[int](), list[int]()
        self.beginnings = list[int]()
        self.cache_name = names.cache_name()
        self.tree_mask: torch.dtype | None = None
        self._windows: dict[str | None, int | None] | None = None
        self._given = self.cache
        if not all(names.is_plain_layer(layer) for layer in self.cache.layers):
            self._kwargs[self.cache_name] = DynamicCache()  # keeps what a row's own window may still need
            self._windows, self._windows_mask = names.windows_by_mask(model), names.mask_dtype(model) or torch.bool

    @property
    def cache(self) -> Any:
        """The model's cache."""
        return self._kwargs[self.cache_name]

    def prefill(self, ids: torch.Tensor) -> torch.Tensor:
        """Run the prompts, int64 [rows, length]; return the logits behind their last tokens, [rows, vocabulary]."""
        mask = self._kwargs.get("attention_mask")
        self._outputs = names.prefill(self._model, ids, self._generation_config, self._kwargs)
        self._kwargs = names.update_kwargs(self._model, self._outputs, self._kwargs, 1)
        length = self.cache.get_seq_length()
        everything = torch.ones(len(ids), length, dtype=torch.bool, device=ids.device)
        shown = everything if mask is None else mask[:, :length].bool()
        self._live = shown.cumsum(dim=1) > 0
        self._masked = self._live & ~shown
        positions = self._kwargs.get("position_ids")
        self._positions = None if positions is None else positions[..., -1:]
        self._kwargs |= {"attention_mask": None, "position_ids": None}  # made anew for every forward
        self._counts = self._live.sum(dim=1).tolist()
        self._prompts = self._counts
        self.beginnings = (~self._live).sum(dim=1).tolist()
        logits: torch.Tensor = self._outputs.logits[:, -1]
        return logits

    def forward(self, tokens: list[int], drafts: list[Draft]) -> list[torch.Tensor]:
        """Run each row's last known token and draft; return the logits behind each, [n + 1, vocabulary] for a row.

        Drafts stand in the cache until `keep` decides over them.
        """
        self._fed = max(len(draft) for draft in drafts) + 1
        ids = torch.tensor([[token] * self._fed for token in tokens])
        for row, draft in zip(ids, drafts, strict=True):
            row[1 : len(draft) + 1] = torch.from_numpy(draft.tokens)
        kwargs = names.update_kwargs(self._model, self._outputs, self._kwargs, self._fed)
        if "cache_position" in kwargs:  # the slots, on releases that are told
            taken = self._live.shape[1]
            kwargs["cache_position"] = torch.arange(taken, taken + self._fed, device=self._live.device)
        if self._positions is not None:
            kwargs["position_ids"] = self._positions + position_offsets(drafts).to(self._positions.device)
        kwargs["attention_mask"] = self._mask(drafts)
        inputs = names.prepare_inputs(self._model, ids.to(self._live.device), self._fed, kwargs)
        self._outputs = self._model(**inputs, return_dict=True)
        logits = self._outputs.logits[:, -self._fed :]
        return [rows[: len(draft) + 1] for rows, draft in zip(logits, drafts, strict=True)]

    def _mask(self, drafts: list[Draft]) -> Any:
        """Return the mask: of every slot, int64 [rows, slots], or of every token and slot for trees and windows."""
        seen = self._live & ~self._masked
        if self._windows is not None:
            full = tree_mask(drafts, seen, self._windows_mask)
            masks = {
                name: full if window is None else within_window(full, drafts, self._live, window)
                for name, window in self._windows.items()
            }
            return masks.get(None, masks)
        if self.tree_mask is not None and not all(draft.is_chain for draft in drafts):
            return tree_mask(drafts, seen, self.tree_mask)
        fed = torch.zeros(len(drafts), self._fed, dtype=torch.bool)
        for row, draft in zip(fed, drafts, strict=True):
            row[: len(draft) + 1] = True
        return torch.cat([seen, fed.to(seen.device)], dim=1).long()

    def keep(self, nodes: list[list[int] | None]) -> None:
        """Keep of each row the last known token and these nodes of its draft; None keeps nothing of a row."""
        kept = [[] if row is None else [0, *(node + 1 for node in row)] for row in nodes]
        width = max(len(row) for row in kept)
        keep_rows(self.cache, self._fed, kept)
        counts = torch.tensor([len(row) for row in kept], device=self._live.device)
        live = torch.arange(width, device=self._live.device) < counts[:, None]
        self._live = torch.cat([self._live, live], dim=1)
        self._masked = torch.cat([self._masked, torch.zeros_like(live)], dim=1)
        if self._positions is not None:
            self._positions = self._positions + counts[:, None]
        self._counts = [count + len(row) for count, row in zip(self._counts, kept, strict=True)]
        taken, needed = self._live.shape[1], max(self._counts)
        if taken - needed > _WASTE * taken:
            self.compact([needed - count for count in self._counts])

    def grown(self) -> list[int]:
        """Return how many tokens of each row the cache holds behind its prompt."""
        return [count - prompt for count, prompt in zip(self._counts, self._prompts, strict=True)]

    def compact(self, starts: list[int]) -> None:
        """Move each row's live slots together, in order, to begin at its entry of `starts`."""
        width = max(start + count for start, count in zip(starts, self._counts, strict=True))
        counts, first = torch.tensor([self._counts, starts], device=self._live.device)
        order = torch.argsort((~self._live).byte(), dim=1, stable=True)  # the live ones first
        places = torch.arange(width, device=self._live.device) - first[:, None]
        live = (places >= 0) & (places < counts[:, None])
        chosen = order.gather(1, places.clamp(0, order.shape[1] - 1))
        for layer in self.cache.layers:  # anew: the layout may be wider, where the longest row was padded
            layer.keys, layer.values = slots(layer.keys, chosen), slots(layer.values, chosen)
        self._live, self._masked = live, live & self._masked.gather(1, chosen)

    def hand_back(self, finished: bool) -> None:
        """Let every row begin where its prompt did; rows that were interrupted keep as much as all of them have."""
        self.compact(self.beginnings)
        if not finished:
            shorten(self.cache, min(map(sum, zip(self.beginnings, self._counts, strict=True))))
        if self._windows is not None:
            for number, layer in enumerate(self.cache.layers):
                self._given.update(layer.keys, layer.values, number)  # keeps as much as its windows see
            self._kwargs[self.cache_name] = self._given

    def row(self, place: int) -> Any:
        """Return a cache of one row alone, None where layers with sliding windows keep everything."""
        if self._windows is not None:
            return None
        live, cache = self._live[place].nonzero()[:, 0], DynamicCache()
        for number, layer in enumerate(self.cache.layers):
            keys, values = layer.keys[place : place + 1], layer.values[place : place + 1]
            cache.update(keys.index_select(2, live), values.index_select(2, live), number)
        return cache

    def select(self, rows: list[int]) -> None:
        """Go on with some of the rows only."""
        index = torch.tensor(rows, device=self._live.device)
        self._live, self._masked = self._live[index], self._masked[index]
        self._counts = [self._counts[row] for row in rows]
        self._prompts = [self._prompts[row] for row in rows]
        if self._positions is not None:
            self._positions = self._positions.index_select(-2, index)
        self.cache.batch_select_indices(index)
        batched = ("token_type_ids", "mm_token_type_ids")
        self._kwargs |= {name: self._kwargs[name][index] for name in batched if self._kwargs.get(name) is not None}

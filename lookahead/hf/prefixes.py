"""Key-value caches of calls before: the next turn of a conversation runs only what is new through the model."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers import DynamicCache

from . import names

__all__ = ["Prefixes"]

_WORTH = 8  # tokens in common below which a fresh cache is as good


@dataclass(eq=False)
class _Kept:
    """A cache and the tokens that it holds, int64 [length], of somebody."""

    owner: str
    ids: torch.Tensor
    cache: Any

    @property
    def nbytes(self) -> int:
        """Bytes of the memory that the cache holds, also where it shows a part of it only."""
        tensors = (tensor for layer in self.cache.layers for tensor in (layer.keys, layer.values))
        return self.ids.nbytes + sum(int(tensor.untyped_storage().nbytes()) for tensor in tensors)


class Prefixes:
    """The caches of the last few calls of one model.

    Where a cache can be cut anywhere, a call gets the part that its prompt begins with, and the kept one stays as it
    was. Sliding windows have forgotten what stood before, so there only a cache that is continued as a whole serves.
    Models with other caches (recurrent states, encoders) get none.

    Parameters
    ----------
    model : PreTrainedModel
    max_bytes : int
        Most bytes kept, the least recently used cache given up first; 0 keeps none.
    """

    def __init__(self, model: Any, max_bytes: int) -> None:
        self._model, self._max_bytes = model, max_bytes
        self._kept: list[_Kept] = []  # the last one was used last
        layers = [] if model.config.is_encoder_decoder else self._fresh().layers
        self._is_cut = bool(layers) and all(names.is_plain_layer(layer) for layer in layers)
        self._is_continued = bool(layers) and all(
            names.is_plain_layer(layer) or names.is_windowed_layer(layer) for layer in layers
        )

    def __len__(self) -> int:
        """Return how many caches are kept."""
        return len(self._kept)

    @property
    def nbytes(self) -> int:
        """Bytes kept."""
        return sum(one.nbytes for one in self._kept)

    def take(self, owner: str, prompt: Sequence[int]) -> tuple[Any, int]:
        """Return a cache for a prompt and how many of its tokens it holds, at least one less than there are.

        A cache is taken only from calls of the same owner. None where the model's kind of cache is not kept; a fresh
        one where no kept one serves.
        """
        if not self._is_continued or not self._max_bytes:
            return None, 0
        best, length = self._best(owner, prompt)
        if best is None or length < _WORTH:
            return self._fresh(), 0
        self._kept.remove(best)
        if length == len(best.ids):
            return best.cache, length
        self._kept.append(best)
        return _head(best.cache, length), length

    @property
    def serves_batches(self) -> bool:
        """Whether caches are kept of which a batch can use a part."""
        return self._is_cut and self._max_bytes > 0

    def common(self, owner: str, prompt: Sequence[int]) -> int:
        """Return how many of a prompt's tokens a batch would find in a cache, at most one less than there are."""
        return self._best(owner, prompt)[1] if self.serves_batches else 0

    def take_together(self, owners: Sequence[str], prompts: Sequence[Sequence[int]]) -> tuple[Any, list[int]]:
        """Return a cache for a batch of prompts, padded on the left, and how many tokens of each it holds.

        All rows are continued from the same slot, so a row may have to read some of its tokens again. None where
        nothing is kept that is worth it; what is kept stays as it was.
        """
        if not self.serves_batches:
            return None, [0] * len(prompts)
        longest = max(map(len, prompts))
        heads = [self._best(owner, prompt) for owner, prompt in zip(owners, prompts, strict=True)]
        pads = [longest - len(prompt) for prompt in prompts]
        width = min(pad + length for pad, (_, length) in zip(pads, heads, strict=True))
        held = [max(0, width - pad) for pad in pads]
        if max(held) < _WORTH:
            return None, [0] * len(prompts)
        cache = self._fresh()
        for number in range(len(cache.layers)):
            rows = [None if one is None else one.cache.layers[number] for one, _ in heads]
            keys = _stacked([None if row is None else row.keys for row in rows], held, width)
            values = _stacked([None if row is None else row.values for row in rows], held, width)
            cache.update(keys, values, number)
        return cache, held

    def keep(self, owner: str, ids: Sequence[int], cache: Any) -> None:
        """Keep a cache that `take` returned, after a call that ended with `ids`; it holds the first of them."""
        if cache is None or not cache.get_seq_length():
            return
        held = torch.tensor(ids[: cache.get_seq_length()])
        others = [one for one in self._kept if one.owner != owner or not torch.equal(one.ids, held[: len(one.ids)])]
        self._kept = [*others, _Kept(owner, held, cache)]
        while self.nbytes > self._max_bytes:
            self._kept.pop(0)

    def _best(self, owner: str, prompt: Sequence[int]) -> tuple[_Kept | None, int]:
        """Return the cache of the same owner that serves a prompt best, and how many of its tokens it holds."""
        ids = torch.tensor(prompt)
        found = [(one, _common(one.ids, ids)) for one in self._kept if one.owner == owner]
        usable = [(one, length) for one, length in found if self._is_cut or length == len(one.ids)]
        return max(usable, key=lambda pair: pair[1], default=(None, 0))

    def _fresh(self) -> Any:
        """Return an empty cache of the model's kind."""
        return DynamicCache(config=self._model.config)


def _common(held: torch.Tensor, ids: torch.Tensor) -> int:
    """Return how many tokens are the same from the start on, the last of `ids` left out: it has to be fed."""
    length = min(len(held), len(ids) - 1)
    differ = (held[:length] != ids[:length]).nonzero()
    return int(differ[0]) if len(differ) else max(0, length)


def _head(cache: Any, length: int) -> Any:
    """Return a cache of the first tokens; it shares their memory until it grows, which copies."""
    head = copy.copy(cache)
    head.layers = [copy.copy(layer) for layer in cache.layers]
    for layer in head.layers:
        layer.keys, layer.values = layer.keys[..., :length, :], layer.values[..., :length, :]
    return head


def _stacked(rows: Sequence[torch.Tensor | None], held: Sequence[int], width: int) -> torch.Tensor:
    """Return the first `held` slots of each row at the end of `width` ones, [rows, heads, width, head size]."""
    like = next(row for row in rows if row is not None)
    stacked = like.new_zeros(len(rows), like.shape[1], width, like.shape[3])
    for number, (row, count) in enumerate(zip(rows, held, strict=True)):
        if row is not None and count:
            stacked[number, :, width - count :] = row[0, :, :count]
    return stacked

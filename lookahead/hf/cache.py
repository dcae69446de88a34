"""What has to happen to a cache so that refused tokens leave no trace."""

from __future__ import annotations

from typing import Any

import torch
from transformers import cache_utils
from transformers.cache_utils import DynamicCache, DynamicLayer, DynamicSlidingWindowLayer, StaticLayer

from . import names

__all__ = ["Rollback", "hides_windows", "is_cut_anywhere", "keep_rows", "rolls_back", "shorten", "slots"]


def _kinds(*found: str) -> tuple[Any, ...]:
    """Return the kinds of layers of these names that the release has."""
    return tuple(getattr(cache_utils, name) for name in found if hasattr(cache_utils, name))


_QUANTIZED = _kinds("QuantizedLayer") if hasattr(cache_utils, "BaseQuantizedLayer") else ()  # older ones keep no length
_REFUSED = tuple(set(_kinds("BaseQuantizedLayer", "QuantizedLayer")) - set(_QUANTIZED))
_STATIC = (StaticLayer,) if hasattr(StaticLayer, "crop") else ()
_FOLDS = _kinds("LinearAttentionCacheLayerMixin", "StaticSlidingWindowLayer") if _STATIC else ()
_NOTHING = _kinds("DummyLayer")


class Rollback:
    """Takes refused tokens off one generation's cache: `before` each forward, `keep` after it.

    A cache whose layers keep a slot per token is cut. Where a layer folds its tokens into a state instead (recurrent
    layers, a static window) the whole cache is put back to before the forward, and the accepted tokens have to be fed
    once more, together with the next draft: `pending` says how many.

    Attributes
    ----------
    replays : bool
        Whether accepted tokens are fed again.
    is_static : bool
        Whether the layers hold a fixed number of slots, as compiled models want them.
    pending : int
        Known tokens that the cache does not hold, besides the last one.
    """

    def __init__(self, cache: Any) -> None:
        self._cache = names.decoder_cache(cache)
        self.replays = self.replays_on(cache)
        self.is_static = any(type(layer) in _STATIC for layer in self._cache.layers) and not self.replays
        self.pending = 0
        self._saved: list[dict[str, Any]] = []
        if not self.replays:
            names.activate_past_recording(self._cache)
        self._shrinks = any(_shrinks(layer) for layer in self._cache.layers)  # even where nothing is refused

    @staticmethod
    def replays_on(cache: Any) -> bool:
        """Tell whether accepted tokens would be fed again on a cache."""
        return not all(_is_cut(layer) for layer in names.decoder_cache(cache).layers)

    def room(self) -> int:
        """Return the most tokens that the next forward may be fed and still be taken back, `pending` ones included."""
        return min((_room(layer) for layer in self._cache.layers), default=2**31)

    def before(self, refusable: bool) -> None:
        """Get ready for a forward, some of whose tokens may be refused."""
        self._saved = [_state(layer) for layer in self._cache.layers] if self.replays and refusable else []
        self._lengths = [] if self.replays else [_length(layer) for layer in self._cache.layers]

    def fail(self) -> None:
        """Leave no trace of a forward that failed between two layers."""
        for layer, state in zip(self._cache.layers, self._saved, strict=False):
            _restore(layer, state)
        for layer, length in zip(self._cache.layers, self._lengths, strict=False):
            _cut(layer, int(_length(layer) - length))

    def keep(self, fed: int, rows: list[int]) -> None:
        """Keep some rows of the last forward, the others leave no trace.

        Parameters
        ----------
        fed : int
            Tokens of the forward: the last known one and the draft.
        rows : list of int
            Those of them to keep, rising.
        """
        if not self.replays:
            if len(rows) < fed or self._shrinks:
                keep_rows(self._cache, fed, [rows])
        elif len(rows) == fed:
            self.pending = 0
        else:
            self.pending += len(rows)
            for layer, state in zip(self._cache.layers, self._saved, strict=True):
                _restore(layer, state)


def rolls_back(cache: Any) -> bool:
    """Tell whether refused tokens can be taken off this cache."""
    if not isinstance(cache, cache_utils.Cache):
        return False
    return all(
        _is_cut(layer) or isinstance(layer, (DynamicLayer, *_FOLDS)) and not isinstance(layer, _REFUSED)
        for layer in names.decoder_cache(cache).layers
    )


def is_cut_anywhere(cache: Any) -> bool:
    """Tell whether any number of tokens can be taken off a cache, not only the last forward's."""
    layers = names.decoder_cache(cache).layers
    return all(type(layer) in (DynamicLayer, *_STATIC, *_NOTHING) for layer in layers)


def hides_windows(model: Any, cache: Any) -> bool:
    """Tell whether a cache keeps everything although some layers of the model see a window only (``DynamicCache()``).

    The model itself masks what lies before the window then, and only where it makes the mask.
    """
    if not all(names.is_plain_layer(layer) for layer in cache.layers):
        return False
    own = DynamicCache(config=model.config.get_text_config(decoder=True))
    return any(names.is_windowed_layer(layer) for layer in own.layers)


def _is_cut(layer: Any) -> bool:
    """Tell whether tokens can be cut off a layer's end."""
    windows = (DynamicSlidingWindowLayer,) if hasattr(layer, "activate_past_recording") else ()
    if type(layer) in (DynamicLayer, *windows, *_STATIC, *_kinds("DynamicIndexedLayer")):
        return True
    return isinstance(layer, (*_QUANTIZED, *_NOTHING))


def _room(layer: Any) -> int:
    """Return how many tokens fit into a layer; a quantized one must not pack what could be refused."""
    if type(layer) in _STATIC:
        return int(layer.max_cache_len - layer.get_seq_length())
    if isinstance(layer, _QUANTIZED):
        waiting = layer.keys.shape[-2] if layer.keys.dim() == 4 else 0
        return int(layer.residual_length - 1 - waiting)
    return 2**31


def _length(layer: Any) -> Any:
    """Return how many tokens a layer has seen; static ones say it with a tensor that goes on to change."""
    length = layer.get_seq_length() if hasattr(layer, "get_seq_length") else 0
    return length.clone() if isinstance(length, torch.Tensor) else length


def _state(layer: Any) -> dict[str, Any]:
    """Return what a layer holds: tensors that grow by being replaced as they are, others as (tensor, copy)."""
    replaced = isinstance(layer, DynamicLayer)
    kept = ("keys", "values") if replaced or type(layer) in _STATIC else ()
    return {name: value if name in kept else _copied(value) for name, value in vars(layer).items()}


def _copied(value: Any) -> Any:
    """Return a tensor with a copy of it, a dict of such, anything else as it is."""
    if isinstance(value, dict):
        return {key: _copied(one) for key, one in value.items()}
    return (value, value.clone()) if isinstance(value, torch.Tensor) else value


def _restore(layer: Any, state: dict[str, Any]) -> None:
    """Put back what a layer held; tensors keep their places, which compiled forwards know."""
    for name, value in state.items():
        setattr(layer, name, _original(value))


def _original(value: Any) -> Any:
    """Return what `_copied` was given, with its content of then."""
    if isinstance(value, dict):
        return {key: _original(one) for key, one in value.items()}
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], torch.Tensor):
        return value[0].copy_(value[1])
    return value


def keep_rows(cache: Any, fed: int, rows: list[list[int]]) -> None:
    """Keep some of the last forward's rows in a cache with a slot per token, and drop its others.

    Positions are baked into the cached keys, so a row may be moved to another slot as it is.

    Parameters
    ----------
    cache : Cache
        Changed in place; its last `fed` entries are the forward's rows.
    fed : int
        Rows of the last forward.
    rows : list of list of int
        For each sequence of the batch the rows to keep, rising; where it keeps fewer than another, any may follow.
    """
    width = max(len(kept) for kept in rows)
    if any(kept != list(range(len(kept))) for kept in rows):
        chosen = torch.tensor([kept + [0] * (width - len(kept)) for kept in rows])
        for layer in cache.layers:
            for states in (layer.keys, layer.values):
                start = states.shape[-2] - fed
                states[..., start : start + width, :] = slots(states, chosen + start)
    for layer in cache.layers:
        _cut(layer, fed - width)


def _cut(layer: Any, tokens: int) -> None:
    """Take tokens off a layer's end; 0 still lets sliding windows shrink."""
    if isinstance(layer, _QUANTIZED):
        if tokens:
            layer.keys, layer.values = layer.keys[..., :-tokens, :], layer.values[..., :-tokens, :]
            layer.cumulative_length -= tokens
    elif tokens or _shrinks(layer):
        layer.crop(-tokens)


def _shrinks(layer: Any) -> bool:
    """Tell whether a layer keeps more than its window until it is cut."""
    return hasattr(layer, "activate_past_recording")


def shorten(cache: Any, length: int) -> None:
    """Take off each layer what stands in it behind `length` tokens."""
    for layer in cache.layers:
        _cut(layer, max(0, int(_length(layer) - length)))


def slots(states: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
    """Return the `chosen` slots, int64 [batch, n], of keys or values [batch, heads, slots, head size]."""
    index = chosen[:, None, :, None].to(states.device)
    return states.gather(2, index.expand(-1, states.shape[1], -1, states.shape[3]))

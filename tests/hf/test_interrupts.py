"""What fails in the middle of a call leaves the object and the caller's cache usable."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from transformers import DynamicCache

from lookahead import Drafter, Lookahead
from lookahead.hf.names import cache_name
from tests.models import KINDS, prompt, tiny


class Bomb:
    """Goes off at its n-th call, wherever it is put."""

    def __init__(self, calls: int, error: type[BaseException]) -> None:
        self.left, self.error = calls, error

    def tick(self) -> None:
        self.left -= 1
        if not self.left:
            raise self.error


class InProcessor(Bomb):
    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        self.tick()
        return scores


class InCriterion(Bomb):
    def __call__(self, input_ids: torch.Tensor, scores: Any, **kwargs: Any) -> torch.Tensor:
        self.tick()
        return torch.tensor([False])


class InStreamer(Bomb):
    def put(self, value: torch.Tensor) -> None:
        self.tick()

    def end(self) -> None:
        raise AssertionError("a generation that failed has no end")


def _in_processor(model: Any, calls: int, error: type[BaseException]) -> tuple[dict[str, Any], Any]:
    return {"logits_processor": [InProcessor(calls, error)]}, contextlib.nullcontext()


def _in_criterion(model: Any, calls: int, error: type[BaseException]) -> tuple[dict[str, Any], Any]:
    return {"stopping_criteria": [InCriterion(calls, error)]}, contextlib.nullcontext()


def _in_streamer(model: Any, calls: int, error: type[BaseException]) -> tuple[dict[str, Any], Any]:
    return {"streamer": InStreamer(calls, error)}, contextlib.nullcontext()


@contextlib.contextmanager
def _hooked(module: Any, bomb: Bomb) -> Iterator[None]:
    hook = module.register_forward_hook(lambda *_: bomb.tick())
    try:
        yield
    finally:
        hook.remove()


def _behind_all_layers(model: Any, calls: int, error: type[BaseException]) -> tuple[dict[str, Any], Any]:
    return {}, _hooked(model.get_output_embeddings(), Bomb(2 + calls // 5, error))


def _between_layers(model: Any, calls: int, error: type[BaseException]) -> tuple[dict[str, Any], Any]:
    return {}, _hooked(next(iter(model.base_model.layers)), Bomb(2 + calls // 5, error))


@contextlib.contextmanager
def _patched(name: str, bomb: Bomb) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        real = getattr(Drafter, name)

        def fails(*args: Any, **kwargs: Any) -> Any:
            bomb.tick()
            return real(*args, **kwargs)

        patch.setattr(Drafter, name, fails)
        yield


def _in_propose(model: Any, calls: int, error: type[BaseException]) -> tuple[dict[str, Any], Any]:
    return {}, _patched("propose", Bomb(2 + calls // 5, error))


def _in_accept(model: Any, calls: int, error: type[BaseException]) -> tuple[dict[str, Any], Any]:
    return {}, _patched("accept", Bomb(2 + calls // 5, error))


PLACES: dict[str, Callable[[Any, int, type[BaseException]], tuple[dict[str, Any], Any]]] = {
    one.__name__.strip("_"): one
    for one in (
        _in_processor,
        _in_criterion,
        _in_streamer,
        _behind_all_layers,
        _between_layers,
        _in_propose,
        _in_accept,
    )
}


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind in ("llama", "mistral", "gemma3")])
@pytest.mark.parametrize("place", PLACES)
def test_the_next_call_and_the_callers_cache_are_as_if_nothing_had_been(place: str, kind: str) -> None:
    model, ids, lookahead = tiny(kind), prompt(), Lookahead(cost="linear:0", budget=6)
    said = model.generate(ids, max_new_tokens=40)
    longer = torch.cat([said, prompt(5, seed=3)], dim=1)
    vanilla = model.generate(longer, max_new_tokens=10)
    errors: tuple[type[BaseException], ...] = (KeyboardInterrupt, RuntimeError, ValueError, KeyboardInterrupt)
    for calls, custom, error in zip((2, 5, 13, 21), (None, lookahead) * 2, errors, strict=True):
        assert torch.equal(lookahead.generate(model, ids, max_new_tokens=40), said)
        cache = DynamicCache(config=model.config)
        kwargs, danger = PLACES[place](model, calls, error)
        with danger, pytest.raises(error):
            lookahead.generate(model, ids, max_new_tokens=40, **kwargs, **{cache_name(): cache})
        assert not any(getattr(layer, "record_past", False) for layer in cache.layers)
        (length,) = {layer.get_seq_length() for layer in cache.layers}
        assert ids.shape[1] <= length < said.shape[1]
        kwargs = {cache_name(): cache, "custom_generate": custom}
        assert torch.equal(model.generate(longer, max_new_tokens=10, **kwargs), vanilla)

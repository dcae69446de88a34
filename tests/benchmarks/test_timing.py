"""Timing helpers: what is run side by side says what it would have said alone."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import pytest
import torch

from benchmarks.timing import forward_by_forward
from lookahead import Lookahead
from tests.models import tiny

PROMPT = torch.tensor([[1, 5, 9, 5, 9, 5]])


def test_generations_in_turns_say_what_each_says_alone() -> None:
    model: Any = tiny("llama")
    said, order = dict[str, torch.Tensor](), list[str]()

    def run(name: str, custom: Any) -> None:
        said[name] = model.generate(
            PROMPT, attention_mask=torch.ones_like(PROMPT), max_new_tokens=20, do_sample=True, custom_generate=custom
        )

    torch.manual_seed(3)
    run("alone", None)
    hook = model.register_forward_pre_hook(lambda *_: order.append(""))
    torch.manual_seed(3)
    ways = {"generate": None, "lookahead": Lookahead()}
    seconds = forward_by_forward(model, {name: partial(run, name, custom) for name, custom in ways.items()})
    hook.remove()
    assert torch.equal(said["generate"], said["alone"])
    assert torch.equal(said["lookahead"], said["alone"])
    assert list(seconds) == ["generate", "lookahead"] and min(seconds.values()) > 0
    assert len(order) > 20  # the forwards of both


def test_one_that_fails_does_not_hold_the_other_up() -> None:
    model: Any = tiny("llama")
    ended = list[bool]()

    def fail() -> None:
        model(PROMPT)
        raise ValueError("for a test")

    def run() -> None:
        for _ in range(3):
            model(PROMPT)
        ended.append(True)

    with pytest.raises(ValueError, match="for a test"):
        forward_by_forward(model, {"fails": fail, "runs": run})
    assert ended == [True]


def test_what_waits_has_a_clock_that_stands_still(monkeypatch: pytest.MonkeyPatch) -> None:
    now, took = [0.0], dict[str, list[float]](short=[], long=[])
    monkeypatch.setattr("time.perf_counter", lambda: now[0])

    class Model(torch.nn.Module):
        def forward(self, seconds: float) -> None:
            now[0] += seconds

    model = Model()

    def run(name: str, seconds: float) -> None:
        for _ in range(5):
            started = time.perf_counter()
            model(seconds)
            took[name].append(time.perf_counter() - started)

    seconds = forward_by_forward(model, {"short": partial(run, "short", 1.0), "long": partial(run, "long", 100.0)})
    assert took == {"short": [1.0] * 5, "long": [100.0] * 5}
    assert seconds == {"short": 5.0, "long": 500.0}

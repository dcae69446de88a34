"""Fair timing on a noisy machine: everything in one run, in turns, medians and ratios."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import greenlet
import numpy as np
import torch


def in_turns(
    runs: dict[str, Callable[[], object]], rounds: int, spent: dict[str, float] | None = None
) -> dict[str, list[float]]:
    """Run everything once unmeasured, then all in turns; return the seconds of each.

    Where runs prepare something first, they leave the seconds that count in `spent`, under their names.
    """
    for run in runs.values():
        run()
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for round_ in range(rounds):
        order = list(runs) if round_ % 2 == 0 else list(reversed(runs))
        for name in order:
            started = time.perf_counter()
            runs[name]()
            whole = time.perf_counter() - started
            seconds[name].append(whole if spent is None else spent[name])
    return seconds


def forward_by_forward(model: Any, runs: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Run generations of one model at once, a forward of each in turns; return the seconds of each.

    A machine whose speed changes from second to second then changes it for all of them alike. Each goes from one
    forward's beginning to the next while the others wait, with random numbers of its own and a `time.perf_counter` that
    stands still meanwhile, so that a generation that times its own forwards is not misled. All run in one thread: each
    thread would have its own workers, and these would be in each other's way.
    """
    seconds, clock, started = dict.fromkeys(runs, 0.0), time.perf_counter, 0.0
    drawn = dict.fromkeys(runs, torch.get_rng_state())
    turns = greenlet.getcurrent()
    going = [(name, greenlet.greenlet(run)) for name, run in runs.items()]
    failed: BaseException | None = None

    def passed() -> float:
        return seconds[name] + clock() - started

    def give(*_: object) -> None:
        turns.switch()

    hook = model.register_forward_pre_hook(give)
    try:
        with mock.patch("time.perf_counter", passed), torch.no_grad():
            while going:
                name, one = going.pop(0)
                torch.set_rng_state(drawn[name])
                started = clock()
                try:
                    one.switch()
                except BaseException as error:
                    failed = failed or error
                seconds[name] += clock() - started
                drawn[name] = torch.get_rng_state()
                going.extend([] if one.dead else [(name, one)])
    finally:
        hook.remove()
    if failed is not None:
        raise failed
    return seconds


def ratio(numerator: list[float], denominator: list[float]) -> tuple[float, float, float]:
    """Return the median, the least and the greatest of the ratios of runs that stood side by side."""
    ratios = [one / other for one, other in zip(numerator, denominator, strict=True)]
    return statistics.median(ratios), min(ratios), max(ratios)


def bootstrapped(numerator: list[float], denominator: list[float], draws: int = 4000) -> tuple[float, float, float]:
    """Return the median ratio of runs that stood side by side, and the 95 % interval that a bootstrap gives it.

    Rounds are drawn with replacement (Efron 1979, the percentile method); with few rounds the interval is coarse.
    """
    ratios = np.array(numerator) / np.array(denominator)
    drawn = np.random.default_rng(0).integers(0, len(ratios), (draws, len(ratios)))
    low, high = np.quantile(np.median(ratios[drawn], axis=1), (0.025, 0.975))
    return float(np.median(ratios)), float(low), float(high)


def machine() -> str:
    """Name the processor, the threads and the releases."""
    processor = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        processor = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), processor)
    releases = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("torch", "transformers", "numba"))
    cores, threads = os.cpu_count(), torch.get_num_threads()
    return f"{processor}, {cores} cores, {threads} threads, Python {platform.python_version()}, {releases}"

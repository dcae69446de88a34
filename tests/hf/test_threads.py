"""One object serves many threads at once: every call says what vanilla says, and counts for itself."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch

from lookahead import Lookahead, Stats
from tests.models import prompt, tiny
from tests.vocabularies import letters

CALLS = 16


@pytest.fixture(autouse=True)
def _threads_change_often() -> Iterator[None]:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    yield
    sys.setswitchinterval(interval)


def check(stats: Stats, new: int) -> None:
    """Every count of a call belongs to that call."""
    assert stats.tokens == len(stats.token_sources) == new
    assert stats.forwards <= new <= stats.forwards + stats.accepted <= new + 1
    assert stats.drafted == stats.drafted_by_source.total() >= stats.accepted
    assert stats.accepted == stats.accepted_by_source.total()
    assert sum(source != "model" for source in stats.token_sources) == stats.accepted
    assert 0 < stats.draft_seconds + stats.verify_seconds <= stats.total_seconds


@pytest.mark.parametrize("options", [{"cost": "linear:0"}, {"cost": "linear:0", "max_bytes": 65536}, {}], ids=str)
def test_calls_in_many_threads(options: dict[str, Any]) -> None:
    model, lookahead = tiny(), Lookahead(letters(), **options)
    jobs = [(prompt(20 + 3 * (seed % 5), seed=seed), 10 + seed) for seed in range(CALLS)]
    vanilla = [model.generate(ids, max_new_tokens=new) for ids, new in jobs]

    def work(job: tuple[torch.Tensor, int]) -> Any:
        ids, new = job
        return lookahead.generate(model, ids, max_new_tokens=new, return_dict_in_generate=True)

    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(work, jobs))
    for (_, new), expected, ours in zip(jobs, vanilla, found, strict=True):
        assert torch.equal(ours.sequences, expected)
        check(ours.stats, new)
    assert len({id(ours.stats) for ours in found}) == CALLS
    assert any(ours.stats is lookahead.stats for ours in found)
    assert sum(ours.stats.accepted for ours in found) > 0 or "cost" not in options  # else the clock decides


def test_calls_that_fail_beside_calls_that_do_not() -> None:
    model, lookahead = tiny(), Lookahead(cost="linear:0")
    jobs = [prompt(seed=seed) for seed in range(CALLS)]
    vanilla = [model.generate(ids, max_new_tokens=30) for ids in jobs]

    def fails(input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        if input_ids.shape[1] == 50:
            raise ConnectionError
        return scores

    def work(number: int) -> Any:
        processors = [fails] if number % 2 else []
        try:
            return lookahead.generate(model, jobs[number], max_new_tokens=30, logits_processor=processors)
        except ConnectionError:
            return None

    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(work, range(CALLS)))
    for number, ours in enumerate(found):
        assert ours is None if number % 2 else torch.equal(ours, vanilla[number])


def test_batches_beside_single_rows() -> None:
    model, lookahead = tiny(), Lookahead(cost="linear:0")
    jobs = [prompt(seed=seed).expand(1 + seed % 3, -1) for seed in range(CALLS // 2)]
    vanilla = [model.generate(ids, max_new_tokens=25) for ids in jobs]
    with ThreadPoolExecutor(6) as threads:
        found = list(threads.map(lambda ids: lookahead.generate(model, ids, max_new_tokens=25), jobs))
    assert all(torch.equal(ours, expected) for ours, expected in zip(found, vanilla, strict=True))

"""What is measured of a forced answer, with an ordinary cache and a static one."""

from __future__ import annotations

import pytest
import torch

from benchmarks import gpu, scaled
from benchmarks.scaled import Task
from benchmarks.tables import spread
from tests.models import prompt, tiny
from tests.vocabularies import letters


@pytest.mark.parametrize("cache", ["dynamic", "static"])
def test_every_way_says_the_answer_in_its_own_forwards(cache: str) -> None:
    model = tiny(dtype=torch.float32)
    model.generation_config.eos_token_id = None
    model.generation_config.pad_token_id = 0
    ids = prompt(seed=1)
    ways = gpu.with_cache(scaled.ways_of(model, letters(), [4]), cache)
    assert list(ways) == ["generate", "prompt lookup (4, n=2)", "prompt lookup (4, n=5)", "lookahead"]
    row = scaled.measure(model, Task(ids, ids[0, 3:27].tolist()), ways, rounds=2)
    plain, best, ours = row["forwards"]
    assert (plain, ours) == ("generate", "lookahead")
    assert best in ways
    assert row["forwards"][plain] == row["tokens"] == 24
    assert row["forwards"][ours] <= 24  # beside so small a model the clock may say that no draft pays
    assert row["forwards"][best] <= 24
    assert all(len(times) == 2 and min(times) > 0 for times in row["seconds"].values())
    place = {"size": "tiny", "dtype": "float32", "format": "json", "context": ids.shape[1]}
    shown = scaled.markdown({"tokens": 24, "rounds": 2, "rows": [place | row]})
    assert f"| tiny | float32 | {ids.shape[1]} | json |" in shown
    assert shown.startswith("24 tokens of each answer, 2 rounds")


def test_bounds_are_shown_where_they_say_more() -> None:
    assert spread(1.5, 1.25, 2.0) == "1.50 (1.25 to 2.00)"
    assert spread(1.5, 1.499, 1.501) == "1.50"
    assert spread(1.5, 1.499, 1.501, digits=3) == "1.500 (1.499 to 1.501)"

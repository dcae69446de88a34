"""A small replay gives the very counts that were kept: what moves them is meant, or a regression."""

from __future__ import annotations

import copy

import pytest

from benchmarks.figures import differences, kept, measure


@pytest.mark.model
@pytest.mark.compiled
def test_the_figures_are_as_kept() -> None:
    lines = differences(kept(), measure())
    assert not lines, "\n".join([*lines, "if that is meant, run: python -m benchmarks.figures --write, and say why"])


def test_a_difference_is_named() -> None:
    figures = kept()
    changed = copy.deepcopy(figures)
    drafter = next(iter(figures))
    changed[drafter]["json"]["forwards"] += 1
    del changed[drafter]["diff"]
    lines = differences(figures, changed)
    assert [line.split(" {")[0] for line in lines] == [f"{drafter}, diff:", f"{drafter}, json:"]
    assert differences(figures, copy.deepcopy(figures)) == []

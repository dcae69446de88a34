"""Drafters side by side: who drafts what is known, and what speeds follow from the counts."""

from __future__ import annotations

import numpy as np
import pytest

from lookahead.bench.comparison import LIMIT, LOOKAHEAD, Expense, compare
from lookahead.bench.replay import Tally
from lookahead.bench.tasks import FORMATS, Edit
from tests.vocabularies import SAMPLE, vocabulary

EDITS = [
    Edit("a.py", "Rename it.", SAMPLE * 2, SAMPLE * 2 + "# the end\n"),
    Edit("a.py", "Cut it.", SAMPLE * 2, SAMPLE),
]
CHEAP, DEAR = (Expense(f"linear:{slope}", 1 + slope * np.arange(17)) for slope in (0.002, 0.3))


@pytest.fixture(scope="module")
def found() -> list[list[Tally]]:
    steps: list[None] = []
    gains = compare(EDITS, FORMATS, vocabulary("byte_level"), 16, [CHEAP, DEAR], lambda: steps.append(None))
    assert len(steps) == len(EDITS) * len(FORMATS)
    for row in gains:
        assert row[0].drafter == "prompt lookup (10, n=2)"
        assert [gain.drafter for gain in row[-2:]] == [LOOKAHEAD, LIMIT]
        assert all(list(gain.tallies) == list(FORMATS) for gain in row)
    return [[gain.total for gain in row] for row in gains]


def test_everyone_writes_the_same_answers(found: list[list[Tally]]) -> None:
    assert len({tally.tokens for row in found for tally in row}) == 1
    for row in found:
        assert row[-1].forwards == min(tally.forwards for tally in row[:-2] + row[-1:])
        assert row[-1].acceptance_rate == 1


def test_lookahead_knows_what_drafts_cost(found: list[list[Tally]]) -> None:
    (cheap, dear) = (row[-2] for row in found)
    assert dear.drafted < cheap.drafted
    assert DEAR.speed(dear) > DEAR.speed(cheap)
    assert CHEAP.speed(cheap) > CHEAP.speed(dear)


def test_prompt_lookup_is_taken_at_its_best(found: list[list[Tally]]) -> None:
    for expense, row in zip((CHEAP, DEAR), found, strict=True):
        assert len(row) in (3, 4)
        assert expense.speed(row[-3]) >= expense.speed(row[0])
    assert len(found[0]) == 4  # where drafts are cheap, longer ones are better than the default's


def test_time_to_draft_counts_where_a_forward_s_is_known() -> None:
    tally = Tally()
    tally.answers, tally.tokens, tally.forwards, tally.drafting, tally.reading = 1, 12, 3, 0.5, 0.5
    tally.sizes[0] = 2
    assert Expense("given", np.ones(5)).speed(tally) == 12 / 3
    assert Expense("measured", np.ones(5), seconds=0.5).speed(tally) == 12 / (3 + 2)

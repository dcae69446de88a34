from __future__ import annotations

import pytest

from lookahead.draft.batch import Batch
from lookahead.draft.cost import FixedCost
from lookahead.draft.drafter import Drafter
from lookahead.draft.policy import Policy
from lookahead.tree import Accepted


def batch(rows: int, slope: float = 0.0) -> tuple[Batch, dict[int, Policy]]:
    """Give a batch of rows that all copy the same, and its policies by the number of rows."""
    policies = {count: Policy(FixedCost(lambda size: 1 + slope * size, 128), count) for count in range(1, rows + 1)}
    drafters = [Drafter() for _ in range(rows)]
    for drafter in drafters:
        drafter.policy = policies[rows]
        drafter.begin([1, 2, 3, 4, 5, 6, 1, 2, 3])
    return Batch(drafters, policies.__getitem__), policies


def test_rows_draft_as_much_as_they_are_allowed() -> None:
    rows, _ = batch(3)
    assert [draft.tokens.tolist() for draft in rows.propose([0, 1, 2])] == [[], [4], [4, 5]]


def test_a_place_is_worth_what_all_rows_have_in_it() -> None:
    slope = 0.1  # at 4 tokens for a forward, a place costs 0.4 tokens of every row
    assert len(batch(1, slope)[0].propose([9])[0]) > 0
    drafts = batch(4, slope)[0].propose([9, 0, 0, 0])  # one row alone cannot pay for a place of four
    assert [len(draft) for draft in drafts] == [0, 0, 0, 0]
    assert all(len(draft) > 0 for draft in batch(4, slope)[0].propose([9, 9, 9, 9]))


def test_rows_that_go_on_alone_have_the_policy_for_so_many() -> None:
    rows, policies = batch(4)
    rows.propose([9] * 4)
    rows.accept([Accepted([4, 5, 6], [0, 1])] * 4, 1.0)
    before = policies[4].rate
    kept = [rows.drafters[1], rows.drafters[3]]
    rows.select([1, 3])
    assert rows.drafters == kept and all(drafter.policy is policies[2] for drafter in kept)
    assert policies[2].rate == pytest.approx(before / 2)
    assert policies[4].rate == pytest.approx(before)

"""How many answers go together: what the clock says pays, and never more than wait."""

from __future__ import annotations

import pytest

from lookahead.server.pace import Pace


def run(pace: Pace, seconds_of: dict[int, float], calls: int = 60, waiting: int = 8) -> list[int]:
    """Take calls whose every row brings 10 tokens, in so many seconds by the number of rows; return the numbers."""
    found = []
    for _ in range(calls):
        found.append(pace.rows(waiting))
        pace.learn(found[-1], 10 * found[-1], seconds_of[found[-1]])
    return found


@pytest.mark.parametrize(
    ("seconds_of", "best"),
    [
        ({1: 1.0, 2: 1.1, 4: 1.3, 8: 1.6}, 8),
        ({1: 1.0, 2: 1.4, 4: 2.0, 8: 6.0}, 4),
        ({1: 1.0, 2: 2.5, 4: 6.0, 8: 16.0}, 1),
    ],
)
def test_what_pays_is_done_most_of_the_time(seconds_of: dict[int, float], best: int) -> None:
    found = run(Pace(8), seconds_of)
    assert found.count(best) > 45
    assert found[0] == 1


def test_what_pays_may_change() -> None:
    pace = Pace(4)
    run(pace, {1: 1.0, 2: 3.0, 4: 9.0})
    assert run(pace, {1: 1.0, 2: 1.1, 4: 1.2}, calls=300).count(4) > 150


def test_what_a_first_call_takes_does_not_count_nor_does_one_that_was_held_up() -> None:
    pace, costs = Pace(4), {1: 1.0, 2: 1.1, 4: 1.2}
    seen: set[int] = set()
    found = []
    for call in range(60):
        found.append(rows := pace.rows(8))
        seconds = 500.0 if rows not in seen or call == 30 else costs[rows]
        seen.add(rows)
        pace.learn(rows, 10 * rows, seconds)
    assert found[-20:].count(4) > 15


def test_never_more_than_wait_or_are_allowed() -> None:
    pace = Pace(8)
    run(pace, {1: 1.0, 2: 1.0, 4: 1.0, 8: 1.0})
    assert [pace.rows(waiting) for waiting in (0, 1, 100)] == [1, 1, 8]
    assert all(pace.rows(waiting) <= waiting for waiting in range(1, 8))
    assert run(Pace(1), {1: 1.0}) == [1] * 60
    pace.stay_alone()
    assert pace.rows(100) == 1

from __future__ import annotations

import pytest

from lookahead import Accepted, Draft, Stats
from tests.trees import tree


def test_nothing_yet_is_no_division_by_zero() -> None:
    stats = Stats()
    assert (stats.tokens_per_forward, stats.acceptance_rate, stats.rest_seconds) == (0, 0, 0)
    assert stats.summary().startswith("0 tokens in 0 forwards = 0.00 tokens per forward; 0 of 0 draft tokens accepted")


def test_steps_add_up() -> None:
    stats = Stats()
    stats.count([Draft.empty()], [Accepted([5])])
    stats.count([tree({6: {7: {8: {}}}, 9: {}})], [Accepted([6, 7, 1], path=[0, 1])])
    stats.count([Draft.chain([1, 2], source="output")], [Accepted([1, 2], path=[0, 1], finished=True)])
    assert (stats.forwards, stats.drafted, stats.accepted) == (3, 6, 4)
    assert stats.drafted_by_source == {"place 0": 1, "place 1": 1, "place 2": 1, "place 3": 1, "output": 2}
    assert stats.accepted_by_source == {"place 0": 1, "place 1": 1, "output": 2}
    assert stats.acceptance_rate == pytest.approx(4 / 6)


def test_every_emitted_token_has_a_source() -> None:
    stats = Stats()
    stats.emit()
    stats.emit("prompt")
    assert stats.tokens == 2
    assert stats.token_sources == ["model", "prompt"]
    stats.count([Draft.empty()], [Accepted([3])])
    assert stats.tokens_per_forward == 2


def test_the_rest_of_the_time_is_never_negative() -> None:
    assert Stats(draft_seconds=1.0, verify_seconds=2.0, total_seconds=4.5).rest_seconds == 1.5
    assert Stats(draft_seconds=1.0, verify_seconds=2.0, total_seconds=2.9).rest_seconds == 0


def test_the_summary_is_one_line_with_all_figures() -> None:
    stats = Stats(5, 40, 60, 35, draft_seconds=0.25, verify_seconds=0.5, total_seconds=1.0)
    assert stats.summary() == (
        "40 tokens in 5 forwards = 8.00 tokens per forward; 35 of 60 draft tokens accepted (58%); "
        "draft 0.250 s, verify 0.500 s, rest 0.250 s"
    )


def test_two_stats_share_nothing() -> None:
    one, other = Stats(), Stats()
    one.emit("prompt")
    one.drafted_by_source["prompt"] += 1
    assert other == Stats()

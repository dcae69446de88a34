from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookahead import Drafter
from lookahead.draft.cost import PRIOR, MeasuredCost, cost_of

STEPS = st.lists(st.tuples(st.integers(0, 300), st.integers(1, 100_000), st.floats(1e-4, 1.0)), min_size=1, max_size=60)


def test_a_line_and_a_function_are_tabulated() -> None:
    assert cost_of("linear:0.5", 3).curve(3) == pytest.approx([1, 1.5, 2, 2.5])
    assert cost_of(lambda size: 2 + size // 2, 4).curve(4) == pytest.approx([1, 1, 1.5, 1.5, 2])
    assert isinstance(cost_of(None, 4), MeasuredCost)


@pytest.mark.parametrize("wrong", [lambda size: 3 - size, lambda size: 0, lambda size: float("nan"), lambda size: -1])
def test_a_function_that_falls_or_is_no_cost_is_refused(wrong: object) -> None:
    with pytest.raises(ValueError, match="allowed are finite numbers above 0 that do not fall"):
        Drafter(cost=wrong)


@given(STEPS, st.integers(0, 400))
def test_what_is_measured_never_falls_and_begins_with_1(steps: list[tuple[int, int, float]], budget: int) -> None:
    cost = MeasuredCost()
    for size, context, seconds in steps:
        cost.learn(size, context, seconds)
        curve = cost.curve(budget)
        assert curve.shape == (budget + 1,)
        assert curve[0] == 1 and (np.diff(curve) >= -1e-12).all() and np.isfinite(curve).all()


@given(st.floats(0.001, 0.2), st.floats(1e-3, 1.0), st.integers(0, 2**16))
def test_a_straight_cost_is_found_through_outliers(slope: float, plain: float, seed: int) -> None:
    cost, chance = MeasuredCost(), np.random.default_rng(seed)
    for step in range(60):
        for size in (0, 1, 4, 8, 16, 32, 64):
            late = 20.0 if (step + size) % 5 == 0 else 1.0
            cost.learn(size, 1000, late * plain * (1 + slope * size) * chance.uniform(0.98, 1.02))
    assert cost.curve(64) == pytest.approx(1 + slope * np.arange(65), rel=0.15)


def test_steps_of_the_hardware_show() -> None:
    cost = MeasuredCost()
    for _ in range(9):
        for size in (0, 4, 8, 16, 24, 32, 48):
            cost.learn(size, 1000, 1.0 if size <= 16 else 2.0)
    curve = cost.curve(48)
    assert curve[:17] == pytest.approx(1.0) and curve[24:] == pytest.approx(2.0)


def test_nothing_heard_is_the_prior_and_an_unknown_context_is_like_the_nearest() -> None:
    cost = MeasuredCost(0.1)
    assert cost.curve(4) == pytest.approx([1, 1.1, 1.2, 1.3, 1.4])
    assert MeasuredCost().curve(64)[64] == pytest.approx(1 + 64 * PRIOR)
    for _ in range(9):
        cost.learn(0, 500, 1.0)
        cost.learn(4, 500, 3.0)
    cost.learn(0, 50_000, 7.0)
    for _ in range(9):
        cost.learn(0, 500, 1.0)
    assert cost.curve(4)[4] == pytest.approx(3.0)


@given(STEPS)
def test_what_is_kept_as_json_comes_back_and_ages_until_it_is_measured(steps: list[tuple[int, int, float]]) -> None:
    cost, again = MeasuredCost(), MeasuredCost()
    for size, context, seconds in steps:
        cost.learn(size, context, seconds)
    kept = json.loads(json.dumps(cost.state()))
    again.restore(kept)
    older = {context: {size: [known, age + 1] for size, (known, age) in row.items()} for context, row in kept.items()}
    assert json.loads(json.dumps(again.state())) == older
    size, context, seconds = steps[-1]
    again.learn(size, context, seconds)
    now = {(one, size): age for one, row in again.state().items() for size, (_, age) in row.items()}
    assert sorted(now.values())[0] == 0 and list(now.values()).count(0) == 1


def test_what_is_no_cost_is_passed_over() -> None:
    cost = MeasuredCost()
    cost.restore({"1": {"0": [-1, 0], "5": [1.0, 0], "4": [1.0], "8": 2.0, "16": [1.0, -1]}, "x": {"0": [1.0, 0]}})
    cost.restore({"2": {"4": [float("inf"), 0], "8": [float("nan"), 0]}})
    assert cost.state() == {}


@pytest.mark.parametrize("kept", [3.0, 1e6])
def test_what_is_kept_counts_until_measured_and_no_more_than_plausible(kept: float) -> None:
    cost = MeasuredCost(0.1)
    cost.restore({"0": {"0": [1.0, 0], "4": [kept, 0]}})
    assert cost.curve(8)[4] == pytest.approx(min(kept, 5.0))
    cost.learn(0, 500, 0.05)
    assert cost.curve(8)[4] == pytest.approx(min(kept, 5.0)), "costs are relative: a slower machine changes none"
    cost.learn(4, 500, 0.1)
    assert cost.curve(8)[4] == pytest.approx(2.0, rel=0.05), "the first measurement replaces what was kept"


def test_what_nobody_measures_is_forgotten_from_process_to_process() -> None:
    state, seen = {"0": {"0": [1.0, 0], "4": [3.0, 0]}}, []
    for _ in range(8):
        cost = MeasuredCost(0.1)
        cost.restore(state)
        seen.append(cost.curve(4)[4])
        state = cost.state()
    assert seen[0] == pytest.approx(3.0) and (np.diff(seen) < 0).all()
    assert seen[-1] == pytest.approx(1.4, abs=0.05)


def test_a_single_time_is_believed_only_as_far_as_it_is_plausible() -> None:
    cost = MeasuredCost()
    for _ in range(9):
        cost.learn(0, 500, 1.0)
    cost.learn(4, 500, 80.0)  # the machine was paused
    assert cost.curve(4)[4] == pytest.approx(5.0) and cost.doubtful(4).tolist() == [False, True, True, True, True]
    cost.learn(4, 500, 1.5)
    assert cost.curve(4)[4] == pytest.approx(1.5)
    cost.learn(4, 500, 1.5)
    assert not cost.doubtful(4)[4]


def test_old_times_are_in_doubt() -> None:
    cost = MeasuredCost()
    for _ in range(9):
        cost.learn(0, 500, 1.0)
        cost.learn(4, 500, 20.0)  # dear, and truly so while it was measured
    assert cost.curve(4)[4] == pytest.approx(20.0)
    for _ in range(1100):
        cost.learn(0, 500, 1.0)
    assert cost.curve(4)[4] == pytest.approx(5.0) and cost.doubtful(4)[4]


def test_a_new_context_begins_with_its_neighbours_costs() -> None:
    cost = MeasuredCost(0.1)
    for _ in range(9):
        cost.learn(0, 500, 1.0)
        cost.learn(4, 500, 3.0)
    cost.learn(0, 5_000, 2.0)
    assert cost.curve(4)[4] == pytest.approx(3.0)


def test_threads_may_share_it() -> None:
    cost = MeasuredCost()

    def work(first: int) -> None:
        for step in range(2000):
            cost.learn((first + step) % 300, 100 * 4 ** (step % 9), 1.0)
            assert cost.curve(32)[0] == 1
            if step % 50 == 0:
                cost.state()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert cost.heard == 8000

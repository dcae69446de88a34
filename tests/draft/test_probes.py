from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lookahead.draft.cost import MeasuredCost
from lookahead.draft.policy import Policy
from lookahead.draft.probes import SHARE

BUDGET, STEPS, SETTLED = 64, 900, 600  # a process, and by when it knows the costs
COSTS = st.one_of(st.floats(1e-9, 1e9), st.floats(0.5, 100))
KEPT = st.dictionaries(
    st.integers(0, 6).map(str),
    st.dictionaries(
        st.sampled_from("0 1 2 3 4 6 8 16 24 32 48 64 128 4096".split()),
        st.tuples(COSTS, st.integers(0, 9)).map(list),
        max_size=14,
    ),
    max_size=3,
)
CURVES = st.tuples(st.floats(0.01, 0.9), st.floats(0.3, 1.0))  # 1 + slope k ** power
NOTHING_PAYS = 1 + np.arange(4097) * 1.0


def curve(slope: float, power: float) -> Any:
    return 1 + slope * np.arange(4097) ** power


@dataclass
class Step:
    size: int
    tokens: int
    cost: float
    looks: bool
    rate: float


def run(kept: Any, truth: Any, chance: float, seed: int = 0, plain: float = 0.03) -> list[Step]:
    """Decode with a clock that tells the true costs; every draft is a chain whose tokens are right by `chance`."""
    cost, drawn, steps = MeasuredCost(0.03), np.random.default_rng(seed), list[Step]()
    cost.restore(kept)
    policy, probs = Policy(cost), np.cumprod(np.full(BUDGET, chance)).astype(np.float32)
    for _ in range(STEPS):
        thought_of = probs[probs >= policy.least(BUDGET)]
        size = policy.size(thought_of)
        right = int(np.argmin([*(drawn.random(BUDGET) < chance), False]))
        looks = policy._probes is not None and policy._probes._looks
        steps.append(Step(size, 1 + min(right, size), float(truth[size]), looks, policy.rate))
        policy.learn(steps[-1].tokens, size)
        policy.learn_times(steps[-1].tokens, size, 500, plain * steps[-1].cost, 0.0)
    return steps


def speed(sizes: list[int], truth: Any, chance: float) -> float:
    """Return the tokens for each forward's time that drafts of some sizes are expected to give."""
    tokens = np.concatenate([[1.0], 1 + np.cumprod(np.full(BUDGET, chance)).cumsum()])
    return float(tokens[sizes].sum() / truth[sizes].sum())


SPOILT = {"0": {"0": [1.0, 0], "4": [8.0, 0], "48": [81.0, 0]}}  # once found on a machine that had been paused


@given(KEPT, CURVES, st.floats(0.2, 0.995), st.integers(0, 99), st.floats(1e-4, 1.0))
@example(SPOILT, (0.15, 0.7), 0.9, 0, 0.03)
@example({"0": {"0": [1.0, 0], "128": [1.0, 0]}}, (0.9, 1.0), 0.5, 0, 0.03)
@example({"0": {"0": [1e9, 0], "4": [1e-9, 0]}}, (0.01, 1.0), 0.99, 0, 0.03)
@example({"0": {"0": [1.0, 0], "8": [1.0, 0], "16": [16.0, 0]}}, (0.25, 0.5), 0.9375, 0, 1.0)
def test_whatever_was_kept_drafts_become_those_of_the_true_costs(
    kept: Any, shape: tuple[float, float], chance: float, seed: int, plain: float
) -> None:
    truth = curve(*shape)
    steps = run(kept, truth, chance, seed, plain)
    best = max(speed([size], truth, chance) for size in range(BUDGET + 1))
    assert speed([step.size for step in steps[SETTLED:]], truth, chance) >= 0.7 * best


@given(KEPT, st.sampled_from([NOTHING_PAYS, curve(0.9, 1.0), curve(0.5, 0.9)]), st.floats(0.2, 0.6), st.integers(0, 99))
@example({"0": {str(size): [1.0 + size, 0] for size in (0, 1, 2, 3, 4, 6, 8, 16)}}, NOTHING_PAYS, 0.3, 0)
def test_looking_at_what_is_really_dear_keeps_within_its_share(kept: Any, truth: Any, chance: float, seed: int) -> None:
    steps = run(kept, truth, chance, seed)
    price = [max(0.0, step.cost - step.tokens / step.rate) for step in steps if step.looks]
    assert sum(price) <= SHARE * sum(step.cost for step in steps) + max(price, default=0.0)


@pytest.mark.parametrize("chance", [0.3, 0.9])
def test_spoilt_costs_do_get_looked_at(chance: float) -> None:
    steps = run(SPOILT, curve(0.02, 1.0), chance)
    assert any(step.looks for step in steps)
    assert np.mean([step.size for step in steps[SETTLED:]]) >= 1


def test_without_a_clock_nothing_is_looked_at() -> None:
    cost = MeasuredCost(0.03)
    cost.restore(SPOILT)
    policy, probs = Policy(cost), np.array([0.9, 0.8, 0.7], np.float32)
    sizes = []
    for _ in range(300):
        sizes.append(policy.size(probs))
        policy.learn(1, sizes[-1])
    assert len(set(sizes[150:])) == 1


def test_what_an_earlier_policy_put_aside_serves_the_next_one() -> None:
    cost = MeasuredCost(0.03)
    cost.restore(SPOILT)
    probs, sizes = np.array([0.9, 0.8, 0.7, 0.6], np.float32), []
    for _ in range(60):  # one policy for each call, as where every call makes a new object
        policy = Policy(cost)
        policy._tokens = policy._spent  # nothing was drafted of late
        for _ in range(4):
            sizes.append(policy.size(probs))
            policy.learn_times(1 + sizes[-1], sizes[-1], 500, 0.03 * (1 + 0.03 * sizes[-1]), 0.0)
    assert 4 in sizes[-8:]

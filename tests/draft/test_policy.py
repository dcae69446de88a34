from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lookahead import Drafter
from lookahead.draft.cost import MeasuredCost, cost_of
from lookahead.draft.policy import Policy
from lookahead.tree import Accepted

PROBS = st.lists(st.floats(0.001, 1), max_size=40).map(lambda found: np.array(sorted(found, reverse=True), np.float32))


@given(PROBS, st.floats(0, 1), st.lists(st.tuples(st.integers(1, 40), st.integers(0, 40)), max_size=20))
def test_the_size_earns_most_at_the_rate_so_far(probs: object, slope: float, steps: list[tuple[int, int]]) -> None:
    policy = Policy(cost_of(lambda size: 1 + slope * (size // 4), 40))
    for tokens, size in steps:
        policy.learn(tokens, size)
    found = np.asarray(probs)
    curve = policy.cost.curve(len(found))
    gains = [
        float(found[:size].sum(dtype=np.float64)) - policy.rate * (curve[size] - 1) for size in range(len(found) + 1)
    ]
    size = policy.size(found)
    assert gains[size] == pytest.approx(max(gains), abs=1e-4)
    assert all(gains[fewer] < max(gains) + 1e-4 for fewer in range(size))
    assert size == 0 or found[size - 1] >= policy.least(40) - 1e-4


def test_a_token_that_costs_nothing_is_always_drafted_and_a_dear_one_never() -> None:
    probs = np.array([0.9, 0.5, 0.01], np.float32)
    assert Policy(cost_of("linear:0", 8)).size(probs) == 3
    assert Policy(cost_of("linear:1", 8)).size(probs) == 0


def test_the_rate_follows_what_steps_gave() -> None:
    policy = Policy(cost_of("linear:0.5", 8))
    for _ in range(500):
        policy.learn(6, 4)
    assert policy.rate == pytest.approx(2.0, rel=0.01)


def test_drafting_that_takes_more_than_it_saves_pauses_and_is_tried_again() -> None:
    drafter, pauses = Drafter(), list[bool]()
    drafter.begin([1, 2, 3] * 10)
    for step in range(2000):
        drafter.propose()
        drafter.accept(Accepted([5 + step], [], seconds=1e-9))  # next to drafting such a forward takes no time
        pauses.append(drafter.policy.pauses)
    assert 0.9 < np.mean(pauses) < 1
    assert len(np.flatnonzero(np.diff(pauses))) >= 6


@given(st.floats(0.001, 0.15), st.integers(0, 4), st.floats(1e-4, 1.0))
def test_what_trials_lose_is_one_forward_in_a_hundred_at_most(drafting: float, size: int, forward: float) -> None:
    policy, lost, steps = Policy(MeasuredCost()), 0.0, 4000
    for _ in range(steps):
        lost += 0 if policy.pauses else drafting
        policy.learn_times(1.0, size, 500, forward, 0 if policy.pauses else drafting * forward)
    assert lost <= 0.011 * steps + 32 * drafting


def test_a_pause_is_as_long_as_its_trial_was_dear() -> None:
    waits = []
    for drafting in (0.009, 0.011, 0.03, 0.06, 9.0):
        policy = Policy(MeasuredCost())
        for _ in range(40):
            policy.cost.learn(0, 500, 1.0)  # type: ignore[attr-defined]
            policy.cost.learn(4, 500, 1.0)  # type: ignore[attr-defined]
        for _ in range(32):
            policy.learn_times(1.0, 4, 500, 1.0, drafting)
        waits.append(policy._waiting)
    assert waits == [0, 16, 64, 160, 512]


def test_a_copy_that_has_gone_on_for_a_while_ends_a_pause_once() -> None:
    drafter = Drafter()
    drafter.begin([*range(100)])
    drafter.policy._waiting = 1000
    paused = []
    for token in [200, *range(40, 80)]:
        assert not (drafter.policy.pauses and len(drafter.propose()))
        drafter.accept([token])
        paused.append(drafter.policy.pauses)
    assert paused == [True] * 16 + [False] * 25
    assert drafter.propose(3).tokens.tolist() == [80, 81, 82]
    drafter.policy._waiting = 1000
    for token in range(80, 99):
        drafter.accept([token])
    assert drafter.policy.pauses, "the same copy does not end the next one"


def test_drafting_that_finds_nothing_pauses_as_soon_as_it_has_lost_what_a_trial_may() -> None:
    pauses = {}
    for drafting in (0.001, 0.005, 0.05, 0.5):
        policy, before = Policy(MeasuredCost(), rows=16), 0
        while not policy.pauses and before < 40:
            policy.learn_times(1.0, 0, 500, 1.0, drafting)
            before += 1
        pauses[drafting] = before
    assert pauses == {0.001: 40, 0.005: 40, 0.05: 7, 0.5: 1}


def test_a_pause_goes_on_when_rows_have_ended() -> None:
    many, few = Policy(MeasuredCost(), rows=16), Policy(MeasuredCost(), rows=12)
    many.learn_times(1.0, 0, 500, 1.0, 0.5)
    few.go_on(many)
    assert many.pauses and few.pauses


def test_drafts_that_fail_are_tried_for_a_whole_trial() -> None:
    policy = Policy(MeasuredCost())
    for step in range(32):
        assert not policy.pauses, step
        policy.learn_times(1.0, 4, 500, 1.0, 0.5)
    assert policy.pauses


def test_the_model_is_asked_for_its_second_thoughts_seldom_where_nothing_is_drafted() -> None:
    policy, asked = Policy(cost_of("linear:0.03", 8)), []
    for _ in range(400):
        asked.append(policy.listens)
        policy.learn(1, 0)
    assert all(asked[:8]) and 25 <= sum(asked[8:]) <= 60
    assert any(asked[-17:]), "but never for long"
    policy.learn(3, 2)
    assert policy.listens


def test_what_is_said_in_a_pause_is_known_after_it() -> None:
    drafter = Drafter()
    drafter.begin([1, 2, 3])
    drafter.policy._waiting = 2
    assert len(drafter.propose()) == 0
    for tokens in ([7, 8, 9, 10, 11], [12, 7, 8]):
        assert len(drafter.propose()) == 0
        drafter.accept(Accepted(tokens, [], seconds=1.0))
    assert not drafter.policy.pauses
    assert drafter.propose(3).tokens.tolist() == [9, 10, 11]


def test_drafting_that_pays_goes_on() -> None:
    drafter = Drafter()
    drafter.begin([*range(100)] * 3)
    for step in range(200):
        draft = drafter.propose(4)
        drafter.accept(Accepted([*draft.tokens.tolist(), (step + 4) % 100], [*range(len(draft))], seconds=0.1))
        assert not drafter.policy.pauses


def test_a_given_cost_drafts_alike_whatever_the_clock_says() -> None:
    drafts = []
    for seconds in (None, 1e-9, 9.0):
        drafter = Drafter(cost="linear:0.03")
        drafter.begin([1, 2, 3, 4] * 9)
        said = []
        for step in range(100):
            said.append(drafter.propose().tokens.tolist())
            drafter.accept(Accepted([step % 5], [], seconds=seconds))
        drafts.append(said)
    assert drafts[0] == drafts[1] == drafts[2]


def test_measured_costs_decide() -> None:
    cheap, dear = MeasuredCost(), MeasuredCost()
    for _ in range(40):
        for size in (0, 8, 32):
            cheap.learn(size, 100, 1.0)
            dear.learn(size, 100, 1.0 + size)
    probs = np.linspace(0.9, 0.3, 32).astype(np.float32)
    assert Policy(cheap).size(probs) == 32
    assert Policy(dear).size(probs) == 0


def failed(times: int) -> Policy:
    """Return a policy of which some drafts of two likely tokens were refused as a whole."""
    policy = Policy(cost_of("linear:0.2", 64))
    for _ in range(30):
        policy.learn(1, 0)  # so that a token is worth a forward
    for _ in range(times):
        policy.size(np.array([0.6, 0.5], np.float32))
        policy.learn(1, 2)
    return policy


def test_after_drafts_that_failed_a_doubtful_token_waits_and_a_long_copy_does_not() -> None:
    doubtful, copy = np.array([0.4], np.float32), np.full(40, 0.9, np.float32)
    assert failed(0).size(doubtful) == 1
    policy = failed(5)
    assert policy.size(doubtful) == 0
    assert policy.size(copy) == 40
    for _ in range(100):
        policy.learn(1, policy.size(np.empty(0, np.float32)))
    assert policy.size(doubtful) == 1  # that is long ago


def test_drafts_that_keep_what_they_promise_are_trusted() -> None:
    policy, draws = Policy(cost_of("linear:0", 8)), np.random.default_rng(0)
    trusts = []
    for _ in range(500):
        policy.size(np.cumprod(np.full(8, 0.7, np.float32)))
        policy.learn(1 + int(np.argmin([*(draws.random(8) < 0.7), False])), 8)
        trusts.append(policy.trust)
    assert max(trusts) <= 1
    assert np.mean(trusts) > 0.85


@given(st.integers(1, 9), st.lists(st.tuples(PROBS, st.integers(0, 41)), max_size=60))
@example(4, [(np.full(3, 0.9, np.float32), 0)] * 60)  # rows that ended
def test_trust_is_a_share_whatever_comes(rows: int, steps: list[tuple[np.ndarray, int]]) -> None:  # type: ignore[type-arg]
    policy = Policy(cost_of("linear:0.01", 40), rows)
    for probs, tokens in steps:
        size = policy.size(probs)
        policy.learn(min(tokens, size + rows), size)
        assert 0 < policy.trust <= 1
        assert 0 < policy.least(40) <= 1


@given(st.floats(0, 2), st.integers(1, 200), st.integers(0, 8))
def test_a_draft_risks_one_forward_and_twice_as_much_for_each_promise_that_was_kept(
    slope: float, budget: int, kept: int
) -> None:
    policy = Policy(cost_of(lambda size: 1 + slope * size, budget))
    for _ in range(kept):
        policy.size(np.array([1.0], np.float32))
        policy.learn(2, 1)
    most = policy.most(budget)
    assert min(budget, 16) <= most <= budget
    assert most <= 16 or most * slope <= 2**kept + 1e-6
    assert most == budget or (most + 1) * slope > 1 - 1e-6


def test_what_the_first_words_of_a_text_promise_is_not_believed_at_once() -> None:
    drafter = Drafter(cost="linear:0.1", budget=128)
    drafter.begin([*range(400), *range(100, 140)])
    sizes = []
    for _ in range(4):
        sizes.append(len(drafter.propose()))
        drafter.accept([*range(drafter.context - 300, drafter.context - 299 + sizes[-1])])
    assert sizes[0] == 16
    assert sizes == sorted(sizes)
    assert sizes[-1] >= 40


def test_a_long_copy_is_drafted_where_the_first_token_costs_as_much_as_two_forwards() -> None:
    drafter = Drafter(cost=lambda size: 3.5 if size else 1.0, budget=64)
    drafter.begin([*range(400), *range(100, 140)])
    assert len(drafter.propose()) >= 16

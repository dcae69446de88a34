from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lookahead import Draft
from lookahead.verify.acceptance import accept_drawn, choose, likeliest
from lookahead.verify.sequence import Sequence
from lookahead.verify.walk import Verifier
from tests.trees import tree

SYMBOLS = 4


def test_greedy_takes_the_first_maximum() -> None:
    assert choose(torch.tensor([[1.0, 3.0, 3.0, 2.0]]), do_sample=False).tolist() == [1]
    assert choose(torch.zeros(1, 9), do_sample=False).tolist() == [0]
    assert choose(torch.tensor([[float("-inf"), -5.0, float("-inf")]]), do_sample=False).tolist() == [1]


@given(st.lists(st.floats(-30, 30, width=32), min_size=1, max_size=20), st.integers(0, 2**31))
def test_a_draw_is_the_one_that_torch_makes_from_the_same_seed(scores: list[float], seed: int) -> None:
    row = torch.tensor([scores])
    torch.manual_seed(seed)
    expected = torch.multinomial(torch.softmax(row, dim=-1), num_samples=1)[:, 0]
    after = torch.get_rng_state()
    torch.manual_seed(seed)
    drawn = choose(row, do_sample=True)
    assert torch.equal(drawn, expected)
    assert (drawn.dtype, drawn.shape) == (torch.int64, (1,))
    assert torch.equal(torch.get_rng_state(), after)


def test_greedy_leaves_the_generator_alone() -> None:
    before = torch.get_rng_state()
    choose(torch.zeros(1, 9), do_sample=False)
    assert torch.equal(torch.get_rng_state(), before)


def test_what_has_no_probability_is_never_drawn() -> None:
    scores = torch.tensor([[0.0, float("-inf"), 0.0]])
    torch.manual_seed(0)
    assert {int(choose(scores, do_sample=True)) for _ in range(200)} == {0, 2}


def logits_behind(token: int) -> torch.Tensor:
    """Return the toy target's logits: they depend on the last token only, and every token has some probability."""
    return torch.randn(SYMBOLS, generator=torch.Generator().manual_seed(token)) * 1.5


def two_tokens(draft: Draft) -> tuple[int, int]:
    """Sample two tokens behind token 0 from the toy target by walking a draft; a walk that ends early goes on."""
    sequence = Sequence(torch.zeros(1, 1, dtype=torch.long))
    verifier = Verifier(sequence, None, None, True, frozenset(), 3, on_token=lambda token, source: None)
    while len(sequence) < 3:
        rows = [int(sequence.ids[0, -1]), *draft.tokens.tolist()]
        verifier.walk(draft, torch.stack([logits_behind(token) for token in rows]))
        draft = Draft.empty()
    first, second = sequence.ids[0, 1:].tolist()
    return first, second


DRAFTS: dict[str, dict[int, Any]] = {
    "nothing": {},
    "a chain": {1: {2: {3: {}}}},
    "two branches": {1: {0: {}, 3: {}}, 2: {2: {}}},
    "all there is": {token: {other: {} for other in range(SYMBOLS)} for token in range(SYMBOLS)},
}


@pytest.mark.parametrize("name", DRAFTS)
def test_walking_a_tree_gives_the_distribution_of_the_target(name: str) -> None:
    torch.manual_seed(0)
    count, draft = 3000, tree(DRAFTS[name])
    seen = Counter(two_tokens(draft) for _ in range(count))
    start = torch.softmax(logits_behind(0).double(), dim=-1)
    statistic = 0.0
    for first, second in itertools.product(range(SYMBOLS), repeat=2):
        expected = count * float(start[first] * torch.softmax(logits_behind(first).double(), dim=-1)[second])
        statistic += (seen[first, second] - expected) ** 2 / expected
    assert statistic < 45  # chi-square with 15 degrees of freedom passes it once in 13,000 times; the seed is fixed


def test_a_seed_gives_the_same_tokens_with_any_draft() -> None:
    found = []
    for nested in DRAFTS.values():
        torch.manual_seed(7)
        found.append([two_tokens(tree(nested)) for _ in range(50)])
    assert all(tokens == found[0] for tokens in found)


@given(st.integers(1, 4), st.integers(1, 9000), st.integers(1, 12), st.integers(0, 2**16), st.booleans())
def test_the_likeliest_are_topk_of_the_softmax(rows: int, size: int, count: int, seed: int, ties: bool) -> None:
    logits = 3 * torch.randn(rows, size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    logits = logits.round() if ties else logits
    tokens, shares = likeliest(logits, count)
    expected = logits.softmax(-1).topk(min(count, size))
    assert tokens.shape == shares.shape == expected.values.shape
    torch.testing.assert_close(torch.from_numpy(shares), expected.values.float(), rtol=1e-4, atol=1e-6)
    assert all(len(set(row)) == len(row) for row in tokens.tolist())
    torch.testing.assert_close(logits.softmax(-1).gather(1, torch.from_numpy(tokens)), expected.values)


def exact_enough(counts: torch.Tensor, expected: torch.Tensor) -> bool:
    """Chi-square against exact probabilities, at about four standard deviations."""
    total, freedom = counts.sum(), len(counts) - 1
    statistic = float(((counts - total * expected) ** 2 / (total * expected)).sum())
    return statistic < freedom + 4 * (2 * freedom) ** 0.5


@pytest.mark.parametrize("offered", [1, 2, 3, 5])
def test_offered_tokens_change_nothing_in_the_distribution(offered: int) -> None:
    torch.manual_seed(offered)
    scores, q = torch.randn(1, 5) * 2, torch.softmax(torch.randn(5), dim=0)
    counts, kept, rounds = torch.zeros(5), 0, 6000
    for _ in range(rounds):
        tokens = torch.multinomial(q, offered).tolist()  # without replacement, as siblings differ
        token = accept_drawn(scores, tokens, q)
        counts[token] += 1
        kept += token in tokens
    p = torch.softmax(scores[0], dim=0)
    assert exact_enough(counts, p)
    if offered == 1:
        assert abs(kept / rounds - float(torch.minimum(p, q).sum())) < 0.06  # what the rule gains, and no more


def test_a_wrong_rule_would_be_noticed() -> None:
    torch.manual_seed(0)
    scores, q = torch.randn(1, 5) * 2, torch.softmax(torch.randn(5), dim=0)
    counts = torch.zeros(5)
    for _ in range(6000):
        counts[torch.multinomial(q, 1)] += 1
    assert not exact_enough(counts, torch.softmax(scores[0], dim=0))


def test_a_smaller_and_a_larger_vocabulary_of_the_other_model() -> None:
    scores = torch.tensor([[0.0, 1.0, 2.0]])
    assert accept_drawn(scores, [1], torch.tensor([0.0, 1.0])) in (0, 1, 2)
    assert accept_drawn(scores, [2], torch.tensor([0.0, 0.0, 0.5, 0.5])) in (0, 1, 2)

"""The replay counts right, and the peers written here keep their rule: checked against slow and obvious twins."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.peers import PromptLookup
from lookahead import Drafter
from lookahead.bench.copy_limit import CopyLimit
from lookahead.bench.ngrams import Ngrams
from lookahead.bench.replay import Tally, replay
from lookahead.bench.tasks import FORMATS, Edit, forms, render
from lookahead.hf import smollm2
from lookahead.tree import Accepted, Draft

TEXTS = st.lists(st.integers(0, 3), min_size=1, max_size=60)


def longest_earliest(text: list[int], least: int, most: int, budget: int) -> list[int]:
    """Return what vLLM's rule drafts, in so many words."""
    for length in range(most, least - 1, -1):
        for start in range(len(text) - length):
            if length <= len(text) and text[start : start + length] == text[len(text) - length :]:
                return text[start + length : start + length + budget]
    return []


@given(text=TEXTS, least=st.integers(1, 3), more=st.integers(0, 3), budget=st.integers(1, 8))
def test_the_ngram_rule_takes_the_longest_match_and_the_earliest(
    text: list[int], least: int, more: int, budget: int
) -> None:
    drafter = Ngrams(least, least + more)
    drafter.begin(text[:-1])
    drafter.accept(Accepted(text[-1:]))
    assert drafter.propose(budget).tokens.tolist() == longest_earliest(text, least, least + more, budget)


@given(text=TEXTS, ngram=st.integers(1, 4), tokens=st.integers(1, 6))
def test_prompt_lookup_drafts_as_in_transformers(text: list[int], ngram: int, tokens: int) -> None:
    ours, stock = Ngrams(1, ngram, tokens), PromptLookup(4, tokens, ngram)
    for drafter in (ours, stock):
        drafter.begin(text[:1])
        drafter.accept(Accepted(text[1:]))
    assert ours.propose(99).tokens.tolist() == stock.propose(99).tokens.tolist()
    assert ours.propose(2).tokens.tolist() == stock.propose(2).tokens.tolist()


@given(text=TEXTS, form=TEXTS, rest=TEXTS, budget=st.integers(0, 8))
def test_the_copy_limit_copies_the_longest_piece(
    text: list[int], form: list[int], rest: list[int], budget: int
) -> None:
    drafter = CopyLimit()
    drafter.forms = [form]
    drafter.begin(text)
    drafter.foresee(rest)
    longest = 0
    for length in range(1, min(budget, len(rest)) + 1):
        said = text + rest[:length]
        inside = [form[at : at + length] for at in range(len(form) - length + 1)]
        before = [said[at : at + length] for at in range(len(text))]
        longest = length if rest[:length] in inside + before else longest
    assert drafter.propose(budget).tokens.tolist() == rest[:longest]


class Reciter:
    """A drafter that says the same each time."""

    def __init__(self, draft: Draft) -> None:
        self.draft, self.heard = draft, list[int]()

    def begin(self, prompt: list[int]) -> None:
        self.heard = list(prompt)

    def propose(self, budget: int) -> Draft:
        return self.draft.truncate(budget)

    def accept(self, accepted: Accepted) -> None:
        self.heard += accepted.tokens


def test_forwards_give_what_was_right_and_one_more() -> None:
    drafter = Reciter(Draft.chain([1, 2, 3]))
    tally = replay(drafter, [9], [1, 1, 2, 4, 1, 2, 3, 5, 7], budget=4)
    # 1 by the prefill; 1 2 4 with two right; 1 2 3 5 with three; 7, for which nothing needs to be drafted
    assert drafter.heard == [9, 1, 1, 2, 4, 1, 2, 3, 5, 7]
    assert (tally.tokens, tally.forwards, tally.drafted, tally.accepted) == (9, 4, 6, 5)
    assert (tally.tokens_per_forward, tally.acceptance_rate) == (9 / 4, 5 / 6)
    cost = 1 + 0.5 * np.arange(5)
    assert tally.per_cost(cost) == 9 / (1 + 2.5 + 2.5 + 1)
    assert tally.per_least_cost(cost) == 9 / (1 + 2 + 2.5 + 1)
    twice = Tally()
    twice += tally
    twice += tally
    assert (twice.tokens, twice.tokens_per_forward) == (18, tally.tokens_per_forward)
    assert twice.per_cost(cost) == tally.per_cost(cost)


@pytest.fixture(scope="module")
def edit() -> Edit:
    before = "".join(f"value_{number} = compute({number * 7 % 31})\n" for number in range(40))
    return Edit("values.py", "Log value 20.", before, before.replace("value_20 =", "logged = value_20 ="))


@pytest.mark.model
@pytest.mark.parametrize("form", FORMATS)
def test_nobody_copies_more_than_the_copy_limit(form: str, edit: Edit) -> None:
    tokenizer = smollm2.load_tokenizer()
    prompt, answer = render(edit, form, tokenizer)
    limit = CopyLimit()
    limit.forms = forms(edit, form, tokenizer)
    most = replay(limit, prompt, answer, 16, CopyLimit.foresee)
    assert most.acceptance_rate == 1
    for drafter in (Ngrams(), Ngrams(1, 5), Drafter(cost="linear:0", budget=16, tree=False)):
        assert replay(drafter, prompt, answer, 16).forwards >= most.forwards

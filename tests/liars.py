"""Drafters that lie: drafts that no honest drafter makes, in the place of its own."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from lookahead.draft.batch import Batch
from lookahead.draft.drafter import Drafter
from lookahead.tree import Draft

MOST = 2**31 - 1
PROBS = (float("nan"), float("inf"), -float("inf"), 0.0, -1.0, 1e30, 1.0)


class Lie:
    """What a lie may be made of: the true next tokens, what the model knows, how much was asked for, and chance."""

    def __init__(self, truth: list[int], vocabulary: int, budget: int, chance: random.Random) -> None:
        self.truth, self.vocabulary, self.budget, self.chance = truth, vocabulary, budget, chance

    def known(self, count: int) -> list[int]:
        return [self.chance.randrange(self.vocabulary) for _ in range(count)]

    def unknown(self) -> int:
        return self.chance.choice([-1, -100, -MOST - 1, self.vocabulary, self.vocabulary + 1, MOST])

    def draft(self, tokens: list[int], parents: list[int] | None = None) -> Draft:
        probs = np.array([self.chance.choice(PROBS) for _ in tokens], np.float32)
        above = np.array(range(-1, len(tokens) - 1) if parents is None else parents, np.int32)
        return Draft(np.array(tokens, np.int32), above, probs, ("lie",) * len(tokens))


def nothing(lie: Lie) -> Draft:
    return Draft.empty()


def unknown_tokens(lie: Lie) -> Draft:
    return lie.draft([lie.unknown() for _ in range(lie.budget)])


def truth_and_an_unknown_token(lie: Lie) -> Draft:
    tokens = lie.truth[: lie.budget]
    place = lie.chance.randint(0, len(tokens))
    return lie.draft([*tokens[:place], lie.unknown(), *tokens[place:]])


def flood(lie: Lie) -> Draft:
    """Ends, padding, or one token again and again."""
    return lie.draft([lie.chance.choice([0, 1, 2, 5, lie.vocabulary - 1])] * lie.budget)


def truth_with_ends_in_it(lie: Lie) -> Draft:
    return lie.draft([lie.chance.choice([token, token, token, 2, 0]) for token in lie.truth[: lie.budget]])


def longer_than_asked_for(lie: Lie) -> Draft:
    return lie.draft([*lie.truth, *lie.known(lie.budget + 40)])


def wide(lie: Lie) -> Draft:
    return lie.draft([token % lie.vocabulary for token in range(lie.budget)], [-1] * lie.budget)


def truth_among_twins(lie: Lie) -> Draft:
    """Every true token stands there several times, as siblings that only one of which goes on."""
    tokens, parents, above = list[int](), list[int](), -1
    for token in lie.truth[: lie.budget // 3]:
        going_on = lie.chance.randrange(3)
        parents += [above] * 3
        tokens += [token] * 3
        above = len(tokens) - 3 + going_on
    return lie.draft(tokens, parents)


def truth_in_a_thicket(lie: Lie) -> Draft:
    """The true path, its nodes scattered among others that hang anywhere before them."""
    tokens, parents, above, left = list[int](), list[int](), -1, list(lie.truth)
    for node in range(lie.budget):
        if left and lie.chance.random() < 0.5:
            tokens.append(left.pop(0))
            parents.append(above)
            above = node
        else:
            tokens.append(lie.chance.choice([*lie.known(1), *lie.truth[:2]]))
            parents.append(lie.chance.randint(-1, node - 1))
    return lie.draft(tokens, parents)


def parents_that_are_none(lie: Lie) -> Draft:
    """The truth, but somewhere a parent stands behind its child, is the child itself, or does not exist."""
    tokens = lie.truth[: lie.budget]
    parents = list(range(-1, len(tokens) - 1))
    for node in range(len(tokens)):
        if lie.chance.random() < 0.2:
            parents[node] = lie.chance.choice([node, node + 1, len(tokens), MOST, -2, -MOST - 1])
    return lie.draft(tokens, parents)


LIES: dict[str, Callable[[Lie], Draft]] = {
    lie.__name__: lie
    for lie in (
        nothing,
        unknown_tokens,
        truth_and_an_unknown_token,
        flood,
        truth_with_ends_in_it,
        longer_than_asked_for,
        wide,
        truth_among_twins,
        truth_in_a_thicket,
        parents_that_are_none,
    )
}


@contextlib.contextmanager
def lying(names: list[str], answers: list[list[int]], vocabulary: int, seed: int = 0) -> Iterator[list[int]]:
    """Replace what drafters propose by these lies in turn; `answers` are what each row will have said in the end.

    Gives the sizes of the lies told so far.
    """
    chance, told, rows = random.Random(seed), list[int](), dict[Drafter, int]()
    begin, honest, honest_batch = Drafter.begin, Drafter.propose, Batch.propose

    def begin_row(drafter: Drafter, *args: Any) -> None:
        rows[drafter] = len(rows)
        begin(drafter, *args)

    def lie(drafter: Drafter, budget: int | None) -> Draft:
        name, size = names[len(told) % len(names)], drafter.allowed(budget)
        draft = LIES[name](Lie(answers[rows[drafter]][drafter.context :], vocabulary, size, chance))
        told.append(len(draft))
        return draft

    def propose(drafter: Drafter, budget: int | None = None) -> Draft:
        if chance.random() < 0.5:
            honest(drafter, budget)  # what it hears next is of another draft than it thought of
        return lie(drafter, budget)

    def propose_rows(batch: Batch, budgets: list[int]) -> list[Draft]:
        if chance.random() < 0.5:
            honest_batch(batch, budgets)
        return [lie(drafter, budget) for drafter, budget in zip(batch.drafters, budgets, strict=True)]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Drafter, "begin", begin_row)
        patch.setattr(Drafter, "propose", propose)
        patch.setattr(Batch, "propose", propose_rows)
        yield told

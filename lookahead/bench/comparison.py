"""What drafting would gain on edit tasks: lookahead beside prompt lookup and the limit of copying."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..draft.drafter import Drafter
from .copy_limit import CopyLimit
from .ngrams import Ngrams
from .replay import Tally, replay
from .tasks import Edit, forms, render

__all__ = ["LIMIT", "LOOKAHEAD", "Expense", "Gain", "compare"]

LOOKAHEAD, LIMIT = "lookahead", "copy limit"
_NGRAMS = (2, 5)


@dataclass(frozen=True)
class Expense:
    """What a forward takes.

    Attributes
    ----------
    name : str
        How it is called in tables.
    curve : float64 [budget + 1]
        Forwards without a draft that a forward with k draft tokens costs.
    seconds : float or None
        What a forward without a draft takes; None where that is not known, and then drafting is taken to cost nothing.
    """

    name: str
    curve: NDArray[np.float64]
    seconds: float | None = None

    def speed(self, tally: Tally) -> float:
        """Return how many times as fast as plain decoding, a forward for each token, some answers were.

        Reading the prompt is left out of the model's time on both sides.
        """
        drafting = (tally.drafting + tally.reading) / self.seconds if self.seconds else 0.0
        return tally.tokens / (tally.cost(self.curve) + drafting)


@dataclass(frozen=True)
class Gain:
    """What one drafter did.

    Attributes
    ----------
    drafter : str
        Its name, with its setting.
    tallies : dict of str to Tally
        Its counts for each format.
    """

    drafter: str
    tallies: dict[str, Tally]

    @property
    def total(self) -> Tally:
        """The counts of all formats together."""
        total = Tally()
        for tally in self.tallies.values():
            total += tally
        return total


def compare(
    edits: Sequence[Edit],
    formats: Sequence[str],
    tokenizer: Any,
    budget: int,
    expenses: Sequence[Expense],
    done: Callable[[], object] = lambda: None,
) -> list[list[Gain]]:
    """Replay all tasks in all formats with each drafter, which learns from task to task.

    Returns for each expense: prompt lookup at its defaults in transformers, the same at the best of its settings for
    this expense, lookahead, which knows the expense, and the copy limit. `done` is called after each task in each
    format.
    """
    lookups: dict[str, Any] = {"prompt lookup (10, n=2)": Ngrams(1, 2, 10)}
    lookups |= {f"prompt lookup ({budget}, n={ngram})": Ngrams(1, ngram) for ngram in _NGRAMS}
    ours = [Drafter(tokenizer, budget=budget, cost=_cost(expense)) for expense in expenses]
    drafters = [*lookups.values(), *ours, CopyLimit()]
    names = [*lookups, *[LOOKAHEAD] * len(ours), LIMIT]
    gains = [Gain(name, {form: Tally() for form in formats}) for name in names]
    for edit in edits:
        for form in formats:
            prompt, answer = render(edit, form, tokenizer)
            for drafter, gain in zip(drafters, gains, strict=True):
                observe = None
                if isinstance(drafter, CopyLimit):
                    drafter.forms, observe = forms(edit, form, tokenizer), CopyLimit.foresee
                gain.tallies[form] += replay(drafter, prompt, answer, budget, observe)
            done()
    found = []
    for expense, own in zip(expenses, gains[len(lookups) : -1], strict=True):
        best = max(gains[: len(lookups)], key=lambda gain: expense.speed(gain.total))
        found.append([gains[0], *([best] if best is not gains[0] else []), own, gains[-1]])
    return found


def _cost(expense: Expense) -> Callable[[int], float]:
    """Return an expense as an option of drafting."""
    return lambda size: float(expense.curve[size])

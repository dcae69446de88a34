"""Tokens per forward without a model: ``python -m benchmarks.replay --tasks FILE.jsonl --budget 32``.

Every drafter runs over the same recorded answers: it is asked for a draft, told what the answer really says, and asked
again; a forward gives the drafted tokens that were right and one more. FILE is read by `benchmarks.tasks.read_edits`.
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from benchmarks.costs import time_forwards
from benchmarks.peers import Arctic, PromptLookup
from benchmarks.tasks import FORMATS, Edit, read_edits, render
from examples import smollm2
from lookahead import Drafter
from lookahead.draft.cost import MeasuredCost, cost_of
from lookahead.tree import Accepted

Curve: TypeAlias = NDArray[np.float64]
LENGTHS = (4, 8, 12, 16, 24, 32, 48, 64)


class Reliability:
    """What was expected of drafted tokens against what came of them, in ten classes of probability."""

    def __init__(self) -> None:
        self.counts, self.expected, self.hits = (np.zeros(10) for _ in range(3))

    def add(self, row: int, prob: float, hit: bool) -> None:
        """Count one drafted token."""
        self.counts[row] += 1
        self.expected[row] += prob
        self.hits[row] += hit

    def __iadd__(self, other: Reliability) -> Reliability:
        """Add another's counts."""
        self.counts += other.counts
        self.expected += other.expected
        self.hits += other.hits
        return self

    @property
    def error(self) -> float:
        """Expected calibration error: the mean distance of prediction and observation, weighted by tokens."""
        return float(np.abs(self.expected - self.hits).sum() / max(1.0, self.counts.sum()))


class Tally:
    """Counts of one drafter over many answers."""

    def __init__(self) -> None:
        self.tokens = self.forwards = self.drafted = self.read = 0
        self.reading = self.drafting = 0.0
        self.sizes: Counter[int] = Counter()
        self.right: Counter[int] = Counter()
        self.reliability = Reliability()

    @property
    def tokens_per_forward(self) -> float:
        """Emitted tokens per forward, the prefill counted as one."""
        return self.tokens / self.forwards

    def per_cost(self, cost: Curve) -> float:
        """Tokens per cost of a forward without draft."""
        return self.tokens / (1 + sum(count * float(cost[size]) for size, count in self.sizes.items()))

    def per_least_cost(self, cost: Curve) -> float:
        """Return the same had just what was right of each draft been sent: what no choice of lengths can pass."""
        return self.tokens / (1 + sum(count * float(cost[size]) for size, count in self.right.items()))

    def __iadd__(self, other: Tally) -> Tally:
        """Add another's counts."""
        self.tokens, self.forwards = self.tokens + other.tokens, self.forwards + other.forwards
        self.drafted, self.drafting = self.drafted + other.drafted, self.drafting + other.drafting
        self.read, self.reading = self.read + other.read, self.reading + other.reading
        self.sizes += other.sizes
        self.right += other.right
        self.reliability += other.reliability
        return self


def replay(
    drafter: Any,
    prompt: list[int],
    answer: list[int],
    budget: int,
    observe: Callable[[Any, list[int]], None] | None = None,
) -> Tally:
    """Run a drafter over one answer; `observe` is shown it before each draft, and what the answer really says next."""
    tally, started = Tally(), time.perf_counter()
    drafter.begin(prompt)
    tally.read, tally.reading = len(prompt), time.perf_counter() - started
    drafter.accept(Accepted(answer[:1]))
    at, tally.tokens, tally.forwards = 1, len(answer), 1
    while at < len(answer):
        if observe is not None:
            observe(drafter, answer[at:])
        started = time.perf_counter()
        draft = drafter.propose(min(budget, len(answer) - at - 1))
        tally.drafting += time.perf_counter() - started
        path = draft.follow(answer[at:])
        accepted = Accepted(answer[at : at + len(path) + 1], path)
        started = time.perf_counter()
        drafter.accept(accepted)
        tally.drafting += time.perf_counter() - started
        at += len(path) + 1
        tally.forwards += 1
        tally.drafted += len(draft)
        tally.sizes[len(draft)] += 1
        tally.right[len(path)] += 1
        for prob, node in zip(draft.probs.tolist(), range(len(draft)), strict=True):
            tally.reliability.add(min(int(prob * 10), 9), prob, node in path)
    return tally


def drafters(tokenizer: Any, budget: int) -> dict[str, Callable[[], Any]]:
    """Return what makes each drafter; the peers at their defaults and at the best settings that we found."""
    made: dict[str, Callable[[], Any]] = {
        "prompt lookup (10)": PromptLookup,
        f"prompt lookup ({budget}, n=5)": lambda: PromptLookup(budget, 5),
        "lookahead": lambda: Drafter(tokenizer, budget=budget),
    }
    if Arctic.installed:
        made["Arctic (factor 1)"] = lambda: Arctic(1.0)
        made["Arctic (factor 4)"] = lambda: Arctic(4.0)
    return made


def main() -> None:
    """Replay and print one table of formats, one of languages."""
    parser = argparse.ArgumentParser(description="Tokens per forward of every drafter on recorded answers.")
    parser.add_argument("--tasks", type=Path, required=True, help="JSON lines with path, instruction, before, after")
    parser.add_argument("--budget", type=int, default=32, help="most tokens drafted in one forward")
    parser.add_argument("--formats", nargs="+", default=FORMATS, choices=FORMATS, metavar="FORMAT")
    parser.add_argument(
        "--sample", type=int, help="so many tasks, drawn at random with a fixed seed; all when left out"
    )
    parser.add_argument("--context", type=int, default=0, help="other tasks' files come first, up to so many tokens")
    parser.add_argument("--cost", help="linear:0.03, linear:0.002, ... or measured (SmolLM2, here, at 2k tokens)")
    parser.add_argument("--only", nargs="+", help="names of the drafters to run, by their beginning")
    given = parser.parse_args()
    tokenizer = smollm2.load_tokenizer()
    made = drafters(tokenizer, given.budget)
    made = {name: make for name, make in made.items() if not given.only or name.startswith(tuple(given.only))}
    by_format: defaultdict[tuple[str, str], Tally] = defaultdict(Tally)
    by_language: defaultdict[tuple[str, str], Tally] = defaultdict(Tally)
    running = {name: make() for name, make in made.items()}
    edits = list(read_edits(given.tasks))
    for drafter in running.values():
        replay(drafter, *render(edits[0], "diff", tokenizer), given.budget)  # loads what loads once
    for edit in edits_of(edits, given.sample):
        for form in given.formats:
            prompt, answer = render(edit, form, tokenizer, others(edit, edits, given.context))
            for name, drafter in running.items():
                tally = replay(drafter, prompt, answer, given.budget)
                by_format[form, name] += tally
                by_language[edit.fence, name] += tally
    show("format", list(given.formats), list(made), by_format)
    show("language", sorted({language for language, _ in by_language}), list(made), by_language)
    if given.cost:
        show_costs(edits_of(edits, given.sample), given, tokenizer)
    for name in made:
        tallies = [by_format[form, name] for form in given.formats]
        steps = sum(tally.forwards for tally in tallies)
        drafted = sum(tally.drafted for tally in tallies)
        reading = 1e6 * sum(tally.reading for tally in tallies) / sum(tally.read for tally in tallies)
        seconds = [1e6 * tally.drafting / tally.forwards for tally in tallies]
        print(
            f"{name}: {drafted / steps:.1f} tokens drafted per forward; reading the prompt took {reading:.2f} us a "
            "token, drafting, us per forward: "
            + ", ".join(f"{form} {micros:.0f}" for form, micros in zip(given.formats, seconds, strict=True))
        )
    if not Arctic.installed:
        print("Arctic is not installed here; see benchmarks/README.md")


def edits_of(edits: list[Edit], sample: int | None) -> list[Edit]:
    """Return all edits, or so many at random."""
    return random.Random(0).sample(edits, sample) if sample else edits


def measured() -> Curve:
    """Return what SmolLM2's forwards cost here, measured anew with alternating sizes."""
    cost, model = MeasuredCost(), smollm2.load()[0]
    time_forwards(model, cost, context=2000, rounds=5)
    return cost.curve(max(LENGTHS))


def show_costs(edits: list[Edit], given: argparse.Namespace, tokenizer: Any) -> None:
    """Print tokens per cost: the policy's, every fixed length's, and the most that lengths could give."""
    curve = measured() if given.cost == "measured" else cost_of(given.cost, max(LENGTHS)).curve(max(LENGTHS))
    budget, rows = max(LENGTHS), list[list[float]]()
    policy = Drafter(tokenizer, budget=budget, cost=lambda size: float(curve[size]))
    total, forms = Tally(), [*given.formats, "all"]
    tallies: dict[str, list[Tally]] = {"policy": []}
    for form in given.formats:
        streams = [render(edit, form, tokenizer) for edit in edits]
        made = {"policy": policy} | {
            f"fixed {size}": Drafter(tokenizer, budget=size, cost="linear:0", tree=False) for size in LENGTHS
        }
        for name, drafter in made.items():
            tally = Tally()
            for prompt, answer in streams:
                tally += replay(drafter, prompt, answer, budget)
            tallies.setdefault(name, []).append(tally)
    print(f"\n| tokens per cost of a forward ({given.cost}) | " + " | ".join(forms) + " |")
    print("|---" * (len(forms) + 1) + "|")
    for name, row in tallies.items():
        total = Tally()
        for tally in row:
            total += tally
        rows.append([tally.per_cost(curve) for tally in (*row, total)])
        print(f"| {name} | " + " | ".join(f"{value:.2f}" for value in rows[-1]) + " |")
        if name == "policy":
            reliability = total.reliability
        if name == f"fixed {budget}":
            best = [tally.per_least_cost(curve) for tally in (*row, total)]
            print("| that, cut where it fails | " + " | ".join(f"{value:.2f}" for value in best) + " |")
    gains = np.array(rows[0]) / np.array(rows[1:]).max(axis=0)
    print("| policy over the best fixed length | " + " | ".join(f"{gain:.2f}" for gain in gains) + " |")
    show_reliability(reliability)


def show_reliability(found: Reliability) -> None:
    """Print predicted against observed acceptance."""
    print("\n| path probability | drafted tokens | expected | accepted |\n|---|---|---|---|")
    for row, count in enumerate(found.counts):
        if count:
            print(
                f"| {row / 10:.1f} to {row / 10 + 0.1:.1f} | {count:.0f} | {found.expected[row] / count:.3f} | "
                f"{found.hits[row] / count:.3f} |"
            )
    print(f"\nexpected calibration error {found.error:.3f}")


def others(edit: Edit, edits: list[Edit], tokens: int) -> list[Edit]:
    """Return other edits at random; with theirs the files hold about so many tokens (of 3.5 characters)."""
    drawn, left = list[Edit](), 3.5 * tokens - len(edit.before)
    for one in random.Random(edit.instruction).sample(edits, len(edits)) if left > 0 else []:
        if one.path != edit.path and len(one.before) <= left:
            drawn.append(one)
            left -= len(one.before)
    return drawn


def show(title: str, rows: list[str], columns: list[str], tallies: dict[tuple[str, str], Tally]) -> None:
    """Print tokens per forward as a Markdown table."""
    print(f"\n| {title} | " + " | ".join(columns) + " |")
    print("|---" * (len(columns) + 1) + "|")
    for row in rows:
        print(f"| {row} | " + " | ".join(f"{tallies[row, name].tokens_per_forward:.2f}" for name in columns) + " |")


if __name__ == "__main__":
    main()

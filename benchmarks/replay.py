"""Tokens per forward without a model: ``python -m benchmarks.replay --tasks FILE.jsonl --budget 32``.

Every drafter runs over the same recorded answers: it is asked for a draft, told what the answer really says, and asked
again; a forward gives the drafted tokens that were right and one more. FILE is read by `benchmarks.tasks.read_edits`.
"""

from __future__ import annotations

import argparse
import random
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.peers import Arctic, PromptLookup
from benchmarks.tasks import FORMATS, Edit, read_edits, render
from examples import smollm2
from lookahead import Drafter
from lookahead.tree import Accepted


class Tally:
    """Counts of one drafter over many answers."""

    def __init__(self) -> None:
        self.tokens = self.forwards = self.drafted = self.read = 0
        self.reading = self.drafting = 0.0

    @property
    def tokens_per_forward(self) -> float:
        """Emitted tokens per forward, the prefill counted as one."""
        return self.tokens / self.forwards

    def __iadd__(self, other: Tally) -> Tally:
        """Add another's counts."""
        self.tokens, self.forwards = self.tokens + other.tokens, self.forwards + other.forwards
        self.drafted, self.drafting = self.drafted + other.drafted, self.drafting + other.drafting
        self.read, self.reading = self.read + other.read, self.reading + other.reading
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
    for edit in random.Random(0).sample(edits, given.sample) if given.sample else edits:
        for form in given.formats:
            prompt, answer = render(edit, form, tokenizer, others(edit, edits, given.context))
            for name, drafter in running.items():
                tally = replay(drafter, prompt, answer, given.budget)
                by_format[form, name] += tally
                by_language[edit.fence, name] += tally
    show("format", list(given.formats), list(made), by_format)
    show("language", sorted({language for language, _ in by_language}), list(made), by_language)
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

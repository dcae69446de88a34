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
from benchmarks.tasks import FORMATS, read_edits, render
from examples import smollm2
from lookahead import Drafter


class Tally:
    """Counts of one drafter over many answers."""

    def __init__(self) -> None:
        self.tokens = self.forwards = self.drafted = 0
        self.seconds = 0.0

    @property
    def tokens_per_forward(self) -> float:
        """Emitted tokens per forward, the prefill counted as one."""
        return self.tokens / self.forwards

    def __iadd__(self, other: Tally) -> Tally:
        """Add another's counts."""
        self.tokens, self.forwards = self.tokens + other.tokens, self.forwards + other.forwards
        self.drafted, self.seconds = self.drafted + other.drafted, self.seconds + other.seconds
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
    drafter.accept(answer[:1])
    at, tally.tokens, tally.forwards = 1, len(answer), 1
    while at < len(answer):
        if observe is not None:
            observe(drafter, answer[at:])
        draft = drafter.propose(min(budget, len(answer) - at - 1))
        taken = len(draft.follow(answer[at:])) + 1
        drafter.accept(answer[at : at + taken])
        at += taken
        tally.forwards += 1
        tally.drafted += len(draft)
    tally.seconds = time.perf_counter() - started
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
    parser.add_argument("--only", nargs="+", help="names of the drafters to run, by their beginning")
    given = parser.parse_args()
    tokenizer = smollm2.load_tokenizer()
    made = drafters(tokenizer, given.budget)
    made = {name: make for name, make in made.items() if not given.only or name.startswith(tuple(given.only))}
    by_format: defaultdict[tuple[str, str], Tally] = defaultdict(Tally)
    by_language: defaultdict[tuple[str, str], Tally] = defaultdict(Tally)
    running = {name: make() for name, make in made.items()}
    edits = list(read_edits(given.tasks))
    for edit in random.Random(0).sample(edits, given.sample) if given.sample else edits:
        for form in given.formats:
            prompt, answer = render(edit, form, tokenizer)
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
        micros = sum(tally.seconds for tally in tallies) / steps * 1e6
        print(f"{name}: {micros:.0f} us of drafting per forward, {drafted / steps:.1f} tokens drafted per forward")
    if not Arctic.installed:
        print("Arctic is not installed here; see benchmarks/README.md")


def show(title: str, rows: list[str], columns: list[str], tallies: dict[tuple[str, str], Tally]) -> None:
    """Print tokens per forward as a Markdown table."""
    print(f"\n| {title} | " + " | ".join(columns) + " |")
    print("|---" * (len(columns) + 1) + "|")
    for row in rows:
        print(f"| {row} | " + " | ".join(f"{tallies[row, name].tokens_per_forward:.2f}" for name in columns) + " |")


if __name__ == "__main__":
    main()

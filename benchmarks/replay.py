"""Tokens per forward without a model: ``python -m benchmarks.replay --budgets 8 16 32 64 128``.

Every drafter runs over the same recorded answers: it is asked for a draft, told what the answer really says, and asked
again; a forward gives the drafted tokens that were right and one more. The tasks are refactorings of this Python's
standard library (`benchmarks.refactorings`), or with ``--tasks FILE.jsonl`` those of a file, such as
`benchmarks.mine_edits` writes. Each peer runs at its defaults and at the best of its settings, found on every fourth
task by tokens per cost. The copy limit knows the answer and always copies the longest piece of it that stands in the
prompt, in what was said, or in the file as the format writes it. That is what copying can give at most; only what is no
copy (a learnt name, a known skeleton) can pass it.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from rich.console import Console
from rich.progress import track

from benchmarks.peers import Arctic, peers
from benchmarks.tables import show
from benchmarks.task_options import add_task_options, edits_of
from benchmarks.timing import machine
from lookahead import Drafter
from lookahead.bench.copy_limit import CopyLimit
from lookahead.bench.replay import Tally, replay
from lookahead.bench.tasks import Edit, forms, render
from lookahead.draft.cost import cost_of
from lookahead.hf import smollm2

Makers: TypeAlias = dict[str, Callable[[], Any]]
Key: TypeAlias = tuple[int, str, str, str]  # budget, drafter, format, kind or language


def main() -> None:
    """Replay, print tables and write a file for machines."""
    parser = argparse.ArgumentParser(description="Tokens per forward of every drafter on recorded answers.")
    add_task_options(parser)
    parser.add_argument("--budgets", nargs="+", type=int, default=[32], help="most tokens drafted in one forward")
    parser.add_argument("--context", type=int, default=0, help="other tasks' files come first, up to so many tokens")
    parser.add_argument(
        "--costs", nargs="+", default=["linear:0.002", "linear:0.03"], help="what forwards cost; lookahead is told"
    )
    parser.add_argument("--only", nargs="+", help="names of the drafters to run, by their beginning")
    parser.add_argument("--json", type=Path, help="write all counts to this file")
    given = parser.parse_args()
    tokenizer = smollm2.load_tokenizer()
    edits, source = edits_of(given)
    print(f"{machine()}\n{len(edits)} tasks: {source}\nlookahead ({given.costs[0]}): knows that cost, and so on")
    tallies: defaultdict[Key, Tally] = defaultdict(Tally)
    for budget in given.budgets:
        makers = drafters(edits, budget, given, tokenizer)
        run(edits, makers, budget, given, tokenizer, tallies)
        show_budget(budget, list(makers), tallies, given)
    if not Arctic.installed:
        print("\nArctic is not installed here; see benchmarks/README.md")
    if given.json:
        report = {"machine": machine(), "tasks": source, "count": len(edits), "rows": rows_of(tallies, given.costs)}
        given.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


def drafters(edits: list[Edit], budget: int, given: argparse.Namespace, tokenizer: Any) -> Makers:
    """Return what makes each drafter; a peer at its defaults and at the best setting for this budget and each cost."""
    makers: Makers = {}
    for name, settings in peers(budget, len(tokenizer)).items():
        if given.only and not name.startswith(tuple(given.only)):
            continue
        tallies: defaultdict[Key, Tally] = defaultdict(Tally)
        named = {f"{name} ({setting})": make for setting, make in settings.items()}
        run(edits[::4], named, budget, given, tokenizer, tallies)
        curves = [cost_of(cost, budget).curve(budget) for cost in given.costs]
        totals = {one: total(tallies, budget, one) for one in named}
        best = [max(named, key=lambda one: totals[one].per_cost(curve)) for curve in curves]
        makers |= {one: named[one] for one in dict.fromkeys([next(iter(named)), *best])}
    own: Makers = {
        f"lookahead ({cost})": lambda cost=cost: Drafter(tokenizer, budget=budget, cost=cost) for cost in given.costs
    }
    makers |= own | {"copy limit": CopyLimit}
    return {name: make for name, make in makers.items() if not given.only or name.startswith(tuple(given.only))}


def run(
    edits: list[Edit],
    makers: Makers,
    budget: int,
    given: argparse.Namespace,
    tokenizer: Any,
    tallies: defaultdict[Key, Tally],
) -> None:
    """Replay all tasks in all formats with one drafter of each kind, which learns from task to task."""
    running = {name: make() for name, make in makers.items()}
    for make in makers.values():
        replay(make(), *render(edits[0], "diff", tokenizer), budget)  # loads what loads once
    for edit in track(edits, f"budget {budget}", console=Console(stderr=True), transient=True):
        for form in given.formats:
            prompt, answer = render(edit, form, tokenizer, others(edit, edits, given.context))
            for name, drafter in running.items():
                observe = None
                if isinstance(drafter, CopyLimit):
                    drafter.forms, observe = forms(edit, form, tokenizer), CopyLimit.foresee
                tallies[budget, name, form, edit.kind or edit.fence] += replay(drafter, prompt, answer, budget, observe)


def others(edit: Edit, edits: list[Edit], tokens: int) -> list[Edit]:
    """Return other edits at random; with theirs the files hold about so many tokens (of 3.5 characters)."""
    drawn, left = list[Edit](), 3.5 * tokens - len(edit.before)
    for one in random.Random(edit.instruction).sample(edits, len(edits)) if left > 0 else []:
        if one.path != edit.path and len(one.before) <= left:
            drawn.append(one)
            left -= len(one.before)
    return drawn


def total(tallies: dict[Key, Tally], budget: int, drafter: str, form: str = "", kind: str = "") -> Tally:
    """Return the sum over all formats and kinds, or over those of one name."""
    summed = Tally()
    for (size, name, one_form, one_kind), tally in tallies.items():
        if (size, name) == (budget, drafter) and form in ("", one_form) and kind in ("", one_kind):
            summed += tally
    return summed


def show_budget(budget: int, names: list[str], tallies: dict[Key, Tally], given: argparse.Namespace) -> None:
    """Print tokens per forward by format and by kind, and all figures of each drafter."""
    kinds = sorted({kind for size, _, _, kind in tallies if size == budget})
    print(f"\n## Tokens per forward, at most {budget} drafted")
    for title, rows in (("format", [(form, "") for form in given.formats]), ("kind", [("", kind) for kind in kinds])):
        found = {row: [total(tallies, budget, name, *row).tokens_per_forward for name in names] for row in rows}
        show([title, *names], [["".join(row), *(f"{rate:.2f}" for rate in rates)] for row, rates in found.items()])
    costs = [f"tokens per cost, {cost}" for cost in given.costs]
    rows = []
    for name in names:
        tally = total(tallies, budget, name)
        paid = [tally.per_cost(cost_of(cost, budget).curve(budget)) for cost in given.costs]
        cells = [tally.tokens_per_forward, tally.drafted / tally.forwards, tally.acceptance_rate, *paid]
        micros = "" if name == "copy limit" else f"{tally.drafting_micros:.0f}"
        reading = "" if name == "copy limit" else f"{1e6 * tally.reading / tally.read:.2f}"
        rows.append([name, *(f"{cell:.2f}" for cell in cells), micros, reading])
    times = ("drafting, us per forward", "reading, us per token")
    show(["drafter", "tokens per forward", "drafted per forward", "accepted", *costs, *times], rows)


def rows_of(tallies: dict[Key, Tally], costs: list[str]) -> list[dict[str, Any]]:
    """Return all counts and figures, a row for each budget, drafter, format and kind."""
    found = []
    for (budget, drafter, form, kind), tally in tallies.items():
        counts = {name: getattr(tally, name) for name in ("tokens", "forwards", "drafted", "accepted")}
        figures = {name: getattr(tally, name) for name in ("tokens_per_forward", "acceptance_rate", "drafting_micros")}
        paid = {cost: tally.per_cost(cost_of(cost, budget).curve(budget)) for cost in costs}
        place = {"budget": budget, "drafter": drafter, "format": form, "kind": kind}
        found.append(place | counts | figures | {"tokens_per_cost": paid})
    return found


if __name__ == "__main__":
    main()

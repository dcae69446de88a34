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
import random
from collections import defaultdict
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import torch
from rich.console import Console
from rich.progress import track

from benchmarks.peers import Arctic, peers, quick
from benchmarks.reports import Report, Row, add_report_option, keep, made
from benchmarks.tables import table
from benchmarks.task_options import add_task_options, edits_of
from lookahead import Drafter
from lookahead.bench.copy_limit import CopyLimit
from lookahead.bench.replay import Tally, replay
from lookahead.bench.tasks import Edit, forms, render
from lookahead.draft.cost import cost_of
from lookahead.hf import smollm2

Makers: TypeAlias = dict[str, Callable[[], Any]]
Key: TypeAlias = tuple[int, str, str, str]  # budget, drafter, format, kind or language


class Stream(NamedTuple):
    """One task in one format."""

    form: str
    kind: str
    prompt: list[int]
    answer: list[int]
    forms: list[list[int]]  # the file before, as an answer of this format would write it


def main() -> None:
    """Replay, print tables and write a file for machines."""
    parser = argparse.ArgumentParser(description="Tokens per forward of every drafter on recorded answers.")
    add_task_options(parser)
    parser.add_argument("--budgets", nargs="+", type=int, default=[32], help="most tokens drafted in one forward")
    parser.add_argument("--context", type=int, default=0, help="other tasks' files come first, up to so many tokens")
    parser.add_argument(
        "--costs", nargs="+", default=["linear:0.002", "linear:0.03"], help="what forwards cost; lookahead is told"
    )
    parser.add_argument(
        "--fast-lookup",
        action="store_true",
        help="prompt lookup as written anew in lookahead.bench, which drafts the same in a hundredth of the time",
    )
    parser.add_argument("--only", nargs="+", help="names of the drafters to run, by their beginning")
    add_report_option(parser)
    given = parser.parse_args()
    torch.set_num_threads(1)  # prompt lookup's tensors are small
    tokenizer = smollm2.load_tokenizer()
    edits, source = edits_of(given)
    streams = streams_of(edits, given, tokenizer)
    tallies: defaultdict[Key, Tally] = defaultdict(Tally)
    for budget in given.budgets:
        run(streams, drafters(streams, budget, given, tokenizer), budget, tallies)
    rows = rows_of(tallies, given.costs)
    facts = {"tasks": source, "count": len(edits), "costs": given.costs, "arctic": Arctic.installed}
    facts["fast_lookup"] = given.fast_lookup
    report = made("replay", rows, **facts)
    keep(report, given)
    print(f"{report['machine']}\n\n{markdown(report)}")


def streams_of(edits: list[Edit], given: argparse.Namespace, tokenizer: Any) -> list[Stream]:
    """Return the streams of all tasks in all formats, the formats of a task one after the other."""
    found = []
    for edit in track(edits, "writing", console=Console(stderr=True), transient=True):
        shown = others(edit, edits, given.context)
        for form in given.formats:
            stream = render(edit, form, tokenizer, shown)
            found.append(Stream(form, edit.kind or edit.fence, *stream, forms(edit, form, tokenizer)))
    return found


def drafters(streams: list[Stream], budget: int, given: argparse.Namespace, tokenizer: Any) -> Makers:
    """Return what makes each drafter; a peer at its defaults and at the best setting for this budget and each cost."""
    makers: Makers = {}
    for name, settings in peers(budget, len(tokenizer)).items():
        if given.only and not name.startswith(tuple(given.only)):
            continue
        tallies: defaultdict[Key, Tally] = defaultdict(Tally)
        named = {f"{name} ({setting})": make for setting, make in settings.items()}
        some = [stream for at, stream in enumerate(streams) if at // len(given.formats) % 4 == 0]
        run(some, {one: quick(make) for one, make in named.items()}, budget, tallies)
        curves = [cost_of(cost, budget).curve(budget) for cost in given.costs]
        totals = {one: Tally() for one in named}
        for (_, one, *_), tally in tallies.items():
            totals[one] += tally
        best = [max(named, key=lambda one: totals[one].per_cost(curve)) for curve in curves]
        chosen = dict.fromkeys([next(iter(named)), *best])
        makers |= {one: quick(named[one]) if given.fast_lookup else named[one] for one in chosen}
    own: Makers = {
        f"lookahead ({cost})": lambda cost=cost: Drafter(tokenizer, budget=budget, cost=cost) for cost in given.costs
    }
    makers |= own | {"copy limit": CopyLimit}
    return {name: make for name, make in makers.items() if not given.only or name.startswith(tuple(given.only))}


def run(streams: list[Stream], makers: Makers, budget: int, tallies: defaultdict[Key, Tally]) -> None:
    """Replay all streams with one drafter of each kind for each format, which learns from task to task.

    Not one for all formats: who remembers answers would find each of them once more in the next format.
    """
    formats = {stream.form for stream in streams}
    running = {form: {name: make() for name, make in makers.items()} for form in formats}
    for make in makers.values():
        replay(make(), streams[0].prompt, streams[0].answer[:200], budget)  # loads what loads once
    for stream in track(streams, f"budget {budget}", console=Console(stderr=True), transient=True):
        for name, drafter in running[stream.form].items():
            observe = None
            if isinstance(drafter, CopyLimit):
                drafter.forms, observe = stream.forms, CopyLimit.foresee
            key = budget, name, stream.form, stream.kind
            tallies[key] += replay(drafter, stream.prompt, stream.answer, budget, observe)


def others(edit: Edit, edits: list[Edit], tokens: int) -> list[Edit]:
    """Return other edits at random; with theirs the files hold about so many tokens (of 3.5 characters)."""
    drawn, left = list[Edit](), 3.5 * tokens - len(edit.before)
    for one in random.Random(edit.instruction).sample(edits, len(edits)) if left > 0 else []:
        if one.path != edit.path and len(one.before) <= left:
            drawn.append(one)
            left -= len(one.before)
    return drawn


def rows_of(tallies: dict[Key, Tally], costs: list[str]) -> list[Row]:
    """Return all counts and times, a row for each budget, drafter, format and kind; sums of rows mean something."""
    found = []
    for (budget, drafter, form, kind), tally in tallies.items():
        place = {"budget": budget, "drafter": drafter, "format": form, "kind": kind}
        counts = {name: getattr(tally, name) for name in ("tokens", "forwards", "drafted", "accepted", "read")}
        times = {"drafting": round(tally.drafting, 4), "reading": round(tally.reading, 4)}
        paid = {f"paid {cost}": tally.cost(cost_of(cost, budget).curve(budget)) for cost in costs}
        found.append(place | counts | times | paid)
    return found


def summed(report: Report, **wanted: object) -> Row:
    """Return the sum of the rows that have these values, with tokens per forward and per cost."""
    rows = [row for row in report["rows"] if all(row[key] == value for key, value in wanted.items())]
    numbers = [key for key, value in rows[0].items() if isinstance(value, int | float)]
    total: Row = {key: sum(row[key] for row in rows) for key in numbers}
    total["tokens per forward"] = total["tokens"] / total["forwards"]
    return total | {cost: total["tokens"] / total[f"paid {cost}"] for cost in report["costs"]}


def detailed(report: Report) -> int:
    """Return the budget whose figures are shown by format and kind: 32 where it was run, else the greatest."""
    budgets = {row["budget"] for row in report["rows"]}
    return 32 if 32 in budgets else max(budgets)


def drafters_of(report: Report, budget: int) -> list[str]:
    """Return the names of the drafters that were run with a budget."""
    return list(dict.fromkeys(row["drafter"] for row in report["rows"] if row["budget"] == budget))


def markdown(report: Report) -> str:
    """Return the tables: all figures of each drafter by budget, then tokens per forward by format and by kind."""
    parts = [
        f"{report['count']} tasks: {report['tasks']}. lookahead ({report['costs'][0]}) knows that cost, and so on.",
        _totals(report),
    ]
    if report["fast_lookup"]:
        parts.append(
            "Prompt lookup is written anew here: it drafts what the class of transformers does (a test compares them) "
            "in a fraction of its time, which stands under Scale."
        )
    budget = detailed(report)
    names = drafters_of(report, budget)
    parts.append(f"Tokens per forward with at most {budget} tokens drafted:")
    for key in ("format", "kind"):
        rows = []
        for value in dict.fromkeys(row[key] for row in report["rows"]):
            totals = [summed(report, budget=budget, drafter=name, **{key: value}) for name in names]
            rows.append([value, *(f"{total['tokens per forward']:.2f}" for total in totals)])
        parts.append(table([key, *names], rows))
    if not report["arctic"]:
        parts.append("Arctic's suffix tree is not in the table: its package was not installed.")
    return "\n\n".join(parts)


def _totals(report: Report) -> str:
    """Return the table of all figures of each drafter at each budget."""
    rows = []
    for budget in sorted({row["budget"] for row in report["rows"]}):
        for name in drafters_of(report, budget):
            total = summed(report, budget=budget, drafter=name)
            accepted = total["accepted"] / total["drafted"] if total["drafted"] else 0.0
            rates = [total["tokens per forward"], total["drafted"] / total["forwards"], accepted]
            rates += [total[cost] for cost in report["costs"]]
            times = [f"{1e6 * total['drafting'] / total['forwards']:.0f}"]
            times.append(f"{1e6 * total['reading'] / total['read']:.2f}")
            cells = [f"{rate:.2f}" for rate in rates] + (["", ""] if name == "copy limit" else times)
            rows.append([str(budget), name, *cells])
    costs = [f"tokens per forward-time, {cost}" for cost in report["costs"]]
    head = ["budget", "drafter", "tokens per forward", "drafted per forward", "accepted", *costs]
    return table([*head, "drafting, us per forward", "reading, us per token"], rows)


if __name__ == "__main__":
    main()

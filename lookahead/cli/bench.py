"""``lookahead bench``: what lookahead would gain on the edits of a repository's own history."""

from __future__ import annotations

import itertools
import json
import statistics
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from ..bench.history import History
from ..bench.mining import Limits, mine_edits
from ..bench.tasks import FORMATS, Edit, render
from ..draft.cost import MeasuredCost, cost_of
from ..options import Options
from .usage import usage

if TYPE_CHECKING:
    from ..bench.comparison import Expense, Gain

__all__ = ["bench"]

_COSTS = {"linear:0.002": "about what a GPU takes", "linear:0.03": "about what a few CPU cores take"}
_LONGEST = 4000  # tokens of context behind which a model's forwards are timed
_ROUNDS = 3


def bench(
    repo: Annotated[Path, typer.Option(help="A git repository with its history.")] = Path("."),
    tokenizer: Annotated[
        str | None, typer.Option(help="A tokenizer's folder, or its name on the hub; smollm2 when left out.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="A model, whose forwards are timed here, and whose tokenizer is taken.")
    ] = None,
    cost: Annotated[
        list[str] | None, typer.Option(help="What drafts cost, as linear:0.03; may be given again.")
    ] = None,
    commits: Annotated[int, typer.Option(min=1, help="Read at most so many commits, the newest.")] = 500,
    tasks: Annotated[int, typer.Option(min=1, help="Take at most so many changes, the newest.")] = 20,
    suffix: Annotated[
        list[str] | None, typer.Option(help="Only files that end so, as .py; may be given again.")
    ] = None,
    form: Annotated[
        list[str] | None, typer.Option("--format", help=f"Of {', '.join(FORMATS)}; may be given again.")
    ] = None,
    budget: Annotated[int, typer.Option(min=1, max=4096, help="Most tokens drafted in a forward.")] = 64,
    as_json: Annotated[bool, typer.Option("--json", help="Print all counts as JSON.")] = False,
) -> None:
    """See what lookahead would gain on a repository of your own, beside stock prompt lookup.

    Commits become tasks: the file before is shown in the prompt, the file after is the answer, in every format that
    agents write. The answers are replayed; no model writes them. Nothing leaves the machine.

    Exit codes: 0; 64 wrong usage; 69 the package of smollm2 is not installed, and no other tokenizer is given.
    """
    with usage():
        formats = _formats(form)
        costs = _costs(cost, model)
        with History(repo) as history:
            edits, name = _edits(history, commits, tasks, tuple(suffix or ())), history.name
        coder, expenses = _expenses(edits, formats, tokenizer, model, costs, budget)
        from ..bench.comparison import compare

        console = Console(stderr=True)
        with Progress(console=console, transient=True, disable=as_json or not console.is_terminal) as progress:
            bar = progress.add_task("replaying", total=len(edits) * len(formats))
            found = compare(edits, formats, coder, budget, expenses, lambda: progress.advance(bar))
        facts = {"repo": name, "tasks": len(edits), "commits": commits, "budget": budget}
        if as_json:
            print(json.dumps(facts | {"costs": _plain(expenses, found)}, indent=2, ensure_ascii=False))
        else:
            _tell(facts, expenses, found)


def _formats(given: list[str] | None) -> list[str]:
    """Return the formats asked for."""
    unknown = [one for one in given or () if one not in FORMATS]
    if unknown:
        raise ValueError(f"--format {unknown[0]} is not known; allowed are {', '.join(FORMATS)}")
    return list(given or FORMATS)


def _costs(given: list[str] | None, model: str | None) -> list[str]:
    """Return the costs asked for, by themselves two usual ones, none where a model is timed."""
    for one in given or ():
        Options(cost=one)  # says what is allowed
    return list(given or ([] if model else _COSTS))


def _edits(history: History, commits: int, tasks: int, suffixes: tuple[str, ...]) -> list[Edit]:
    """Return the tasks of a history."""
    records = list(itertools.islice(mine_edits(history, history.commits(commits), Limits(suffixes=suffixes)), tasks))
    if not records:
        least, most = Limits().sizes
        raise ValueError(
            f"none of the newest {commits} commits makes a task: a file of {least} to {most} characters, written by "
            "people, changed in part, with a subject of two words or more; give another --repo, or more --commits"
        )
    return [Edit(*(record[key] for key in ("path", "instruction", "before", "after"))) for record in records]


def _expenses(
    edits: list[Edit], formats: list[str], tokenizer: str | None, model: str | None, costs: list[str], budget: int
) -> tuple[Any, list[Expense]]:
    """Load what is named; return the tokenizer, and what forwards take."""
    from ..bench.comparison import Expense  # torch is loaded only where it is needed
    from ..hf.loading import SMALL, load, load_tokenizer

    given = [Expense(one, cost_of(one, budget).curve(budget)) for one in costs]
    if model is None:
        return load_tokenizer(tokenizer or SMALL), given
    from ..hf.forward_times import time_forwards

    target, coder = load(model)
    coder = coder if tokenizer is None else load_tokenizer(tokenizer)
    lengths = [len(render(edit, formats[0], coder)[0]) for edit in edits]
    measured = MeasuredCost()
    time_forwards(target, measured, min(_LONGEST, int(statistics.median(lengths))), _ROUNDS)
    return coder, [Expense("measured", measured.curve(budget), measured.plain_seconds), *given]


def _plain(expenses: list[Expense], found: list[list[Gain]]) -> list[dict[str, Any]]:
    """Return everything for JSON."""
    counted = ("tokens", "forwards", "drafted", "accepted", "tokens_per_forward", "acceptance_rate", "drafting_micros")
    plain = []
    for expense, gains in zip(expenses, found, strict=True):
        rows = [
            {"drafter": gain.drafter, "format": form, "speed": expense.speed(tally)}
            | {name: getattr(tally, name) for name in counted}
            for gain in gains
            for form, tally in gain.tallies.items()
        ]
        plain.append({"cost": expense.name, "forward_seconds": expense.seconds, "rows": rows})
    return plain


def _tell(facts: dict[str, Any], expenses: list[Expense], found: list[list[Gain]]) -> None:
    """Print tables of tokens per forward and of speeds."""
    console = Console(highlight=False)
    console.print(f"{facts['repo']}: {facts['tasks']} changes, at most {facts['budget']} tokens drafted in a forward")
    for expense, gains in zip(expenses, found, strict=True):
        console.print()
        console.print(_table("tokens per forward", gains, lambda tally: tally.tokens_per_forward))
        console.print()
        console.print(_table("times as fast as generate", gains, expense.speed))
        console.print(_meaning(expense), soft_wrap=True)


def _table(title: str, gains: list[Gain], figure: Any) -> Table:
    """Return a table: a row for each format and one for all, a column for each drafter."""
    table = Table(title, *(gain.drafter for gain in gains))
    for form in gains[0].tallies:
        table.add_row(form, *(f"{figure(gain.tallies[form]):.2f}" for gain in gains))
    table.add_section()
    table.add_row("all", *(f"{figure(gain.total):.2f}" for gain in gains))
    return table


def _meaning(expense: Expense) -> str:
    """Return what the speeds rest on."""
    if expense.seconds is not None:
        return f"Costs measured here: {1e3 * expense.seconds:.1f} ms a forward; time to draft is counted."
    slope = _COSTS.get(expense.name, "given")
    return f"Expected where drafts cost {expense.name} ({slope}); time to draft is not counted. --model measures both."

"""What memory is worth over the turns of a conversation: ``python -m benchmarks.turns``.

In a trace one file is changed turn after turn. The first prompt shows the file; later ones only say what to change, as
where a tool keeps the file (``--repeat`` shows it in each, ``--chat`` has every earlier turn in each prompt). The
answers are recorded, as in `benchmarks.replay`. Traces come from `benchmarks.mine_edits REPO --turns`, or without
``--traces`` from refactorings of this Python's standard library, several on one module. A conversation never sees
another's memory.
"""

from __future__ import annotations

import argparse
import platform
from collections import defaultdict
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

from rich.console import Console
from rich.progress import track

from benchmarks.peers import Arctic, ArcticMemory
from benchmarks.refactorings import traces
from benchmarks.reports import Report, Row, add_report_option, keep, made
from benchmarks.tables import table
from lookahead import Drafter, Session
from lookahead.bench.replay import Curve, Tally, replay
from lookahead.bench.tasks import FORMATS, Edit, answer, encode, ids_of, read_lines, request
from lookahead.draft.cost import cost_of
from lookahead.hf import smollm2
from lookahead.index.static_corpus import Document, StaticCorpus, build
from lookahead.views.tokens import Tokens

Trace: TypeAlias = dict[str, Any]
Turn: TypeAlias = tuple[list[int], list[int]]  # the ids of a prompt and of its answer
Memory: TypeAlias = Callable[[], Any]  # gives the drafter of the next turn, which may have an `end`


def main() -> None:
    """Replay and print."""
    parser = argparse.ArgumentParser(description="Drafting over the turns of a conversation, with and without memory.")
    parser.add_argument("--traces", type=Path, help="JSON lines, as benchmarks.mine_edits REPO --turns writes them")
    parser.add_argument("--count", type=int, default=8, help="at most so many traces")
    parser.add_argument("--formats", nargs="+", default=("whole file", "json"), choices=FORMATS, metavar="FORMAT")
    parser.add_argument("--repeat", action="store_true", help="every prompt shows the file as it is")
    parser.add_argument("--chat", action="store_true", help="every prompt holds the conversation so far")
    parser.add_argument("--budget", type=int, default=32, help="most tokens drafted in one forward")
    parser.add_argument("--cost", default="linear:0.03", help="what forwards cost; lookahead is told")
    parser.add_argument("--only", nargs="+", help="names of the memories to run, by their beginning")
    add_report_option(parser)
    given = parser.parse_args()
    if given.count < 1:
        raise SystemExit(f"--count {given.count} is too few; allowed is 1 and above")
    chosen, source = traces_of(given)
    tokenizer = smollm2.load_tokenizer()
    first = chosen[0] | {"turns": chosen[0]["turns"][:1]}
    run([first], given.formats[0], given, tokenizer)  # loads what loads once
    cost, rows = cost_of(given.cost, given.budget).curve(given.budget), list[Row]()
    for form in given.formats:
        rows += rows_of(form, run(chosen, form, given, tokenizer), cost)
    report = made("turns", rows, traces=source, count=len(chosen))
    keep(report, given)
    print(f"{report['machine']}\n\n{markdown(report)}")


def traces_of(given: argparse.Namespace) -> tuple[list[Trace], str]:
    """Return the traces that the options name, and where they come from in words."""
    if given.traces is None:
        source = f"refactorings of the standard library of Python {platform.python_version()}"
        return list(traces(given.count)), source
    names, then = ("path", "before", "turns", "files"), "write it by mine_edits --turns"
    try:
        found = list(islice(read_lines(given.traces, names, then), given.count))
    except ValueError as error:
        raise SystemExit(str(error)) from None
    if not found:
        raise SystemExit(f"{given.traces} holds no trace; {then}")
    return found, given.traces.name


def memories(given: argparse.Namespace, tokenizer: Any, corpus: StaticCorpus) -> dict[str, Memory]:
    """Return each kind of memory, new for this conversation; the corpus is its repository before the first turn."""
    options = {"budget": given.budget, "cost": given.cost}
    kept, session = Drafter(tokenizer, **options), Session(tokenizer, **options)
    both = Session(tokenizer, corpora=[corpus], **options)
    found: dict[str, Memory] = {
        "lookahead, nothing kept": lambda: Drafter(tokenizer, **options),
        "lookahead, session": session.drafter,
        "lookahead, corpus": lambda: Session(tokenizer, corpora=[corpus], **options).drafter(),
        "lookahead, session and corpus": both.drafter,
        "lookahead, one drafter": lambda: kept,  # which learns how often guesses are right, but forgets the text
    }
    if Arctic.installed:
        found["Arctic, nothing kept"] = lambda: Arctic(4.0)
        found["Arctic, global tree"] = ArcticMemory(4.0).drafter
    return {name: make for name, make in found.items() if not given.only or name.startswith(tuple(given.only))}


def turns_of(trace: Trace, form: str, given: argparse.Namespace, tokenizer: Any) -> list[Turn]:
    """Return prompt and answer of every turn."""
    found, said, before = list[Turn](), list[str](), str(trace["before"])
    for number, turn in enumerate(trace["turns"]):
        edit = Edit(trace["path"], turn["instruction"], before, turn["after"])
        words = request(edit, form, [edit] if number == 0 or given.repeat else [])
        written = answer(edit, form)
        found.append((encode([*said, words], tokenizer), ids_of(written, tokenizer)))
        said += [words, written] if given.chat else []
        before = edit.after
    return found


def corpus_of(trace: Trace, tokenizer: Any, folder: str) -> StaticCorpus:
    """Return a corpus of the file as it was before the first turn and of the other files."""
    tokens = Tokens.of(tokenizer)
    texts = [*((one["path"], one["text"]) for one in trace["files"]), (trace["path"], trace["before"])]
    path = Path(folder) / "repository.lkh"
    build([Document(name, tokens.encode(text)) for name, text in texts], path, tokens.fingerprint)
    return StaticCorpus.open(path, tokens)


def run(chosen: list[Trace], form: str, given: argparse.Namespace, tokenizer: Any) -> dict[str, dict[int, Tally]]:
    """Replay all traces in one format; return the counts of each memory and turn."""
    tallies: dict[str, defaultdict[int, Tally]] = {}
    for trace in track(chosen, form, console=Console(stderr=True), transient=True):
        turns = turns_of(trace, form, given, tokenizer)
        with TemporaryDirectory() as folder:
            found = memories(given, tokenizer, corpus_of(trace, tokenizer, folder))
        for name, memory in found.items():
            for number, (prompt, written) in enumerate(turns, 1):
                drafter = memory()
                tally = replay(drafter, prompt, written, given.budget)
                tallies.setdefault(name, defaultdict(Tally))[number] += tally
                if hasattr(drafter, "end"):
                    drafter.end()
    return dict(tallies)


def rows_of(form: str, tallies: dict[str, dict[int, Tally]], cost: Curve) -> list[Row]:
    """Return the figures of each memory in one format."""
    found = []
    for name, turns in tallies.items():
        later, whole = Tally(), Tally()
        for number, tally in turns.items():
            whole += tally
            later += tally if number > 1 else Tally()
        rates = {
            "later turns": later.tokens_per_forward,
            "accepted there": later.acceptance_rate,
            "tokens per forward-time there": later.per_cost(cost),
            "drafting, us per forward": whole.drafting_micros,
            "reading, us per token": 1e6 * whole.reading / whole.read,
        }
        by_turn = {f"turn {number}": tally.tokens_per_forward for number, tally in sorted(turns.items())}
        rounded = {key: round(rate, 4) for key, rate in (by_turn | rates).items()}
        found.append({"format": form, "memory": name} | rounded)
    return found


def markdown(report: Report) -> str:
    """Return a table for each format: tokens per forward by turn, and what drafting took."""
    parts = [f"{report['count']} traces: {report['traces']}."]
    for form in dict.fromkeys(row["format"] for row in report["rows"]):
        rows = [row for row in report["rows"] if row["format"] == form]
        keys = [key for key in rows[0] if key not in ("format", "memory")]
        cells = [[row["memory"], *(f"{row[key]:.2f}" for key in keys)] for row in rows]
        parts.append(table([f"tokens per forward, {form}", *keys], cells))
    return "\n\n".join(parts)


if __name__ == "__main__":
    main()

"""Time to draft and memory against the length of the context: ``python -m benchmarks.scale``.

The context is the standard library's sources. Then a passage from its middle is said once more with every twentieth
token another: every drafter is asked for a draft, and told what is really said, so that drafts of all lengths come up.
Also against the budget and the rows of a batch, each row with a drafter of its own. Peers: stock prompt lookup (its own
class), vLLM's rule (the scan by Knuth-Morris-Pratt that it runs for each draft, compiled as there), and Arctic's suffix
tree, where its package can be imported.
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.index import code_tokens, scan
from benchmarks.peers import Arctic, PromptLookup
from benchmarks.reports import Report, Row, add_report_option, keep, made
from benchmarks.tables import table
from lookahead import Drafter
from lookahead.hf import smollm2
from lookahead.tree import Accepted, Draft

__all__ = ["Scan", "markdown"]

_CHANGED = 20  # one token of so many is another
_NGRAM = 5
_ROLLUP = Path("/proc/self/smaps_rollup")


class Scan:
    """What vLLM does for each draft: one pass over all ids, kept in an array with room, for n-grams of up to five."""

    def __init__(self) -> None:
        self._ids: NDArray[np.int32] = np.empty(0, np.int32)
        self._length = 0

    def begin(self, prompt: list[int]) -> None:
        """Start a sequence."""
        self._ids = np.empty(len(prompt) + 4096, np.int32)
        self._length = 0
        self.accept(Accepted(prompt))

    def propose(self, budget: int) -> Draft:
        """Draft a chain."""
        known = self._ids[: self._length]
        start = scan(known, _NGRAM)
        return Draft.empty() if start < 0 else Draft.chain(known[start : start + budget])

    def accept(self, accepted: Accepted) -> None:
        """Take in what was said."""
        end = self._length + len(accepted.tokens)
        self._ids[self._length : end] = accepted.tokens
        self._length = end


def main() -> None:
    """Measure, print and keep."""
    parser = argparse.ArgumentParser(description="Time to draft and memory against context, budget and rows.")
    parser.add_argument("--contexts", nargs="+", type=int, default=[1000, 8000, 32_000, 128_000, 1_000_000])
    parser.add_argument("--budgets", nargs="+", type=int, default=[8, 16, 32, 64, 128], help="at the first 8k context")
    parser.add_argument("--rows", nargs="+", type=int, default=[1, 2, 4, 8, 16], help="at the same context")
    parser.add_argument("--steps", type=int, default=200, help="drafts that are timed")
    add_report_option(parser)
    given = parser.parse_args()
    torch.set_num_threads(1)  # prompt lookup's tensors are small
    tokenizer = smollm2.load_tokenizer()
    _, tokens = code_tokens(max(given.contexts))
    middle = min(given.contexts, key=lambda context: abs(context - 8000))
    rows = []
    for name, make in makers(tokenizer).items():
        measure(make, tokens[:2000], 32, 1, 20)  # loads what loads once
        for context in given.contexts:
            rows.append({"drafter": name, "by": "context"} | measure(make, tokens[:context], 32, 1, given.steps))
            rows[-1]["bytes"] = memory(make, tokens[:context].tolist())
        for budget in given.budgets:
            rows.append({"drafter": name, "by": "budget"} | measure(make, tokens[:middle], budget, 1, given.steps))
        for count in given.rows:
            rows.append({"drafter": name, "by": "rows"} | measure(make, tokens[:middle], 32, count, given.steps))
    report = made("scale", rows, steps=given.steps, arctic=Arctic.installed)
    keep(report, given)
    print(f"{report['machine']}\n\n{markdown(report)}")


def makers(tokenizer: Any) -> dict[str, Callable[[int], Any]]:
    """Return what makes each drafter for a budget."""
    found: dict[str, Callable[[int], Any]] = {
        "lookahead": lambda budget: Drafter(tokenizer, budget=budget, cost="linear:0.002"),
        "prompt lookup, n=2": lambda budget: PromptLookup(len(tokenizer), budget),
        "vLLM's rule, n=1-5": lambda budget: Scan(),
    }
    if Arctic.installed:
        found["Arctic, factor 4"] = lambda budget: Arctic(4.0, depth=max(64, 2 * budget))
    return found


def measure(make: Callable[[int], Any], tokens: NDArray[np.int32], budget: int, rows: int, steps: int) -> Row:
    """Return what reading a context takes, what each step takes for all rows together, and the memory of a row."""
    context, drafters = tokens.tolist(), [make(budget) for _ in range(rows)]
    started = time.perf_counter()
    for drafter in drafters:
        drafter.begin(context)
    reading = (time.perf_counter() - started) / rows
    said, micros = list[int](), list[float]()
    start = len(context) // 2
    passage = context[start:] + context[:start]
    passage = [token if at % _CHANGED else token + 1 for at, token in enumerate(passage)]
    while len(micros) < steps and len(said) < len(passage) - 1:
        rest = passage[len(said) : len(said) + budget + 1]
        started = time.perf_counter()
        for drafter in drafters:
            path = drafter.propose(min(budget, len(rest) - 1)).follow(rest)
            accepted = rest[: len(path) + 1]
            drafter.accept(Accepted(accepted, path))
        micros.append(1e6 * (time.perf_counter() - started))
        said += accepted
    return {
        "context": len(context),
        "budget": budget,
        "rows": rows,
        "reading_seconds": round(reading, 6),
        "median_micros": round(statistics.median(micros), 1),
        "p99_micros": round(float(np.percentile(micros, 99)), 1),
    }


def memory(make: Callable[[int], Any], context: list[int]) -> int | None:
    """Return the bytes that a process grows by when a drafter reads a context; None where the system does not tell."""
    if not _ROLLUP.exists():
        return None
    forked = multiprocessing.get_context("fork")
    receiver, sender = forked.Pipe(duplex=False)

    def read() -> None:
        sum(context)  # counting references dirties the pages of the numbers: before, not meanwhile
        drafter, before = make(32), _private()
        drafter.begin(context)
        sender.send(_private() - before)

    process = forked.Process(target=read)
    process.start()
    grown: int = receiver.recv()
    process.join()
    return grown


def _private() -> int:
    """Return the bytes of memory that are this process's own."""
    lines = _ROLLUP.read_text(encoding="utf-8").splitlines()
    return 1024 * sum(int(line.split()[1]) for line in lines if line.startswith("Private_Dirty"))


def markdown(report: Report) -> str:
    """Return tables against context, budget and rows: a row for each drafter."""
    parts = [
        f"Medians of at most {report['steps']} drafts (99th percentile).",
        _by(report, "context", "us to draft, {} tokens", _micros),
        _by(report, "context", "reading, us per token, {} tokens", _reading),
        _by(report, "context", "megabytes that the process grows by, {} tokens", _megabytes),
        _by(report, "budget", "us to draft, budget {}", _micros),
        _by(report, "rows", "us to draft for {} rows", _micros),
    ]
    if not report["arctic"]:
        parts.append("Arctic's suffix tree is not in the tables: its package was not installed.")
    return "\n\n".join(parts)


def _by(report: Report, key: str, title: str, figure: Callable[[Row], str]) -> str:
    """Return the table of one figure against one size."""
    found = {(row["drafter"], row[key]): row for row in report["rows"] if row["by"] == key}
    names, sizes = (list(dict.fromkeys(values)) for values in zip(*found, strict=True))
    head = ["", *(title.format(f"{size:,}") for size in sizes)]
    return table(head, [[name, *(figure(found[name, size]) for size in sizes)] for name in names])


def _micros(row: Row) -> str:
    """Return the time to draft."""
    return f"{row['median_micros']:.0f} ({row['p99_micros']:.0f})"


def _reading(row: Row) -> str:
    """Return the time to read a token of the context."""
    return f"{1e6 * row['reading_seconds'] / row['context']:.2f}"


def _megabytes(row: Row) -> str:
    """Return the memory."""
    return "" if row["bytes"] is None else f"{row['bytes'] / 1e6:.1f}"


if __name__ == "__main__":
    main()

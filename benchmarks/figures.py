"""The figures that must not change unnoticed: ``python -m benchmarks.figures``.

A small replay that is the same on every machine: eight tasks whose texts are kept in data/figures.jsonl (made once by
`benchmarks.refactorings` from files of this project; so no release of Python changes them), a cost that is given, and
counts instead of times. ``--write`` keeps what comes out in data/figures.json; without it, and in the tests, what comes
out is compared with what was kept. A change that moves a figure writes them anew and says why.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any, TypeAlias

from benchmarks.tables import table
from lookahead import Drafter
from lookahead.bench.copy_limit import CopyLimit
from lookahead.bench.ngrams import Ngrams
from lookahead.bench.replay import Tally, replay
from lookahead.bench.tasks import FORMATS, forms, read_edits, render
from lookahead.hf import smollm2

__all__ = ["differences", "kept", "measure"]

Figures: TypeAlias = dict[str, dict[str, dict[str, int]]]  # by drafter and format: tokens, forwards, drafted, accepted

_DATA = Path(__file__).parent / "data"
_BUDGET = 32


def measure() -> Figures:
    """Replay all tasks in all formats; each drafter learns from task to task."""
    tokenizer = smollm2.load_tokenizer()
    running: dict[str, Any] = {
        "lookahead, linear:0.03": Drafter(tokenizer, budget=_BUDGET, cost="linear:0.03"),
        "lookahead, linear:0.002": Drafter(tokenizer, budget=_BUDGET, cost="linear:0.002"),
        "vLLM n-gram, n=2-5": Ngrams(2, 5),
        "copy limit": CopyLimit(),
    }
    figures: Figures = {name: {} for name in running}
    for form in FORMATS:
        tallies = {name: Tally() for name in running}
        for edit in read_edits(_DATA / "figures.jsonl"):
            prompt, answer = render(edit, form, tokenizer)
            running["copy limit"].forms = forms(edit, form, tokenizer)
            for name, drafter in running.items():
                observe = CopyLimit.foresee if name == "copy limit" else None
                tallies[name] += replay(drafter, prompt, answer, _BUDGET, observe)
        for name, tally in tallies.items():
            counted = ("tokens", "forwards", "drafted", "accepted")
            figures[name][form] = {count: getattr(tally, count) for count in counted}
    return figures


def kept() -> Figures:
    """Return the figures that were written last."""
    figures: Figures = json.loads((_DATA / "figures.json").read_text(encoding="utf-8"))
    return figures


def differences(old: Figures, new: Figures) -> list[str]:
    """Return a line for each figure that is not what it was."""
    places = {(name, form) for figures in (old, new) for name, row in figures.items() for form in row}
    lines = []
    for name, form in sorted(places):
        was, now = (figures.get(name, {}).get(form) for figures in (old, new))
        if was != now:
            lines.append(f"{name}, {form}: {was} was kept, now {now}")
    return lines


def main() -> None:
    """Measure, show, and compare or write."""
    parser = argparse.ArgumentParser(description="The figures that must not change unnoticed.")
    parser.add_argument("--write", action="store_true", help="keep what comes out")
    given = parser.parse_args()
    figures = measure()
    rates = {
        name: {form: row["tokens"] / row["forwards"] for form, row in rows.items()} for name, rows in figures.items()
    }
    rows = [[form, *(f"{rates[name][form]:.2f}" for name in rates)] for form in FORMATS]
    print(table(["tokens per forward", *figures], rows))
    if given.write:
        (_DATA / "figures.json").write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
        print("\nkept")
    elif lines := differences(kept(), figures):
        raise SystemExit("\n".join(["", *lines, "if that is meant, run: python -m benchmarks.figures --write"]))
    else:
        print("\nas kept")


if __name__ == "__main__":
    main()

"""How much to draft: ``python -m benchmarks.lengths --cost linear:0.03``.

Tokens per cost of a forward when drafts are as long as the policy says, and for chains of every fixed length from the
same candidates; then how reliable the probabilities were that the policy went by. Tasks as in `benchmarks.replay`.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from benchmarks.tables import show_reliability
from benchmarks.task_options import add_task_options, edits_of
from lookahead import Drafter
from lookahead.bench.replay import Curve, Tally, replay
from lookahead.bench.tasks import Edit, render
from lookahead.draft.cost import MeasuredCost, cost_of
from lookahead.hf import smollm2
from lookahead.hf.forward_times import time_forwards

LENGTHS = (4, 8, 12, 16, 24, 32, 48, 64)


def main() -> None:
    """Replay and print."""
    parser = argparse.ArgumentParser(description="The policy's drafts against drafts of fixed lengths.")
    add_task_options(parser)
    parser.add_argument("--cost", default="linear:0.03", help="linear:0.002, ... or measured (SmolLM2, here, at 2k)")
    given = parser.parse_args()
    edits, _ = edits_of(given)
    show_costs(edits, given, smollm2.load_tokenizer())


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


if __name__ == "__main__":
    main()

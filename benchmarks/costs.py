"""What a forward costs with k tokens behind the last one: ``python -m benchmarks.costs``.

Times SmolLM2 as the loop runs it, the sizes in turns; prints medians beside the curve that the policy would use.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import torch

from benchmarks.timing import machine
from lookahead.draft.cost import MeasuredCost
from lookahead.hf import smollm2

SIZES = (0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)


def time_forwards(model: Any, cost: MeasuredCost, context: int, rounds: int) -> None:
    """Run forwards behind a random context, the sizes in turns, and tell `cost`."""
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(100, model.config.vocab_size, (1, context), generator=generator).to(model.device)
    with torch.no_grad():
        cache = model(ids, use_cache=True, logits_to_keep=1).past_key_values
        for round_ in range(rounds + 1):
            for size in SIZES if round_ % 2 else reversed(SIZES):
                tokens = ids[:, : size + 1]
                started = time.perf_counter()
                model(tokens, cache=cache, use_cache=True).logits[0].argmax(-1).tolist()
                seconds = time.perf_counter() - started
                cache.crop(-size - 1)
                if round_:  # the first round warms up
                    cost.learn(size, context, seconds)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="What forwards with drafts of different sizes cost.")
    parser.add_argument("--contexts", type=int, nargs="+", default=[256, 2000])
    parser.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args()
    model = smollm2.load()[0]
    print(machine())
    print("\n| context | " + " | ".join(f"{size} tokens" for size in SIZES) + " |\n" + "|---" * (len(SIZES) + 1) + "|")
    for context in given.contexts:
        cost = MeasuredCost()
        time_forwards(model, cost, context, given.rounds)
        curve = cost.curve(max(SIZES))
        print(
            f"| {context}, ms | " + " | ".join(f"{1e3 * curve[size] / cost.forwards(1.0):.0f}" for size in SIZES) + " |"
        )
        print(f"| {context}, forwards | " + " | ".join(f"{curve[size]:.2f}" for size in SIZES) + " |")


if __name__ == "__main__":
    main()

"""What learning renames is worth: ``python -m benchmarks.renames``.

In modules of the standard library one identifier that is used at least ten times gets a new name, and the answer is the
whole new file. The same drafter runs with rename learning and without.
"""

from __future__ import annotations

import argparse

from benchmarks.refactorings import refactorings
from lookahead import Drafter
from lookahead.bench.replay import Tally, replay
from lookahead.bench.tasks import render
from lookahead.hf import smollm2
from lookahead.views.renames import Renames


def main() -> None:
    """Replay with and without, and print the ratio."""
    parser = argparse.ArgumentParser(description="Rename tasks with and without rename learning.")
    parser.add_argument("--tasks", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--budget", type=int, default=32)
    given = parser.parse_args()
    tokenizer = smollm2.load_tokenizer()
    with_, without = Tally(), Tally()
    learn = Renames.learn
    for edit in refactorings(given.tasks, given.seed, ["rename"]):
        prompt, answer = render(edit, "whole file", tokenizer)
        with_ += replay(Drafter(tokenizer, budget=given.budget), prompt, answer, given.budget)
        Renames.learn = lambda *_: False
        without += replay(Drafter(tokenizer, budget=given.budget), prompt, answer, given.budget)
        Renames.learn = learn
    on, off = with_.tokens_per_forward, without.tokens_per_forward
    print(f"{on:.2f} tokens per forward with rename learning, {off:.2f} without: {on / off:.2f} times as many")


if __name__ == "__main__":
    main()

"""Measure how often guesses are right: ``python -m benchmarks.calibrate --tasks FILE.jsonl``.

Prints the two tables of `lookahead/draft/calibration.py`. FILE has one JSON object per line with ``before`` and
``after`` (a file's text before and after a change) and ``instruction``; the answer is the whole new file in a fence.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.replay import Tally, replay
from benchmarks.tasks import Edit, read_edits
from examples import smollm2
from lookahead.draft.drafter import Drafter

_SCORED = 65  # tokens of an answer that a candidate is compared with
LENGTHS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)


def bucket(length: int) -> int:
    """Round a match length down to a knot of the tables."""
    return max(knot for knot in LENGTHS if knot <= max(length, 1))


class Rates:
    """Hits and trials by key."""

    def __init__(self) -> None:
        self.hits: defaultdict[Any, int] = defaultdict(int)
        self.trials: defaultdict[Any, int] = defaultdict(int)

    def add(self, key: Any, hit: bool) -> None:
        """Count one trial."""
        self.hits[key] += hit
        self.trials[key] += 1

    def rate(self, key: Any) -> float:
        """Share of hits, drawn a little to one half where trials are few."""
        return (self.hits[key] + 0.5) / (self.trials[key] + 1)


def render(edit: Edit, tokenizer: Any) -> tuple[list[int], list[int]]:
    """Return the ids of a task's prompt and of its answer."""
    chat = [{"role": "user", "content": f"{edit.instruction}\n\nRewrite this file:\n```\n{edit.before}\n```\n"}]
    text = tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
    return tokenizer(text)["input_ids"], tokenizer(f"```\n{edit.after}\n```")["input_ids"]


def observe(drafter: Drafter, answer: list[int], first: Rates, later: Rates) -> None:
    """Score every candidate at the place of one step against what the answer really says."""
    rows, seen, answer = drafter.candidates(), list[int](), answer[:_SCORED]
    if not len(rows):
        return
    text, start = drafter._corpus.tokens, drafter._corpus.first
    top = bucket(int(rows["match_length"].max()))
    for position, length, _ in rows.tolist():
        token = int(text[position - start])
        if token in seen:
            continue
        first.add((len(seen), bucket(length), top), token == answer[0])
        seen.append(token)
        if token == answer[0]:
            copied = drafter._corpus.continuation(position, len(answer)).tolist()
            for depth in range(1, min(len(copied), len(answer))):
                later.add(bucket(length + depth), copied[depth] == answer[depth])
                if copied[depth] != answer[depth]:
                    break


def main() -> None:
    """Replay all tasks and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=Path, required=True)
    parser.add_argument("--min-probability", type=float, default=0.2)
    parser.add_argument("--chain", action="store_true")
    parser.add_argument("--budget", type=int, default=64)
    parser.add_argument("--plain", action="store_true")
    given = parser.parse_args()
    first, later = Rates(), Rates()
    drafter = Drafter(budget=given.budget, min_probability=given.min_probability, tree=not given.chain)
    total, tokenizer = Tally(), smollm2.load_tokenizer()
    observer = None if given.plain else partial(observe, first=first, later=later)
    for edit in read_edits(given.tasks):
        total += replay(drafter, *render(edit, tokenizer), given.budget, observer)
    tokens, forwards, drafted = total.tokens, total.forwards, total.drafted
    print(f"{tokens} tokens, {forwards} forwards, {drafted} drafted, {total.tokens_per_forward:.2f} tokens per forward")
    for cost in (0.03, 0.01, 0.002):
        print(f"{tokens / (forwards + cost * drafted):.2f} per forward time, a draft token costing {cost} forwards")
    if given.plain:
        return
    for rank in range(4):
        print(f"\nrank {rank}: rows own match length, columns the top candidate's")
        print("own    " + "".join(f"{top:>13}" for top in LENGTHS))
        for own in LENGTHS:
            cells = (
                f"{first.rate((rank, own, top)):.3f}/{first.trials[rank, own, top]:<6}"
                if first.trials[rank, own, top]
                else "-"
                for top in LENGTHS
            )
            print(f"{own:<7}" + "".join(f"{cell:>13}" for cell in cells))
    print("\nlater: " + ", ".join(f"{length}: {later.rate(length):.4f}/{later.trials[length]}" for length in LENGTHS))


if __name__ == "__main__":
    main()

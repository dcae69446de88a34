"""Measure how often guesses are right: ``python -m benchmarks.calibrate --tasks FILE.jsonl``.

Prints how reliable the corrected chances are, on edits and on prose, and the two tables that
`lookahead/draft/calibration.py` begins with. FILE has one JSON object per line with ``before`` and ``after`` (a file's
text before and after a change) and ``instruction``; the answer is the whole new file in a fence.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

from benchmarks.tables import show_reliability
from lookahead.bench.replay import Tally, replay
from lookahead.bench.tasks import Edit, read_edits
from lookahead.draft.drafter import Drafter
from lookahead.hf import smollm2

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
    rows, seen, answer = drafter.candidates().places, list[int](), answer[:_SCORED]
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


def prose(tokenizer: Any, tokens: int = 600) -> Iterator[tuple[list[int], list[int]]]:
    """Yield beginnings of long pages of Python's manual and how they go on; nothing there is copied on purpose."""
    for title, page in topics.items():
        ids = tokenizer(page)["input_ids"]
        if len(ids) > 2 * tokens:
            yield tokenizer(f"Write about {title}.\n")["input_ids"] + ids[:tokens], ids[tokens : 2 * tokens]


def main() -> None:
    """Replay all tasks and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=Path, required=True)
    parser.add_argument("--cost", default="linear:0.03")
    given = parser.parse_args()
    first, later = Rates(), Rates()
    drafter = Drafter(budget=64, cost=given.cost)
    total, tokenizer = Tally(), smollm2.load_tokenizer()
    for edit in read_edits(given.tasks):
        total += replay(drafter, *render(edit, tokenizer), 64, partial(observe, first=first, later=later))
    print("Edits:")
    show_reliability(total.reliability)
    novel, drafter = Tally(), Drafter(tokenizer, budget=64, cost="linear:0")  # all guesses, also bad ones
    for prompt, answer in prose(tokenizer):
        novel += replay(drafter, prompt, answer, 8)
    print("\nProse (manual pages of Python), all guesses:")
    show_reliability(novel.reliability)
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

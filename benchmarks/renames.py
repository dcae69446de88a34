"""What learning renames is worth: ``python -m benchmarks.renames``.

Tasks that need nothing from outside: in modules of the standard library one identifier that is used at least ten times
gets a new name, and the answer is the whole new file. The same drafter runs with rename learning and without.
"""

from __future__ import annotations

import argparse
import ast
import random
import re
import sysconfig
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from benchmarks.replay import Tally, replay
from benchmarks.tasks import Edit, render
from examples import smollm2
from lookahead import Drafter
from lookahead.views.renames import Renames

_NEW_NAMES = (
    "current",
    "entry",
    "payload",
    "handler",
    "settings",
    "cursor",
    "bucket",
    "resolver",
    "snapshot",
    "channel",
)


def rename_tasks(count: int, seed: int) -> Iterator[Edit]:
    """Yield renames in modules of 2 to 16 kB, in an order that the seed fixes."""
    random_ = random.Random(seed)
    paths = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
    random_.shuffle(paths)
    for path in paths:
        text = path.read_text(encoding="utf-8", errors="replace")
        if not 2_000 <= len(text) <= 16_000:
            continue
        names = [node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)]
        often = sorted(
            name
            for name, _ in Counter(names).items()
            if len(name) > 3 and len(re.findall(rf"\b{name}\b", text)) >= 10 and name not in dir(__builtins__)
        )
        if not often:
            continue
        old = random_.choice(often)
        new = random_.choice([name for name in _NEW_NAMES if name not in text])
        yield Edit(path.name, f"Rename {old} to {new}.", text, re.sub(rf"\b{old}\b", new, text))
        count -= 1
        if not count:
            return


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
    for edit in rename_tasks(given.tasks, given.seed):
        prompt, answer = render(edit, "whole file", tokenizer)
        with_ += replay(Drafter(tokenizer, budget=given.budget), prompt, answer, given.budget)
        Renames.learn = lambda *_: False
        without += replay(Drafter(tokenizer, budget=given.budget), prompt, answer, given.budget)
        Renames.learn = learn
    on, off = with_.tokens_per_forward, without.tokens_per_forward
    print(f"{on:.2f} tokens per forward with rename learning, {off:.2f} without: {on / off:.2f} times as many")


if __name__ == "__main__":
    main()

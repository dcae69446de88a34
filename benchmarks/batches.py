"""Gain against batch size: ``python -m benchmarks.batches``.

SmolLM2 at batch sizes 1 to 16, plain `generate` and lookahead in turns. Copies: every row writes another module of the
standard library once more (its first lines stand in the prompt), greedily; lookahead as it is, and with drafts as long
as they go (the policy off). Novel text: every row answers another question at temperature 1.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import statistics
import time
from typing import Any

import torch

from benchmarks.timing import machine, ratio
from examples import smollm2
from lookahead import Lookahead

_MODULES = (
    "bisect", "calendar", "cmd", "colorsys", "contextlib", "copy", "csv", "dis", "fileinput", "fnmatch", "fractions",
    "getopt", "glob", "heapq", "imaplib", "keyword",
)  # fmt: skip
_QUESTIONS = (
    "How are rainbows made?", "Write a poem about rain.", "Who was Marie Curie?", "What is a black hole?",
    "Tell me a joke about a cat.", "How do I learn to swim?", "What makes bread rise?", "Describe a market in spring.",
    "Why is the sea salty?", "Write a letter to a friend abroad.", "How does a lock work?", "What is democracy?",
    "Explain what an atom is.", "How do birds find their way?", "What should I cook tonight?", "Invent a new sport.",
)  # fmt: skip
POLICIES: dict[str, dict[str, Any]] = {"lookahead": {}, "policy off": {"budget": 16, "cost": "linear:0"}}


def prompts(tokenizer: Any, lines: int) -> dict[str, list[str]]:
    """Return the texts of the rows of both tasks."""
    codes = ["\n".join(inspect.getsource(importlib.import_module(name)).splitlines()[:lines]) for name in _MODULES]
    asked = [f"Here is a file:\n\n```\n{code}\n```\n\nWrite the whole file once more, unchanged." for code in codes]

    def chat(text: str) -> str:
        made: str = tokenizer.apply_chat_template(
            [{"role": "user", "content": text}], add_generation_prompt=True, tokenize=False
        )
        return made

    return {"copies": [chat(text) + "```\n" for text in asked], "novel text": [chat(text) for text in _QUESTIONS]}


def measure(task: str, texts: list[str], model: Any, tokenizer: Any, given: argparse.Namespace) -> None:
    """Time one task at one batch size and print a line of the table."""
    inputs = tokenizer(texts, add_special_tokens=False, return_tensors="pt", padding=True, padding_side="left")
    copies, policies = task == "copies", POLICIES if task == "copies" else {"lookahead": {}}
    tokens = given.tokens if copies else given.tokens // 2
    settings = {"max_new_tokens": tokens, "do_sample": not copies}
    seconds: dict[str, list[float]] = {name: [] for name in ("generate", *policies)}
    outputs, forwards = dict[str, torch.Tensor](), dict[str, int]()
    for round_ in range(-1, given.rounds):  # the first is not counted
        names = list(seconds) if round_ % 2 else list(reversed(seconds))
        for name in names:
            custom = {"custom_generate": Lookahead(tokenizer, **policies[name])} if name in policies else {}
            torch.manual_seed(round_)
            started = time.perf_counter()
            outputs[name] = model.generate(**inputs, **settings, **custom)
            if round_ >= 0:
                seconds[name].append(time.perf_counter() - started)
            if custom:
                forwards[name] = custom["custom_generate"].stats.forwards
    cells = []
    for name in policies:
        middle, least, most = ratio(seconds["generate"], seconds[name])
        cells += [f"{tokens / forwards[name]:.2f}", f"{middle:.2f} ({least:.2f} to {most:.2f})"]
    cells += ["", ""] * (len(POLICIES) - len(policies))
    speed = len(texts) * tokens / statistics.median(seconds["generate"])
    same = sum(torch.equal(*rows) for rows in zip(outputs["generate"], outputs["lookahead"], strict=True))
    equal = f"{same} of {len(texts)}" if copies else "sampled"
    print(f"| {task} | {len(texts)} | {speed:.1f} | {' | '.join(cells)} | {equal} |", flush=True)


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description="SmolLM2: gain against batch size.")
    parser.add_argument("--sizes", nargs="+", type=int, default=(1, 2, 4, 8, 16))
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--lines", type=int, default=40)
    given = parser.parse_args()
    print(f"{machine()}\n")
    model, tokenizer = smollm2.load()
    model.generation_config.eos_token_id = None
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    print("| task | rows | tokens per second, generate | tokens per row and forward | faster than generate ", end="")
    print("| the same, policy off | faster | rows equal |\n|---|---|---|---|---|---|---|---|")
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    for task, texts in prompts(tokenizer, given.lines).items():
        for size in given.sizes:
            measure(task, texts[:size], model, tokenizer, given)


if __name__ == "__main__":
    main()

"""Chat and prose that are no copy: ``python -m benchmarks.recycling``.

SmolLM2 answers questions and goes on with beginnings of texts, greedily and at temperature 1: plain `generate`, and
lookahead with and without what the model almost said. One `Lookahead` of each kind serves all requests, none comes
twice, and the outputs must be equal. By default drafts are as long as pays on this machine; ``--cost linear:0.002``
drafts as beside a GPU, where the clock here says nothing.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections import defaultdict
from typing import Any

import torch

from benchmarks.timing import machine
from lookahead import Lookahead
from lookahead.hf import smollm2

_CHATS = (
    "How do vaccines protect people?",
    "Write a short speech for the opening of a town library.",
    "What is the difference between weather and climate?",
    "Give me a recipe for pancakes and explain each step.",
    "Explain to a beginner what a database index is.",
    "Tell me about the history of the printing press.",
)
_PROSE = (
    "The old harbour had been quiet since the fishing boats left. On the last day of October, a stranger",
    "In economics, inflation is understood as",
    "My grandmother kept a garden behind the house. Every spring she",
    "The invention of the telescope changed the way in which",
    "It was already dark when the train stopped between two stations. The conductor",
    "A good teacher does not only know the subject.",
)


def prompts(tokenizer: Any) -> dict[str, list[torch.Tensor]]:
    """Return the ids of all requests, int64 [1, length]."""
    chats = [
        tokenizer.apply_chat_template([{"role": "user", "content": one}], add_generation_prompt=True, tokenize=False)
        for one in _CHATS
    ]
    return {
        kind: [tokenizer(text, add_special_tokens=False, return_tensors="pt")["input_ids"] for text in texts]
        for kind, texts in (("chat", chats), ("prose", list(_PROSE)))
    }


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description="SmolLM2 on chat and prose, with and without recycling.")
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--cost", default=None, help="as for Lookahead; measured when left out")
    given = parser.parse_args()
    print(f"{machine()}\n\ncost: {given.cost or 'measured'}, up to {given.tokens} tokens each\n")
    model, tokenizer = smollm2.load()
    print("| text | tokens per forward: with recycling | without | faster than generate: with (median) | without |")
    print("|---|---|---|---|---|")
    for kind, rows in prompts(tokenizer).items():
        for samples in (False, True):
            measure(f"{kind}, {'temperature 1' if samples else 'greedy'}", rows, samples, model, tokenizer, given)


def measure(name: str, rows: list[torch.Tensor], samples: bool, model: Any, tokenizer: Any, given: Any) -> None:
    """Run all requests of a kind and print one line of the table."""
    made = {kind: Lookahead(tokenizer, recycling=kind == "with", cost=given.cost) for kind in ("with", "without")}
    tokens, forwards, gains = 0, defaultdict[str, int](int), defaultdict[str, list[float]](list)
    for number, ids in enumerate(rows):
        seconds, outputs = dict[str, float](), dict[str, torch.Tensor]()
        order = ["generate", *made]
        for kind in order[number % 3 :] + order[: number % 3]:
            custom = {"custom_generate": made[kind]} if kind in made else {}
            torch.manual_seed(number)
            started = time.perf_counter()
            outputs[kind] = model.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                max_new_tokens=given.tokens,
                do_sample=samples,
                temperature=1.0 if samples else None,
                top_p=None,
                **custom,
            )
            seconds[kind] = time.perf_counter() - started
        if any(not torch.equal(output, outputs["generate"]) for output in outputs.values()):
            raise SystemExit(f"{name}: the outputs differ")
        tokens += outputs["generate"].shape[1] - ids.shape[1]
        for kind, lookahead in made.items():
            forwards[kind] += lookahead.stats.forwards
            gains[kind].append(seconds["generate"] / seconds[kind])
    per_forward = " | ".join(f"{tokens / forwards[kind]:.2f}" for kind in made)
    print(
        f"| {name} | {per_forward} | " + " | ".join(f"{statistics.median(gains[kind]):.3f}" for kind in made) + " |",
        flush=True,
    )


if __name__ == "__main__":
    main()

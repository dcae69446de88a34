"""Gain against batch size: ``python -m benchmarks.batches``.

SmolLM2 at batch sizes 1 to 16, plain `generate` and lookahead in turns, every run with a new `Lookahead`.
Edits, with a FORCED ANSWER as in `benchmarks.forced`: every row writes another module of the standard library with one
identifier renamed, greedily; lookahead as it is, and with drafts of a fixed length (the policy off).
Novel text: every row answers another question at temperature 1.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

import torch
from transformers import LogitsProcessor, LogitsProcessorList

from benchmarks.renames import rename_tasks
from benchmarks.tasks import render
from benchmarks.timing import machine, ratio
from examples import smollm2
from lookahead import Lookahead

_QUESTIONS = (
    "How are rainbows made?", "Write a poem about rain.", "Who was Marie Curie?", "What is a black hole?",
    "Tell me a joke about a cat.", "How do I learn to swim?", "What makes bread rise?", "Describe a market in spring.",
    "Why is the sea salty?", "Write a letter to a friend abroad.", "How does a lock work?", "What is democracy?",
    "Explain what an atom is.", "How do birds find their way?", "What should I cook tonight?", "Invent a new sport.",
)  # fmt: skip
POLICIES: dict[str, dict[str, Any]] = {"lookahead": {}, "policy off": {"budget": 16, "cost": "linear:0"}}


class ForceRows(LogitsProcessor):
    """Lifts the next token of the recorded answer that belongs to a row's prompt, by a finite number."""

    row_wise = True

    def __init__(self, prompts: torch.Tensor, answers: list[list[int]]) -> None:
        self.length = prompts.shape[1]
        self.answers = {tuple(prompt): answer for prompt, answer in zip(prompts.tolist(), answers, strict=True)}

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Change scores, float32 [rows, vocabulary], in place."""
        for row, ids in zip(scores, input_ids.tolist(), strict=True):
            row[self.answers[tuple(ids[: self.length])][len(ids) - self.length]] += 1e4
        return scores


def edits(tokenizer: Any, rows: int, tokens: int) -> list[tuple[list[int], list[int]]]:
    """Return the prompts and answers of the tasks with the shortest prompts."""
    rendered = [render(edit, "whole file", tokenizer) for edit in rename_tasks(60, seed=0)]
    long = sorted((row for row in rendered if len(row[1]) >= tokens), key=lambda row: len(row[0]))
    return long[:rows]


def padded(prompts: list[list[int]], pad: int) -> dict[str, torch.Tensor]:
    """Return ids and mask, int64 [rows, longest], padded on the left."""
    longest = max(map(len, prompts))
    ids = torch.tensor([[pad] * (longest - len(prompt)) + prompt for prompt in prompts])
    mask = torch.tensor([[0] * (longest - len(prompt)) + [1] * len(prompt) for prompt in prompts])
    return {"input_ids": ids, "attention_mask": mask}


def measure(task: str, rows: list[tuple[list[int], list[int]]], model: Any, tokenizer: Any, given: Any) -> None:
    """Time one task at one batch size and print a line of the table."""
    forced, policies = task == "edits", POLICIES if task == "edits" else {"lookahead": {}}
    inputs = padded([prompt for prompt, _ in rows], tokenizer.pad_token_id)
    processors = [ForceRows(inputs["input_ids"], [answer for _, answer in rows])] if forced else []
    seconds: dict[str, list[float]] = {name: [] for name in ("generate", *policies)}
    outputs, forwards = dict[str, torch.Tensor](), dict[str, int]()
    for round_ in range(-1, given.rounds):  # the first is not counted
        for name in list(seconds) if round_ % 2 else list(reversed(seconds)):
            lookahead = Lookahead(tokenizer, **policies[name]) if name in policies else None
            torch.manual_seed(round_)
            started = time.perf_counter()
            outputs[name] = model.generate(
                **inputs,
                max_new_tokens=given.tokens,
                do_sample=not forced,
                logits_processor=LogitsProcessorList(processors),
                custom_generate=lookahead,
            )
            if round_ >= 0:
                seconds[name].append(time.perf_counter() - started)
            if lookahead is not None:
                forwards[name] = lookahead.stats.forwards
    if forced and any(not torch.equal(output, outputs["generate"]) for output in outputs.values()):
        raise SystemExit("the outputs differ")
    cells = [f"{len(rows) * given.tokens / statistics.median(seconds['generate']):.1f}"]
    for name in policies:
        middle, least, most = ratio(seconds["generate"], seconds[name])
        cells += [f"{given.tokens / forwards[name]:.2f}", f"{middle:.2f} ({least:.2f} to {most:.2f})"]
    print(f"| {task} | {len(rows)} | {' | '.join(cells + [''] * (5 - len(cells)))} |", flush=True)


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description="SmolLM2: gain against batch size.")
    parser.add_argument("--sizes", nargs="+", type=int, default=(1, 2, 4, 8, 16))
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--tokens", type=int, default=128)
    given = parser.parse_args()
    print(f"{machine()}\n")
    model, tokenizer = smollm2.load()
    model.generation_config.eos_token_id = None
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    chats = [[{"role": "user", "content": question}] for question in _QUESTIONS]
    texts = [tokenizer.apply_chat_template(chat, add_generation_prompt=True, tokenize=False) for chat in chats]
    tasks = {
        "edits": edits(tokenizer, max(given.sizes), given.tokens),
        "novel text": [(tokenizer(text, add_special_tokens=False)["input_ids"], []) for text in texts],
    }
    print(
        "| task | rows | tokens per second, generate | longest row's tokens per forward | faster than generate ", end=""
    )
    print("| the same, policy off | faster |\n|---|---|---|---|---|---|---|")
    for task, rows in tasks.items():
        for size in given.sizes:
            measure(task, rows[:size], model, tokenizer, given)


if __name__ == "__main__":
    main()

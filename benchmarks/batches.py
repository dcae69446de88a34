"""Gain against batch size: ``python -m benchmarks.batches``.

SmolLM2 at batch sizes 1 to 16, plain `generate` and lookahead, a forward of each in turns, every run with a new
`Lookahead`.
Edits, with a FORCED ANSWER: every row writes the first lines of another module of the standard library with one name
changed,
greedily; lookahead as it is, and with drafts of a fixed length (the policy off).
Novel text: every row answers another question at temperature 1.
"""

from __future__ import annotations

import argparse
import statistics
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from transformers import LogitsProcessor, LogitsProcessorList

from benchmarks.refactorings import refactorings
from benchmarks.reports import Report, Row, add_report_option, keep, made
from benchmarks.tables import spread, table
from benchmarks.timing import forward_by_forward, ratio
from lookahead import Lookahead
from lookahead.bench.tasks import render
from lookahead.hf import smollm2

_QUESTIONS = (
    "How are rainbows made?", "Write a poem about rain.", "Who was Marie Curie?", "What is a black hole?",
    "Tell me a joke about a cat.", "How do I learn to swim?", "What makes bread rise?", "Describe a market in spring.",
    "Why is the sea salty?", "Write a letter to a friend abroad.", "How does a lock work?", "What is democracy?",
    "Explain what an atom is.", "How do birds find their way?", "What should I cook tonight?", "Invent a new sport.",
)  # fmt: skip
_LINES = 40  # of a module; reading a whole one in sixteen rows takes a minute
POLICIES: dict[str, dict[str, Any]] = {"lookahead": {}, "policy off": {"budget": 16, "cost": "linear:0"}}


class Force(LogitsProcessor):
    """Lifts the next token of the recorded answer that belongs to a row's prompt, by a finite number."""

    row_wise = True  # so that a batch may use it

    def __init__(self, prompts: torch.Tensor, answers: list[list[int]]) -> None:
        self.length = prompts.shape[1]
        self.answers = {tuple(prompt): answer for prompt, answer in zip(prompts.tolist(), answers, strict=True)}

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Change scores, float32 [rows, vocabulary], in place."""
        for row, ids in zip(scores, input_ids.tolist(), strict=True):
            answer, at = self.answers[tuple(ids[: self.length])], len(ids) - self.length
            if at < len(answer):
                row[answer[at]] += 1e4
        return scores


def edits(tokenizer: Any, rows: int, tokens: int) -> list[tuple[list[int], list[int]]]:
    """Return the prompts and answers of the tasks with the shortest prompts, each of the first lines of a module."""
    whole = refactorings(60, 0, ["rename"])
    short = [replace(edit, before=_head(edit.before), after=_head(edit.after)) for edit in whole]
    rendered = [render(edit, "whole file", tokenizer) for edit in short if edit.before != edit.after]
    long = sorted((row for row in rendered if len(row[1]) >= tokens), key=lambda row: len(row[0]))
    return long[:rows]


def _head(text: str) -> str:
    """Return the first lines of a module."""
    return "".join(text.splitlines(keepends=True)[:_LINES])


def measure(task: str, rows: list[tuple[list[int], list[int]]], model: Any, tokenizer: Any, given: Any) -> Row:
    """Time one task at one batch size; return seconds, and the longest row's forwards."""
    forced, policies = task == "edits", POLICIES if task == "edits" else {"lookahead": {}}
    prompts = [{"input_ids": prompt} for prompt, _ in rows]
    inputs = tokenizer.pad(prompts, padding_side="left", return_tensors="pt")
    processors = [Force(inputs["input_ids"], [answer for _, answer in rows])] if forced else []
    ways = ["generate", *policies]
    outputs, used = dict[str, torch.Tensor](), dict[str, Lookahead]()

    def run(name: str) -> None:
        if name in policies:
            used[name] = Lookahead(tokenizer, **policies[name])  # a new one remembers nothing of the rounds before
        outputs[name] = model.generate(
            **inputs,
            max_new_tokens=given.tokens,
            do_sample=not forced,
            logits_processor=LogitsProcessorList(processors),
            custom_generate=used.get(name),
        )

    seconds = dict[str, list[float]]()
    for _ in range(given.rounds + 1):
        torch.manual_seed(0)
        for name, one in forward_by_forward(model, {name: partial(run, name) for name in ways}).items():
            seconds.setdefault(name, []).append(one)
        ways.reverse()
    seconds = {name: found[1:] for name, found in seconds.items()}  # the first round warms up
    if forced and any(not torch.equal(output, outputs["generate"]) for output in outputs.values()):
        raise SystemExit("the outputs differ")
    forwards = {name: one.stats.forwards for name, one in used.items()}
    return {"task": task, "rows": len(rows), "tokens": given.tokens, "seconds": seconds, "forwards": forwards}


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description="SmolLM2: gain against batch size.")
    parser.add_argument("--sizes", nargs="+", type=int, default=(1, 2, 4, 8, 16))
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--tokens", type=int, default=128)
    add_report_option(parser)
    given = parser.parse_args()
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
    found = [
        measure(task, rows[:size], model, tokenizer, given) for task, rows in tasks.items() for size in given.sizes
    ]
    report = made("batches", found, rounds=given.rounds)
    keep(report, given)
    print(f"{report['machine']}\n\n{markdown(report)}")


def markdown(report: Report) -> str:
    """Return the table."""
    rows = []
    for row in report["rows"]:
        plain = row["seconds"]["generate"]
        cells = [row["task"], str(row["rows"]), f"{row['rows'] * row['tokens'] / statistics.median(plain):.1f}"]
        for name, forwards in row["forwards"].items():
            cells += [f"{row['tokens'] / forwards:.2f}", spread(*ratio(plain, row["seconds"][name]))]
        rows.append(cells + [""] * (7 - len(cells)))
    head = ["task", "rows", "tokens per second, generate", "longest row's tokens per forward", "faster than generate"]
    how = f"{report['rounds']} rounds, a forward of each way in turns; medians (least to greatest)."
    said = f"Edits are a FORCED ANSWER. {how}"
    return "\n\n".join([said, table([*head, "the same, policy off", "faster"], rows)])


if __name__ == "__main__":
    main()

"""End to end with a forced answer: ``python -m benchmarks.forced --tasks FILE.jsonl``.

SmolLM2-135M rewrites whole files by itself, but fails at tool calls and diffs. Here its real forward runs and is paid
for, while a logits processor lifts the recorded answer's next token by a large finite number: so would a stronger model
of that size behave. Plain `generate`, stock prompt lookup and lookahead go through the same `generate`, in turns.
FORCED ANSWER: the texts are recorded, the times are measured.
"""

from __future__ import annotations

import argparse
import statistics
from pathlib import Path
from typing import Any

import torch
from transformers import LogitsProcessor, LogitsProcessorList

from benchmarks.timing import in_turns, machine, ratio
from lookahead import Lookahead
from lookahead.bench.tasks import FORMATS, read_edits, render
from lookahead.hf import smollm2


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


def main() -> None:
    """Measure each format on a few tasks and print a table."""
    parser = argparse.ArgumentParser(description="Generation with a forced answer: generate, prompt lookup, lookahead.")
    parser.add_argument("--tasks", type=Path, required=True)
    parser.add_argument(
        "--count", type=int, default=4, help="tasks of each format, the first whose answer is short enough"
    )
    parser.add_argument("--longest", type=int, default=900, help="longest answer, in tokens")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--formats", nargs="+", default=("json", "numbered"), choices=FORMATS, metavar="FORMAT")
    parser.add_argument(
        "--lookups", nargs="+", type=int, default=(10, 20), help="tokens that stock prompt lookup drafts"
    )
    given = parser.parse_args()
    print(machine())
    model, tokenizer = smollm2.load()
    model.generation_config.eos_token_id = None
    print(
        "\n| format (forced answer) | tokens | generate | " + " | ".join(f"prompt lookup {n}" for n in given.lookups),
        end="",
    )
    print(" | lookahead | faster than generate | than the best prompt lookup |")
    print("|---" * (6 + len(given.lookups)) + "|")
    for form in given.formats:
        rows = [render(edit, form, tokenizer) for edit in read_edits(given.tasks)]
        rows = [(prompt, answer) for prompt, answer in rows if len(answer) <= given.longest][: given.count]
        if not rows:
            raise SystemExit(f"no answer in the format {form} has at most {given.longest} tokens; raise --longest")
        measure(form, rows, model, tokenizer, given)


def measure(form: str, rows: list[tuple[list[int], list[int]]], model: Any, tokenizer: Any, given: Any) -> None:
    """Time all tasks of a format and print one line of the table."""

    def run(**settings: Any) -> None:
        for prompt, answer in rows:
            ids = torch.tensor([prompt])
            out = model.generate(
                ids,
                max_new_tokens=len(answer),
                do_sample=False,
                logits_processor=LogitsProcessorList([Force(ids, [answer])]),
                **settings,
            )
            if out[0, len(prompt) :].tolist() != answer:
                raise SystemExit("an output is not the forced answer")

    runs = {"generate": run, "lookahead": lambda: run(custom_generate=Lookahead(tokenizer))}
    runs |= {f"lookup {n}": lambda n=n: run(prompt_lookup_num_tokens=n) for n in given.lookups}
    seconds = in_turns(runs, given.rounds)
    tokens = sum(len(answer) for _, answer in rows)
    best = min((seconds[f"lookup {n}"] for n in given.lookups), key=statistics.median)
    cells = ["generate", *(f"lookup {n}" for n in given.lookups), "lookahead"]
    speeds = " | ".join(f"{tokens / statistics.median(seconds[cell]):.1f}" for cell in cells)
    gains = [ratio(values, seconds["lookahead"])[0] for values in (seconds["generate"], best)]
    print(f"| {form} | {tokens} | {speeds} | {gains[0]:.2f} | {gains[1]:.2f} |", flush=True)


if __name__ == "__main__":
    main()

"""SmolLM2 by the clock, on what it writes itself: ``python -m benchmarks.generate``.

Six tasks, from a file written anew down to prose that copies nothing: plain `generate`, stock prompt lookup at its
defaults and at its best setting (found here, task by task, by the clock), and lookahead, in turns. Greedily all outputs
must be equal; at a temperature lookahead's must be those of plain `generate` with the same seed. A model of this size
fails at tool calls and diffs: these answers are opened for it, and what it goes on to say counts, be it right or not;
`benchmarks.scaled` has right answers.
"""

from __future__ import annotations

import argparse
import statistics
import time
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch

from benchmarks.reports import Report, Row, add_report_option, keep, made
from benchmarks.tables import spread, table
from benchmarks.timing import bootstrapped, in_turns
from lookahead import Lookahead, Stats
from lookahead.cli import rewriting
from lookahead.hf import smollm2

_ROOT = Path(__file__).parents[1]
_TOOL_CALL = '<tool_call>\n{"name": "write_file", "arguments": {"path": "settings.env", "content": "'
_DIFF = "```diff\n--- a/settings.env\n+++ b/settings.env\n@@"
_OPENINGS = {"file rewrite": "", "JSON tool call": _TOOL_CALL, "diff": _DIFF}
_PROSE = "The old harbour had been quiet since the fishing boats left. On the last day of October, a stranger"
_CHAT = "What is the difference between weather and climate?"
TASKS = (*_OPENINGS, "chat", "summarise", "novel prose")


class Run(NamedTuple):
    """What one way of decoding did in its last run."""

    ids: torch.Tensor
    forwards: int
    stats: Stats | None


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="SmolLM2 generating: generate, stock prompt lookup, lookahead.")
    parser.add_argument("--tasks", nargs="+", default=TASKS, choices=TASKS, metavar="TASK", help="; ".join(TASKS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=1024, help="most tokens of an answer")
    parser.add_argument("--temperatures", nargs="+", type=float, default=(0.0, 0.7), help="0 is greedy search")
    parser.add_argument("--lookups", nargs="+", type=int, default=(10, 20, 40), help="lengths tried for prompt lookup")
    add_report_option(parser)
    given = parser.parse_args()
    model, tokenizer = smollm2.load()
    rows = []
    for temperature in given.temperatures:
        for task in given.tasks:
            rows.append(measure(task, temperature, model, tokenizer, given))
            print(f"\n{row_table(rows[-1])}", flush=True)
    report = made("generate", rows, rounds=given.rounds)
    keep(report, given)
    print(f"\n{report['machine']}")
    different = [f"{row['task']} at {row['temperature']}" for row in rows if not row["equal"]]
    if different:
        raise SystemExit(f"lookahead's output is not generate's: {', '.join(different)}")


def prompt(task: str, tokenizer: Any) -> Any:
    """Return the ids and the mask of a task's prompt."""
    if task in _OPENINGS:
        inputs = rewriting.encode(tokenizer, rewriting.FILE.read_text("utf-8"), rewriting.INSTRUCTION)
        opening = _OPENINGS[task]
        if not opening:
            return inputs
        file = rewriting.FILE.read_text(encoding="utf-8")
        words = f"Here is settings.env:\n\n```\n{file}```\n\n{rewriting.INSTRUCTION}\nAnswer with a {task}."
    elif task == "summarise":
        licence = (_ROOT / "LICENSE").read_text(encoding="utf-8")
        opening, words = "", f"Summarise this text:\n\n{licence[:6000]}"
    else:
        opening, words = "", _CHAT
    if task == "novel prose":
        text = _PROSE
    else:
        chat = [{"role": "user", "content": words}]
        text = tokenizer.apply_chat_template(chat, add_generation_prompt=True, tokenize=False) + opening
    return tokenizer(text, add_special_tokens=False, return_tensors="pt")


def measure(task: str, temperature: float, model: Any, tokenizer: Any, given: argparse.Namespace) -> dict[str, Any]:
    """Run one task in all ways; return times, counts and comparisons."""
    inputs = prompt(task, tokenizer)
    sampling = {"do_sample": True, "temperature": temperature} if temperature else {"do_sample": False}
    runs: dict[str, Run] = {}

    def run(name: str, tokens: int = given.tokens, **settings: Any) -> None:
        count, ahead = [0], Lookahead(tokenizer) if name == "lookahead" else None  # a new one remembers no round before
        hook = model.register_forward_hook(lambda *_: count.__setitem__(0, count[0] + 1))
        torch.manual_seed(0)
        ids = model.generate(**inputs, **sampling, max_new_tokens=tokens, custom_generate=ahead, **settings)
        hook.remove()
        runs[name] = Run(ids[0, inputs["input_ids"].shape[1] :], count[0], ahead.stats if ahead else None)

    lookups = {
        f"prompt lookup, {length} tokens, n={n}": partial(
            run, f"prompt lookup, {length} tokens, n={n}", prompt_lookup_num_tokens=length, max_matching_ngram_size=n
        )
        for length in given.lookups
        for n in (2, 5)
    }
    ways = {
        "generate": partial(run, "generate"),
        **chosen(lookups, runs, given.tokens // 2),
        "lookahead": partial(run, "lookahead"),
    }
    seconds = in_turns(ways, given.rounds)
    plain, ours = runs["generate"], runs["lookahead"]
    return {
        "task": task,
        "temperature": temperature,
        "prompt": inputs["input_ids"].shape[1],
        "seconds": seconds,
        "tokens": {name: len(runs[name].ids) for name in ways},
        "forwards": {name: runs[name].forwards for name in ways},
        "equal": torch.equal(plain.ids, ours.ids),
        "equal_to_generate": [name for name in ways if torch.equal(runs[name].ids, plain.ids)],
        "split": {part: getattr(ours.stats, f"{part}_seconds") for part in ("draft", "verify", "rest")},
    }


def chosen(lookups: dict[str, Any], runs: dict[str, Run], tokens: int) -> dict[str, Any]:
    """Return the first setting of prompt lookup and the one of the least time for a token, in a short run of each."""
    next(iter(lookups.values()))(tokens=16)  # warms up
    took = {}
    for name, way in lookups.items():
        started = time.perf_counter()
        way(tokens=tokens)
        took[name] = (time.perf_counter() - started) / len(runs[name].ids)
    names = dict.fromkeys([next(iter(lookups)), min(took, key=took.__getitem__)])
    return {name: lookups[name] for name in names}


def row_table(row: Row) -> str:
    """Return the table of one task and how lookahead's time divides."""
    kind = f"temperature {row['temperature']}" if row["temperature"] else "greedy"
    cells = []
    for name, values in times_of(row).items():
        tokens, forwards = row["tokens"][name], row["forwards"][name]
        faster = "" if name == "lookahead" else spread(*bootstrapped(values, times_of(row)["lookahead"]))
        speed = 1 / statistics.median(values)
        equal = "yes" if name in row["equal_to_generate"] else "no"
        cells.append([name, str(tokens), f"{speed:.1f}", str(forwards), f"{tokens / forwards:.2f}", faster, equal])
    head = [f"{row['task']}, {kind}", "tokens", "tokens per second", "forwards", "tokens per forward"]
    whole = sum(row["split"].values())
    split = ", ".join(f"{part} {spent / whole:.1%}" for part, spent in row["split"].items())
    return f"{table([*head, 'lookahead is faster by', 'the output of generate'], cells)}\n\nlookahead's time: {split}."


def times_of(row: Row) -> dict[str, list[float]]:
    """Return the seconds that each way took for a token, in each round."""
    return {name: [one / row["tokens"][name] for one in values] for name, values in row["seconds"].items()}


def markdown(report: Report) -> str:
    """Return the tables of all tasks."""
    said = f"{report['rounds']} rounds in turns, after one that is not measured; medians, 95 % intervals by bootstrap."
    return "\n\n".join([said, *map(row_table, report["rows"])])


if __name__ == "__main__":
    main()

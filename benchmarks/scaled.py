"""What a stronger model of some size would gain, by the clock: ``python -m benchmarks.scaled --sizes 135M 0.5B 1B``.

FORCED ANSWER: the texts are recorded, the times are measured (see `benchmarks.forcing`). SmolLM2-135M, and models like
Llama with random weights, write refactorings of the standard library behind prompts of 1k tokens and more: plain
`generate`, stock prompt lookup at the best of its settings (found here, for each row, by the clock), and a new
`Lookahead`, in turns. Reading the prompt is not timed; only the answer's first tokens are written.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch
from transformers import AutoModelForCausalLM, LlamaConfig

from benchmarks.forcing import Forced, Prefilled, clock
from benchmarks.replay import others
from benchmarks.reports import Report, Row, add_report_option, keep, made
from benchmarks.tables import spread, table
from benchmarks.task_options import add_task_options, edits_of
from benchmarks.timing import in_turns, ratio
from lookahead import Lookahead
from lookahead.bench.tasks import Edit, render
from lookahead.hf import smollm2

__all__ = ["SHAPES", "Task", "load", "markdown", "measure", "task_of"]

SHAPES = {  # random weights: hidden size, layers, heads, of these with keys of their own, size between
    "0.5B": (1024, 24, 16, 4, 5120),
    "1B": (2048, 16, 32, 8, 8192),
    "8B": (4096, 32, 32, 8, 14336),
}
_POSITIONS = 2**17


class Task(NamedTuple):
    """What is to be written behind what."""

    prompt: torch.Tensor  # int64 [1, length]
    answer: list[int]


def main() -> None:
    """Measure, print and keep."""
    parser = argparse.ArgumentParser(description="Forced answers: what a stronger model of some size would gain.")
    add_task_options(parser)
    parser.set_defaults(count=4, formats=("json", "diff"))
    parser.add_argument("--sizes", nargs="+", default=["135M"], choices=["135M", *SHAPES])
    parser.add_argument("--dtypes", nargs="+", default=["float32", "bfloat16"], choices=["float32", "bfloat16"])
    parser.add_argument("--contexts", nargs="+", type=int, default=[1000, 4000], help="tokens of the prompt, about")
    parser.add_argument("--tokens", type=int, default=96, help="tokens that are written of the answer")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--lookups", nargs="+", type=int, default=[10, 32], help="lengths tried for prompt lookup")
    add_report_option(parser)
    given = parser.parse_args()
    tokenizer = smollm2.load_tokenizer()
    edits, source = edits_of(given)
    rows = []
    for size, dtype in itertools.product(given.sizes, given.dtypes):
        model = load(size, getattr(torch, dtype), tokenizer)
        for context, form in itertools.product(given.contexts, given.formats):
            task = task_of(edits, form, context, given.tokens, tokenizer)
            ways = ways_of(model, tokenizer, given.lookups)
            place = {"size": size, "dtype": dtype, "format": form, "context": task.prompt.shape[1]}
            rows.append(place | measure(model, task, ways, given.rounds))
    report = made("scaled", rows, tasks=source, tokens=given.tokens, rounds=given.rounds)
    keep(report, given)
    print(f"{report['machine']}\n\n{markdown(report)}")


def load(size: str, dtype: torch.dtype, tokenizer: Any, device: str = "cpu") -> Any:
    """Return SmolLM2, or a model of random weights of that size, which never ends by itself."""
    if size == "135M":
        model = smollm2.load()[0].to(device=device, dtype=dtype)
    else:
        hidden, layers, heads, keys, between = SHAPES[size]
        config = LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=hidden,
            num_hidden_layers=layers,
            num_attention_heads=heads,
            num_key_value_heads=keys,
            intermediate_size=between,
            tie_word_embeddings=True,
        )
        torch.manual_seed(0)
        with torch.device(device):
            model = AutoModelForCausalLM.from_config(config, dtype=dtype).eval()
    model.config.max_position_embeddings = _POSITIONS  # what is said is forced, so longer texts do no harm
    model.generation_config.eos_token_id = None
    model.generation_config.pad_token_id = 0
    return model


def task_of(edits: list[Edit], form: str, context: int, tokens: int, tokenizer: Any) -> Task:
    """Return the task whose prompt, filled up with other files, comes nearest to a length, with the answer's start."""
    rendered = [render(edit, form, tokenizer, others(edit, edits, context)) for edit in edits]
    long = [(prompt, answer) for prompt, answer in rendered if len(answer) >= tokens]
    if not long:
        raise SystemExit(f"no answer in the format {form} has {tokens} tokens; lower --tokens, or raise --count")
    prompt, answer = min(long, key=lambda task: abs(len(task[0]) - context))
    return Task(torch.tensor([prompt]), answer[:tokens])


def ways_of(model: Any, tokenizer: Any, lookups: list[int]) -> dict[str, Callable[..., Any]]:
    """Return the ways to generate: plainly, by each setting of prompt lookup, and with a new lookahead."""
    ways: dict[str, Callable[..., Any]] = {"generate": partial(model.generate)}
    for length, ngram in itertools.product(lookups, (2, 5)):
        ways[f"prompt lookup ({length}, n={ngram})"] = partial(
            model.generate, prompt_lookup_num_tokens=length, max_matching_ngram_size=ngram
        )
    ways["lookahead"] = lambda *args, **kwargs: model.generate(*args, custom_generate=Lookahead(tokenizer), **kwargs)
    return ways


def measure(model: Any, task: Task, ways: dict[str, Callable[..., Any]], rounds: int) -> Row:
    """Time a task in all ways, prompt lookup by its best setting; return seconds and forwards of each."""
    ids = task.prompt.to(model.device)
    spent, forwards = dict[str, float](), dict[str, int]()
    ways["lookahead"](ids[:, -40:], max_new_tokens=4, do_sample=False)  # tries the model out, which answers for itself
    with Prefilled(model, ids) as prefilled, Forced(model, ids.shape[1], task.answer):

        def run(name: str) -> None:
            count = [0]
            hook = model.register_forward_hook(lambda *_: count.__setitem__(0, count[0] + 1))
            started = clock(model)
            out = ways[name](ids, max_new_tokens=len(task.answer), do_sample=False)
            spent[name], forwards[name] = clock(model) - started - prefilled.seconds, count[0]
            hook.remove()
            if out[0, ids.shape[1] :].tolist() != task.answer:
                raise SystemExit(f"{name}: the output is not the forced answer")

        lookups = [name for name in ways if name.startswith("prompt lookup")]
        for name in lookups:
            run(name)
        best = min(lookups, key=spent.__getitem__)
        runs = {name: partial(run, name) for name in ("generate", best, "lookahead")}
        seconds = in_turns(runs, rounds, spent)
    return {"tokens": len(task.answer), "seconds": seconds, "forwards": {name: forwards[name] for name in runs}}


def markdown(report: Report) -> str:
    """Return the table."""
    rows = []
    for row in report["rows"]:
        seconds = row["seconds"]
        plain, best, ours = seconds
        speeds = [f"{row['tokens'] / statistics.median(seconds[name]):.1f}" for name in (plain, best, ours)]
        gains = [ratio(seconds[plain], seconds[name]) for name in (best, ours)] + [ratio(seconds[best], seconds[ours])]
        over = [spread(*gain) for gain in gains]
        per_forward = f"{row['tokens'] / row['forwards'][ours]:.1f}"
        place = [row["size"], row["dtype"], str(row["context"]), row["format"]]
        rows.append([*place, *speeds, best.removeprefix("prompt lookup "), per_forward, *over])
    head = ["FORCED ANSWER, size", "dtype", "prompt, tokens", "format"]
    head += ["tokens per second: generate", "prompt lookup", "lookahead", "prompt lookup's best setting"]
    head += ["lookahead's tokens per forward", "prompt lookup over generate", "lookahead over generate"]
    rounds = f"{report['rounds']} rounds in turns; medians (least to greatest)" if report["rounds"] > 1 else "one round"
    said = f"{report['tokens']} tokens of each answer, {rounds}."
    return "\n\n".join([said, table([*head, "lookahead over prompt lookup"], rows)])


if __name__ == "__main__":
    main()

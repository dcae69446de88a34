"""The same on CUDA: ``python -m benchmarks.gpu --size 8B``.

FORCED ANSWER, as in `benchmarks.scaled`, with a larger model of random weights: with the ordinary cache, and with a
static one, for which `generate` compiles the model. Then what a forward with a draft costs, by CUDA events. Where no
CUDA device is found it says so and ends well.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from benchmarks import scaled
from benchmarks.reports import Report, Row, add_report_option, keep, made
from benchmarks.tables import table
from benchmarks.task_options import add_task_options, edits_of
from lookahead.hf import smollm2
from lookahead.hf.forward_times import SIZES

_NONE = "no CUDA device found"


def main() -> None:
    """Measure, print and keep."""
    parser = argparse.ArgumentParser(description="Forced answers and the cost of forwards on a GPU.")
    add_task_options(parser)
    parser.set_defaults(formats=("json", "diff"))
    parser.add_argument("--size", default="8B", choices=["135M", *scaled.SHAPES])
    parser.add_argument("--contexts", nargs="+", type=int, default=[1000, 8000, 32_000], help="tokens of the prompt")
    parser.add_argument("--caches", nargs="+", default=["dynamic", "static"], choices=["dynamic", "static"])
    parser.add_argument("--tokens", type=int, default=256, help="tokens that are written of the answer")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--lookups", nargs="+", type=int, default=[10, 32, 64], help="lengths tried for prompt lookup")
    add_report_option(parser)
    given = parser.parse_args()
    if not torch.cuda.is_available():
        report = made("gpu", [], note=_NONE)
    else:
        torch.set_grad_enabled(False)
        report = made("gpu", measure(given), device=torch.cuda.get_device_name(), tokens=given.tokens)
        report |= {"rounds": given.rounds}
    keep(report, given)
    print(f"{report['machine']}\n\n{markdown(report)}")


def measure(given: argparse.Namespace) -> list[Row]:
    """Return a row for each cache, context and format, and one for each size of a draft."""
    tokenizer, (edits, _) = smollm2.load_tokenizer(), edits_of(given)
    model = scaled.load(given.size, torch.bfloat16, tokenizer, "cuda")
    rows = []
    for context, form, cache in itertools.product(given.contexts, given.formats, given.caches):
        task = scaled.task_of(edits, form, context, given.tokens, tokenizer)
        ways = scaled.ways_of(model, tokenizer, given.lookups)
        place = {"size": given.size, "dtype": "bfloat16", "format": form, "context": task.prompt.shape[1]}
        place |= {"kind": "forced", "cache": cache}
        rows.append(place | scaled.measure(model, task, with_cache(ways, cache), given.rounds))
    for context in given.contexts:
        rows += [{"kind": "cost", "context": context} | row for row in costs(model, context)]
    return rows


def with_cache(ways: dict[str, Callable[..., Any]], cache: str) -> dict[str, Callable[..., Any]]:
    """Return ways to generate with a static cache, where one is asked for."""
    if cache == "dynamic":
        return ways
    return {name: partial(way, cache_implementation="static") for name, way in ways.items()}


def costs(model: Any, context: int) -> list[Row]:
    """Return the milliseconds of forwards with drafts of each size, medians, by CUDA events."""
    ids = torch.randint(model.config.vocab_size, (1, context), device=model.device)
    cache = model(ids, use_cache=True, logits_to_keep=1).cache
    rows = []
    for size in SIZES:
        times = []
        for _ in range(8):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            model(ids[:, : size + 1], cache=cache, use_cache=True).logits[0].argmax(-1)
            end.record()
            torch.cuda.synchronize()
            cache.crop(-size - 1)
            times.append(begin.elapsed_time(end))
        rows.append({"drafted": size, "milliseconds": round(statistics.median(times[2:]), 4)})
    return rows


def markdown(report: Report) -> str:
    """Return the tables, or that there was no device."""
    if not report["rows"]:
        return f"Not measured: {report['note']}."
    parts = [f"On {report['device']}."]
    forced = [row for row in report["rows"] if row["kind"] == "forced"]
    for cache in dict.fromkeys(row["cache"] for row in forced):
        parts.append(f"With a {cache} cache:")
        parts.append(scaled.markdown(report | {"rows": [row for row in forced if row["cache"] == cache]}))
    paid = [row for row in report["rows"] if row["kind"] == "cost"]
    cells = []
    for context in dict.fromkeys(row["context"] for row in paid):
        cells.append([f"{context}, ms", *(f"{row['milliseconds']:.2f}" for row in paid if row["context"] == context)])
    parts.append(table(["context", *(f"{size} tokens" for size in SIZES)], cells))
    return "\n\n".join(parts)


if __name__ == "__main__":
    main()

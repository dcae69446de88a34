"""``lookahead run``: one prompt, answered with lookahead, streamed and coloured by source."""

from __future__ import annotations

import json
import time
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from ..stats import MODEL, Stats
from . import prompts as texts
from .colours import by_source, counts
from .screen import Screen
from .usage import INTERRUPTED, usage

__all__ = ["run"]


def run(
    model: Annotated[str, typer.Option(help="A model's folder, or its name on the Hugging Face hub.")],
    prompt: Annotated[str | None, typer.Argument(help="The prompt; - reads the standard input.")] = None,
    file: Annotated[
        list[Path] | None, typer.Option(help="A file that stands before the prompt; may be given again.")
    ] = None,
    prediction: Annotated[Path | None, typer.Option(help="A file that the answer is expected to resemble.")] = None,
    max_new_tokens: Annotated[
        int | None, typer.Option(min=1, help="Most tokens of the answer; by itself 4096, or what there is room for.")
    ] = None,
    temperature: Annotated[float, typer.Option(min=0, help="Sample at this temperature; 0 is greedy search.")] = 0.0,
    top_p: Annotated[float | None, typer.Option(min=0, max=1, help="Sample from this part of the mass.")] = None,
    top_k: Annotated[int | None, typer.Option(min=0, help="Sample from so many tokens; 0 is all.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Makes samples repeat.")] = None,
    dtype: Annotated[str, typer.Option(help="auto, float32, bfloat16, float16 or float64.")] = "auto",
    device: Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1 ...; by itself an accelerator.")] = None,
    chat: Annotated[
        bool | None, typer.Option("--chat/--raw", help="Write the prompt by the chat template, or take it as it is.")
    ] = None,
    trust_remote_code: Annotated[bool, typer.Option("--trust-remote-code", help="Run the model's own code.")] = False,
    no_lookahead: Annotated[bool, typer.Option("--no-lookahead", help="Decode plainly, to compare.")] = False,
    stats: Annotated[bool, typer.Option("--stats", help="Tell on the standard error what happened.")] = False,
    trace: Annotated[Path | None, typer.Option(help="Record every step here, for lookahead trace.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print answer and figures as JSON at the end.")] = False,
) -> None:
    """Answer a prompt, shown as it is written and coloured by where each token came from.

    Exit codes: 0; 64 wrong usage; 130 interrupted, which keeps figures and trace of what there is.
    """
    with usage():
        sampling = _sampling(temperature, top_p, top_k)
        _refuse_trace(trace, no_lookahead)
        text = texts.joined(prompt, file or [])
        expected = None if prediction is None else texts.text_of(prediction)
        from ..hf.loading import answer_length, load  # torch is loaded only where a model is
        from ..hf.loop import Lookahead

        target, tokenizer = load(model, dtype, device, trust_remote_code)
        ids = texts.encode(tokenizer, text, chat, 1)
        length = answer_length(target, len(ids), max_new_tokens)
        ahead = None if no_lookahead else Lookahead(tokenizer, prediction=expected, trace=trace is not None)
        screen = Screen(tokenizer, None if as_json else Console(highlight=False), ahead)
        finished, figures = _answer(target, ids, ahead, screen, seed, {"max_new_tokens": length, **sampling})
        if ahead is not None and ahead.trace is not None and trace is not None:
            _save(ahead.trace, trace)
    if as_json:
        print(json.dumps(_plain(screen.text, figures, finished), indent=2, ensure_ascii=False))
    elif stats or not finished:
        _tell(figures, finished)
    raise typer.Exit(0 if finished else INTERRUPTED)


def _sampling(temperature: float, top_p: float | None, top_k: int | None) -> dict[str, Any]:
    """Return what `generate` takes for sampling."""
    chosen = {name: value for name, value in (("top_p", top_p), ("top_k", top_k)) if value is not None}
    if not temperature:
        if chosen:
            names = " and ".join(f"--{name.replace('_', '-')}" for name in chosen)
            raise ValueError(f"{names} is for sampling, and the temperature is 0; give --temperature above 0, too")
        return {"do_sample": False}
    return {"do_sample": True, "temperature": temperature, **chosen}


def _refuse_trace(trace: Path | None, no_lookahead: bool) -> None:
    """Refuse a trace that there cannot be, before the work and not after it."""
    if trace is None:
        return
    if no_lookahead:
        raise ValueError("--trace records what lookahead does; leave out --no-lookahead")
    if trace.is_dir() or not trace.expanduser().parent.is_dir():
        raise ValueError(f"{trace} cannot be written; give a file in a folder that is there")


def _save(trace: Any, path: Path) -> None:
    """Write what was recorded."""
    try:
        trace.save(path)
    except OSError as error:
        raise ValueError(f"{path} cannot be written: {error.strerror or error}; give another file") from error


def _answer(
    model: Any, ids: list[int], ahead: Any, screen: Screen, seed: int | None, settings: dict[str, Any]
) -> tuple[bool, Stats]:
    """Generate until the end or an interruption; return which of them it was, and what happened."""
    import torch

    if seed is not None:
        torch.manual_seed(seed)
    prompt = torch.tensor([ids], device=model.device)
    inputs = {"input_ids": prompt, "attention_mask": torch.ones_like(prompt)}
    generate = model.generate if ahead is None else partial(ahead.generate, model)
    started, finished = time.perf_counter(), True
    try:
        generate(**inputs, **settings, streamer=screen)
    except KeyboardInterrupt:
        finished = False
        screen.end()
    if ahead is not None:
        stats: Stats = ahead.stats
        return finished, stats
    count, seconds = len(screen.tokens), time.perf_counter() - started
    return finished, Stats(count, count, token_sources=[MODEL] * count, verify_seconds=seconds, total_seconds=seconds)


def _plain(text: str, stats: Stats, finished: bool) -> dict[str, Any]:
    """Return answer and figures for machines."""
    figures = {name: value for name, value in vars(stats).items() if name != "token_sources"}
    figures["tokens_per_forward"] = stats.tokens_per_forward
    return {"text": text, "finished": finished, "stats": figures}


def _tell(stats: Stats, finished: bool) -> None:
    """Print the figures on the standard error."""
    console = Console(stderr=True, highlight=False)
    if not finished:
        console.print("interrupted")
    console.print(by_source(counts(stats)))
    speed = f"{stats.tokens / stats.total_seconds:.1f} tokens per second" if stats.total_seconds else "nothing yet"
    console.print(Text(f"{stats.summary()}; {speed}"), soft_wrap=True)

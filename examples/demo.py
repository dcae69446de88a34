"""The main job on a real model: rewrite a file under an instruction, first without lookahead, then with it.

Run ``make demo``, or ``python -m examples.demo --file FILE --instruction TEXT --model NAME_OR_FOLDER``.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text
from transformers.generation.streamers import BaseStreamer

from examples import rewriting
from lookahead import Lookahead, Stats

COLOURS = {"model": "bold white on red", "prompt": "green", "output": "cyan", "recycled": "magenta"}


class Screen(BaseStreamer):
    """Prints tokens as they come, coloured by where each came from; plain where no `Stats` tell."""

    def __init__(self, tokenizer: Any, console: Console, lookahead: Lookahead | None = None) -> None:
        self.tokenizer, self.console, self.lookahead = tokenizer, console, lookahead
        self.ids: list[int] = []
        self.shown = 0
        self.prompt_seen = False

    def put(self, value: torch.Tensor) -> None:
        """Show one token; the first call brings the prompt, which is not shown."""
        if not self.prompt_seen:
            self.prompt_seen = True
            return
        self.ids.append(int(value))
        text = self.tokenizer.decode(self.ids, skip_special_tokens=True)
        if text.endswith("\N{REPLACEMENT CHARACTER}"):
            return  # a character that takes several tokens is not complete yet
        source = self.lookahead.stats.token_sources[-1] if self.lookahead else None
        self.console.print(Text(text[self.shown :], style=COLOURS.get(source or "", "")), end="", soft_wrap=True)
        if text.endswith("\n"):
            self.ids, text = [], ""
        self.shown = len(text)

    def end(self) -> None:
        """Finish the line."""
        self.console.print()


def timed(console: Console, title: str, run: Any) -> tuple[Any, float]:
    """Run one generation under a heading; return its ids and its seconds."""
    console.rule(title)
    started = time.perf_counter()
    ids = run()
    return ids, time.perf_counter() - started


def report(console: Console, tokens: int, vanilla: float, ours: float, stats: Stats) -> None:
    """State both speeds and where the tokens came from."""
    table = Table("", "seconds", "tokens per second", "tokens per forward")
    table.add_row("generate", f"{vanilla:.1f}", f"{tokens / vanilla:.1f}", "1.00")
    table.add_row("generate with lookahead", f"{ours:.1f}", f"{tokens / ours:.1f}", f"{stats.tokens_per_forward:.2f}")
    console.print(table)
    console.print(f"{vanilla / ours:.1f} times as fast. {stats.summary()}", soft_wrap=True)
    for source, count in sorted(stats.drafted_by_source.items()):
        right = stats.accepted_by_source[source]
        console.print(Text(f"drafted from {source}: {right} of {count} tokens accepted", COLOURS.get(source, "")))


def main() -> None:
    """Show it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--model", default="smollm2", help="a model's name or folder; smollm2 comes with the set-up")
    parser.add_argument("--file", type=Path, default=rewriting.FILE, help="the file to rewrite")
    parser.add_argument("--instruction", default=None, help="what to change in it")
    parser.add_argument("--max-new-tokens", type=int, default=2048)
    given = parser.parse_args()
    if given.instruction is None:
        if given.file != rewriting.FILE:
            parser.error("--file needs --instruction: say what to change")
        given.instruction = rewriting.INSTRUCTION
    console = Console(highlight=False)
    console.print(Panel(given.instruction.strip(), title=f"rewriting {given.file.name}", title_align="left"))
    model, tokenizer = rewriting.load(given.model)
    inputs = rewriting.prompt(tokenizer, given.file, given.instruction).to(model.device)
    settings = {"max_new_tokens": given.max_new_tokens, "do_sample": False}
    lookahead = Lookahead(tokenizer)
    console.print("Warming up: the first call compiles the index (once per installation) and checks the model.")
    lookahead.generate(model, **inputs, **{**settings, "max_new_tokens": 4})

    vanilla, seconds = timed(
        console,
        "generate",
        lambda: model.generate(**inputs, **settings, streamer=Screen(tokenizer, console)),
    )
    ours, our_seconds = timed(
        console,
        "generate with lookahead: " + " ".join(f"[{style}]{source}[/]" for source, style in COLOURS.items()),
        lambda: lookahead.generate(model, **inputs, **settings, streamer=Screen(tokenizer, console, lookahead)),
    )
    console.rule("result")
    same = torch.equal(vanilla, ours)
    console.print(
        "The two outputs are identical." if same else "The two outputs DIFFER.", style="" if same else "bold red"
    )
    report(console, lookahead.stats.tokens, seconds, our_seconds, lookahead.stats)
    raise SystemExit(0 if same else 1)


if __name__ == "__main__":
    main()

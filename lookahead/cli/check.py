"""``lookahead check``: whether the outputs are the same on your model and prompts, and where not, why."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from . import prompts as texts
from .usage import usage

if TYPE_CHECKING:
    from ..hf.finding import Finding, Reading, Token

__all__ = ["check"]

_EAGER = "linear:0.01"  # drafts more than pays on a small machine, and the same in each run: more is checked
_CODES = {"equal": 0, "near-tie": 1, "bug": 2}
_STYLES = {"equal": "green", "near-tie": "yellow", "bug": "bold red"}


def check(
    model: Annotated[str, typer.Option(help="A model's folder, or its name on the Hugging Face hub.")],
    prompt: Annotated[
        list[str] | None, typer.Option(help="A prompt, or @FILE for a file's text; may be given again.")
    ] = None,
    prompts: Annotated[
        Path | None, typer.Option(help='JSON Lines: "text", {"prompt": "text"} or {"messages": [...]} each.')
    ] = None,
    max_new_tokens: Annotated[int, typer.Option(min=1, help="Most tokens of an output.")] = 256,
    temperature: Annotated[float, typer.Option(min=0, help="Sample at this temperature; 0 is greedy search.")] = 0.0,
    seed: Annotated[int, typer.Option(min=0, help="The seed of both outputs.")] = 0,
    dtype: Annotated[str, typer.Option(help="auto, float32, bfloat16, float16 or float64.")] = "auto",
    device: Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1 ...; by itself an accelerator.")] = None,
    cost: Annotated[
        str, typer.Option(help="What drafts are taken to cost; 'measured' drafts as in use, where runs differ.")
    ] = _EAGER,
    chat: Annotated[
        bool | None,
        typer.Option("--chat/--raw", help="Write prompts by the chat template, or take them as they are."),
    ] = None,
    trust_remote_code: Annotated[bool, typer.Option("--trust-remote-code", help="Run the model's own code.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Compare generate with and without lookahead, and explain every difference.

    Exit codes: 0 all outputs are equal; 1 some differ, all by near-ties of the arithmetic; 2 one differs by more, which
    is a bug; 64 wrong usage.
    """
    with usage():
        given = texts.read(prompt or [], prompts)
        from ..hf.check import check as compare  # torch is loaded only where a model is
        from ..hf.loading import load

        target, tokenizer = load(model, dtype, device, trust_remote_code)
        rows = [texts.encode(tokenizer, one, chat, number) for number, one in enumerate(given, 1)]
        sampling = {"do_sample": True, "temperature": temperature} if temperature else {"do_sample": False}
        console = Console(highlight=False, soft_wrap=True)
        findings = compare(
            target,
            tokenizer,
            rows,
            seed=seed,
            options={"cost": None if cost == "measured" else cost},
            on_finding=None if as_json else lambda found: _show(console, found, len(rows)),
            max_new_tokens=max_new_tokens,
            **sampling,
        )
    if as_json:
        print(json.dumps([_plain(asdict(found)) for found in findings], indent=2, ensure_ascii=False))
    else:
        _sum_up(console, findings)
    raise typer.Exit(max(_CODES[found.verdict] for found in findings))


def _plain(value: Any) -> Any:
    """Return a value with None for numbers that JSON has not."""
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _show(console: Console, found: Finding, count: int) -> None:
    """Print one finding."""
    verdict = f"[{_STYLES[found.verdict]}]{found.verdict}[/]"
    done = f"{found.tokens} tokens, {found.forwards} forwards, {found.accepted} draft tokens accepted"
    console.print(f"prompt {found.prompt + 1} of {count}: {verdict} ({done})")
    if found.position is None:
        return
    console.print(f"  token {found.position + 1} differs, behind {_quoted(found.context)}")
    console.print(f"  generate: {_named(found.vanilla)}   lookahead: {_named(found.lookahead)}")
    if found.readings:
        console.print(_table(found.readings))
    if found.noise is not None and found.deviation is not None:
        apart = "a filter takes one of them away" if found.margin is None else f"{found.margin:.3g}"
        console.print(
            f"  margin between the two: {apart}; noise of clean forwards: {found.noise:.3g}; lookahead's distance from "
            f"the nearest: {found.deviation:.3g}"
        )
    console.print(f"  {found.reason}")


def _table(readings: tuple[Reading, ...]) -> Table:
    """Return the readings as a table."""
    table = Table("forward over", "generate's", "lookahead's", "chooses", "margin")
    for one in readings:
        logits = f"{one.vanilla:.6g}", f"{one.lookahead:.6g}"
        table.add_row(one.forward, *logits, _named(one.chosen), f"{one.margin:.3g}")
    return table


def _sum_up(console: Console, findings: list[Finding]) -> None:
    """Print how often which verdict came, and what it means."""
    counts = {verdict: sum(found.verdict == verdict for found in findings) for verdict in _CODES}
    console.print(", ".join(f"[{_STYLES[verdict]}]{count} {verdict}[/]" for verdict, count in counts.items() if count))
    if counts["bug"]:
        console.print("A bug: please report it with the model's name, the prompt and the output of --json.")
    elif counts["near-tie"]:
        console.print("Near-ties are the price of low precision; float32 has hardly any, so bugs stand out there.")
    elif not any(found.accepted for found in findings):
        console.print("No draft was accepted, so little was checked: take prompts whose answers repeat parts of them.")


def _named(token: Token | None) -> str:
    """Return a token as it is shown."""
    return "(the end)" if token is None else f"{_quoted(token.text)} ({token.id})"


def _quoted(text: str) -> str:
    """Return text on one line that rich prints as it is."""
    return escape(json.dumps(text, ensure_ascii=False))

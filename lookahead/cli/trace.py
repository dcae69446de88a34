"""``lookahead trace``: what happened step by step, on the terminal or as a page."""

from __future__ import annotations

import json
import sys
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from ..trace.page import figures
from ..trace.record import Trace
from ..trace.step import Step
from .colours import by_source, legend, printable, style_of
from .usage import usage

__all__ = ["trace"]

_BARS = " ▁▂▃▄▅▆▇█"


def trace(
    file: Annotated[Path, typer.Argument(help="What Trace.save, or lookahead run --trace, has written.")],
    html: Annotated[bool, typer.Option("--html", help="Write one page that needs nothing beside it.")] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where the page goes, - for the standard output.")
    ] = None,
    row: Annotated[int, typer.Option(min=1, help="The row of a batch that is shown.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    """Show a recorded generation: its text, coloured by where each token came from, and its figures.

    Exit codes: 0; 64 wrong usage, such as a file that is no trace.
    """
    with usage():
        if html and as_json:
            raise ValueError("--html and --json are both given; one is allowed")
        if output is not None and not html:
            raise ValueError(f"-o {output} is for a page; give --html, too")
        recorded = Trace.load(file)
        if html:
            _write(recorded.html(), file.with_suffix(".html") if output is None else output)
        elif as_json:
            print(json.dumps(_figures(recorded), indent=2))
        else:
            if row > max(1, len(recorded.prompts)):
                raise ValueError(f"--row {row} is not there; {file} has rows 1 to {len(recorded.prompts)}")
            _show(Console(highlight=False), recorded, row - 1)


def _write(page: str, path: Path) -> None:
    """Write a page, and say where it is."""
    if str(path) == "-":
        print(page, end="")
        return
    try:
        path.expanduser().write_text(page, encoding="utf-8")
    except OSError as error:
        raise ValueError(f"{path} cannot be written: {error.strerror or error}; give another file with -o") from error
    print(f"{path} is written", file=sys.stderr)


def _figures(recorded: Trace) -> dict[str, object]:
    """Return the figures of a trace for machines."""
    draft, verify, rest = recorded.seconds
    sources = {
        source: {"drafted": drafted, "output": accepted} for source, (drafted, accepted) in recorded.by_source().items()
    }
    return {
        "about": recorded.about,
        "note": recorded.note,
        "rows": len(recorded.prompts),
        "tokens": recorded.tokens,
        "forwards": recorded.forwards,
        "draft_seconds": draft,
        "verify_seconds": verify,
        "rest_seconds": rest,
        "sources": sources,
    }


def _show(console: Console, recorded: Trace, row: int) -> None:
    """Print a row's text and everybody's figures."""
    steps = recorded.row(row)
    console.print(_text(recorded, steps), soft_wrap=True)
    console.rule(style="dim")
    console.print(Text("tokens by source: ") + legend(recorded.sources))
    console.print(f"tokens per forward, 0 to {max((len(one.tokens) for one in steps), default=0)}:")
    console.print(Text(_spark([len(step.tokens) for step in steps], console.width), "blue"))
    console.print("time per forward, without the first:")
    console.print(Text(_spark([step.seconds for step in steps[1:]], console.width), "blue"))
    console.print(by_source(recorded.by_source()))
    console.print(Text("; ".join(f"{name}: {value}" for name, value in figures(recorded))), soft_wrap=True)
    if recorded.note:
        console.print(Text(f"decoded plainly: {printable(recorded.note)}"), soft_wrap=True)


def _text(recorded: Trace, steps: list[Step]) -> Text:
    """Return what was emitted, coloured by source."""
    emitted = [one for step in steps for one in step.emitted()]
    texts = recorded.texts([one.token for one in emitted])
    pairs = zip(texts, (style_of(one.source) for one in emitted), strict=True)
    runs = groupby(pairs, key=itemgetter(1))
    return Text.assemble(*((printable("".join(text for text, _ in run)), style) for style, run in runs))


def _spark(values: list[int] | list[float], width: int) -> str:
    """Return bars for values, the average of several where they are more than a line has places."""
    size = max(1, -(-len(values) // width))
    groups = [values[at : at + size] for at in range(0, len(values), size)]
    means = [sum(group) / len(group) for group in groups]
    most = max(means, default=0)
    return "".join(_BARS[round(mean / most * (len(_BARS) - 1)) if most else 0] for mean in means)

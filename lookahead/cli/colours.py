"""How a terminal shows where tokens came from."""

from __future__ import annotations

import re

from rich.table import Table
from rich.text import Text

from ..stats import MODEL, Stats

__all__ = ["by_source", "counts", "legend", "printable", "style_of"]

_STYLES = {
    MODEL: "bold red",
    "prompt": "blue",
    "output": "green",
    "prediction": "yellow",
    "recycled": "magenta",
    "fallback": "bright_black",
}
_OTHER = "cyan"  # views, by whatever name
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def style_of(source: str) -> str:
    """Return the style of a source's tokens."""
    return _STYLES.get(source, _OTHER)


def legend(sources: list[str]) -> Text:
    """Return the names of sources, each in its style."""
    return Text("  ").join(Text(source, style_of(source)) for source in sources)


def printable(text: str) -> str:
    """Return text with pictures of control characters, which could otherwise give the terminal orders."""
    return _CONTROLS.sub(lambda found: chr(0x2400 + ord(found[0])) if ord(found[0]) < 32 else "\ufffd", text)


def counts(stats: Stats) -> dict[str, tuple[int, int]]:
    """Return for each source its drafted and its accepted tokens, as `by_source` takes them."""
    found = {MODEL: (0, stats.token_sources.count(MODEL))}
    found |= {name: (drafted, stats.accepted_by_source[name]) for name, drafted in stats.drafted_by_source.items()}
    return found


def by_source(figures: dict[str, tuple[int, int]]) -> Table:
    """Return a table of what was drafted from each source.

    Parameters
    ----------
    figures : dict
        For each source its drafted and its accepted tokens; of the model's own, which are not drafted, all.
    """
    table, total = Table("source"), sum(accepted for _, accepted in figures.values())
    for heading in ("of the output", "drafted", "accepted"):
        table.add_column(heading, justify="right")
    for source, (drafted, accepted) in figures.items():
        share = f"{accepted} ({accepted / max(1, total):.0%})"
        copied = ("-", "-") if source == MODEL else (str(drafted), f"{accepted} ({accepted / max(1, drafted):.0%})")
        table.add_row(Text(printable(source), style_of(source)), share, *copied)
    return table

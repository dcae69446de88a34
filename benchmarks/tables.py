"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterable

from lookahead.bench.replay import Reliability

__all__ = ["show", "show_reliability"]


def show(head: list[str], rows: Iterable[list[str]]) -> None:
    """Print a table in Markdown."""
    lines = [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows)]
    print("\n".join(["", *lines]), flush=True)


def show_reliability(found: Reliability) -> None:
    """Print predicted against observed acceptance."""
    print("\n| path probability | drafted tokens | expected | accepted |\n|---|---|---|---|")
    for row, count in enumerate(found.counts):
        if count:
            print(
                f"| {row / 10:.1f} to {row / 10 + 0.1:.1f} | {count:.0f} | {found.expected[row] / count:.3f} | "
                f"{found.hits[row] / count:.3f} |"
            )
    print(f"\nexpected calibration error {found.error:.3f}")

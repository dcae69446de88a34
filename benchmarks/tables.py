"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lookahead.bench.replay import Reliability

__all__ = ["show_reliability", "spread", "table"]


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table."""
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows))


def spread(middle: float, low: float, high: float, digits: int = 2) -> str:
    """Return a figure with its bounds, alone where these say nothing more, as after a single round."""
    shown = [f"{value:.{digits}f}" for value in (middle, low, high)]
    return shown[0] if len(set(shown)) == 1 else f"{shown[0]} ({shown[1]} to {shown[2]})"


def show_reliability(found: Reliability) -> None:
    """Print predicted against observed acceptance."""
    rows = [
        [
            f"{row / 10:.1f} to {row / 10 + 0.1:.1f}",
            f"{count:.0f}",
            f"{found.expected[row] / count:.3f}",
            f"{found.hits[row] / count:.3f}",
        ]
        for row, count in enumerate(found.counts)
        if count
    ]
    print("\n" + table(["path probability", "drafted tokens", "expected", "accepted"], rows))
    print(f"\nexpected calibration error {found.error:.3f}")

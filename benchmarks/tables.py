"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lookahead.bench.replay import Reliability

__all__ = ["show_reliability", "table"]


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table."""
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows))


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

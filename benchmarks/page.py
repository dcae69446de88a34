"""RESULTS.md and its plots, written from the files of results alone."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.sections import SECTIONS, Section

__all__ = ["write"]

_HEAD = """\
# Results

Written by `python -m benchmarks` (`make bench`) from the files in [data/results](data/results), one for each section.
`python -m benchmarks NAME` runs one section anew, and beside each stands the very command that made it. What is
measured by the clock depends on the machine, which is named, and on what else ran there: its load average counts every
process that wants a core, the benchmark's own threads too. What is counted (tokens per forward) depends only on the
modules of the standard library that the tasks are made of. `lookahead bench --repo .` counts on a repository of yours.
More benchmarks and what was learnt: [README.md](README.md)."""


def write(folder: Path) -> None:
    """Write the page of the results in a folder; what was never run is said to be missing."""
    parts = [_HEAD]
    for name, section in SECTIONS.items():
        kept = folder / "data" / "results" / f"{name}.json"
        parts.append(f"## {section.title}")
        if kept.exists():
            parts += _section(folder, section, json.loads(kept.read_text(encoding="utf-8")))
        else:
            parts.append(f"Not measured yet: `python -m benchmarks {name}`.")
    (folder / "RESULTS.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def _section(folder: Path, section: Section, report: dict[str, object]) -> list[str]:
    """Return what stands under a section's title, and draw its plots."""
    parts = [section.words, f"`{report['command']}`", f"On {report['machine']}."]
    if report["rows"]:
        for draw in section.draw:
            path = folder / "plots" / f"{section.name}-{draw.__name__.replace('_', '-')}.svg"
            draw(report, path)
            parts.append(f"![{section.title}](plots/{path.name})")
    return [*parts, section.markdown(report)]

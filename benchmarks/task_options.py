"""The options by which the replays choose their tasks."""

from __future__ import annotations

import argparse
import platform
import random
from pathlib import Path

from benchmarks.refactorings import refactorings
from lookahead.bench.tasks import FORMATS, Edit, read_edits

__all__ = ["add_task_options", "edits_of"]


def add_task_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say which tasks to take."""
    parser.add_argument("--tasks", type=Path, help="JSON lines with path, instruction, before, after")
    parser.add_argument("--count", type=int, default=4, help="without --tasks: so many refactorings of each kind")
    parser.add_argument("--seed", type=int, default=0, help="without --tasks: what is refactored")
    parser.add_argument("--sample", type=int, help="so many of the tasks, drawn at random with a fixed seed")
    parser.add_argument("--formats", nargs="+", default=FORMATS, choices=FORMATS, metavar="FORMAT")


def edits_of(given: argparse.Namespace) -> tuple[list[Edit], str]:
    """Return the tasks that the options name, and where they come from in words."""
    if given.tasks:
        try:
            edits, source = list(read_edits(given.tasks)), given.tasks.name
        except ValueError as error:
            raise SystemExit(str(error)) from None
    else:
        edits = list(refactorings(given.count, given.seed))
        source = f"refactorings of the standard library of Python {platform.python_version()}, seed {given.seed}"
    if given.sample and given.sample < len(edits):
        return random.Random(0).sample(edits, given.sample), f"{given.sample} of {source}"
    return edits, source

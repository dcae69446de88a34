"""Tasks from any git repository's history: ``python -m benchmarks.mine_edits REPO --out FILE.jsonl``.

A task is one commit's change of one file (see `lookahead.bench.mining`). `benchmarks.replay` and `benchmarks.scaled`
read the file. With ``--turns`` a line is a trace instead, which `benchmarks.turns` reads.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from rich.console import Console
from rich.progress import track

from lookahead.bench.history import History
from lookahead.bench.mining import Limits, Record, mine_edits, mine_traces


def main() -> None:
    """Read a history and write its tasks or traces."""
    parser = argparse.ArgumentParser(description="Turns a git repository's history into tasks, one JSON object a line.")
    parser.add_argument("repo", type=Path, help="folder of a repository with its whole history")
    parser.add_argument("--out", type=Path, help="file to write; standard output when left out")
    parser.add_argument("--commits", type=int, help="read at most so many commits, the newest; all when left out")
    parser.add_argument("--count", type=int, help="write at most so many tasks (the newest) or traces")
    parser.add_argument("--suffixes", nargs="+", default=(), help="only files that end so: .py .go ...")
    parser.add_argument(
        "--sizes", nargs=2, type=int, default=(1200, 16_000), help="least and most characters of a file"
    )
    parser.add_argument("--turns", action="store_true", help="traces of consecutive changes of one file, not tasks")
    parser.add_argument("--lengths", nargs=2, type=int, default=(3, 6), help="least and most turns of a trace")
    parser.add_argument("--corpus", type=int, default=300_000, help="most bytes of other files beside a trace")
    given = parser.parse_args()
    try:
        records = mine(given)
    except ValueError as error:
        raise SystemExit(str(error)) from None
    lines = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    if given.out is None:
        print(lines, end="")
    else:
        given.out.write_text(lines, encoding="utf-8")
        print(f"{len(records)} {'traces' if given.turns else 'tasks'} in {given.out}")


def mine(given: argparse.Namespace) -> list[Record]:
    """Return what the command line asks for, watched by a progress bar."""
    for name in ("commits", "count"):
        if getattr(given, name) is not None and getattr(given, name) < 1:
            raise ValueError(f"--{name} {getattr(given, name)} is too few; allowed is 1 and above")
    if given.out is not None and not given.out.parent.is_dir():
        raise ValueError(
            f"{given.out} cannot be written: there is no folder {given.out.parent}; make it, or change --out"
        )
    limits = Limits(tuple(given.sizes), tuple(given.suffixes))
    console = Console(stderr=True)
    with History(given.repo) as history:
        total = min(history.count(), given.commits or 2**31)
        commits = track(history.commits(given.commits), "commits", total, console=console, transient=True)
        if given.turns:
            found = mine_traces(history, commits, limits, tuple(given.lengths), given.corpus)
        else:
            found = mine_edits(history, commits, limits)
        records = [record for record, _ in zip(found, range(given.count or 2**31), strict=False)]
    if not records:
        kind = "trace" if given.turns else "task"
        raise ValueError(
            f"none of the {total} commits read in {given.repo} makes a {kind}: a file of {limits.sizes[0]} to "
            f"{limits.sizes[1]} characters, written by people and changed in part; allow more by --sizes, --commits"
            + (", --lengths" if given.turns else "")
        )
    return records


if __name__ == "__main__":
    main()

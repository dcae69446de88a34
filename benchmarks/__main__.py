"""The page of results: ``python -m benchmarks`` runs every section and writes RESULTS.md.

``python -m benchmarks replay scale`` runs these alone, ``--quick`` everything small, ``--render`` nothing: the page and
its plots are then written from the results that are there. A section's results stay until it is run again.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.page import write
from benchmarks.sections import SECTIONS

_HERE = Path(__file__).parent


def main() -> None:
    """Run what is asked for and write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Runs benchmarks and writes RESULTS.md.")
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=f"all when left out: {', '.join(SECTIONS)}")
    parser.add_argument("--quick", action="store_true", help="small runs, which show that all works")
    parser.add_argument("--render", action="store_true", help="run nothing, write the page anew")
    parser.add_argument("--folder", type=Path, default=_HERE, help="where page, plots and results are")
    given = parser.parse_args()
    unknown = [name for name in given.sections if name not in SECTIONS]
    if unknown:
        parser.error(f"there is no section {unknown[0]}; there are {', '.join(SECTIONS)}")
    failed = []
    for name in () if given.render else given.sections or SECTIONS:
        print(f"\n== {name}", flush=True)
        if not run(SECTIONS[name].command(given.quick), given.folder / "data" / "results" / f"{name}.json"):
            failed.append(name)
        write(given.folder)
    write(given.folder)
    print(f"\n{given.folder / 'RESULTS.md'} is written")
    if failed:
        raise SystemExit(f"these failed, and the page has what was there before: {', '.join(failed)}")


def run(command: list[str], kept: Path) -> bool:
    """Run a benchmark that keeps its results in a file; return whether it went well.

    What forwards cost is measured anew each time, not taken from what an earlier and perhaps busier hour left on the
    disk.
    """
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "LOOKAHEAD_CACHE": cache}
        done = subprocess.run([sys.executable, *command, "--json", str(kept)], env=environment, check=False)
    return done.returncode == 0


if __name__ == "__main__":
    main()

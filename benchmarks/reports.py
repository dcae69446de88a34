"""What a benchmark found, as a JSON file with the command and the machine: of these the page of results is made."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
from pathlib import Path
from typing import Any, TypeAlias

from benchmarks.timing import machine

__all__ = ["Report", "Row", "add_report_option", "keep", "made"]

Row: TypeAlias = dict[str, Any]
Report: TypeAlias = dict[str, Any]  # command, machine, rows, and what else the benchmark says of itself


def add_report_option(parser: argparse.ArgumentParser) -> None:
    """Add the option that keeps what was found."""
    parser.add_argument("--json", type=Path, help="write all that was found to this file")


def made(name: str, rows: list[Row], **facts: Any) -> Report:
    """Return the report of the benchmark of that name, as it was called."""
    arguments = sys.argv[1:]
    if "--json" in arguments:
        at = arguments.index("--json")
        arguments = arguments[:at] + arguments[at + 2 :]
    command = shlex.join(["python", "-m", f"benchmarks.{name}", *arguments])
    load = f"load average of 15 minutes {os.getloadavg()[2]:.1f}"  # tells how far times are to be trusted
    return {"command": command, "machine": f"{machine()}, {load}", **facts, "rows": rows}


def keep(report: Report, given: argparse.Namespace) -> None:
    """Write a report where the command line says so, a row on each line."""
    if given.json is None:
        return
    head = json.dumps({key: value for key, value in report.items() if key != "rows"}, indent=1)
    rows = ",\n  ".join(json.dumps(row) for row in report["rows"])
    given.json.parent.mkdir(parents=True, exist_ok=True)
    given.json.write_text(f'{head[:-2]},\n "rows": [\n  {rows}\n ]\n}}\n', encoding="utf-8")

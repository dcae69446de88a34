"""What a forward costs with k tokens behind the last one: ``python -m benchmarks.costs``.

Times SmolLM2 as the loop runs it, the sizes in turns; prints medians beside the curve that the policy would use.
"""

from __future__ import annotations

import argparse

from benchmarks.reports import Report, Row, add_report_option, keep, made
from benchmarks.tables import table
from lookahead.draft.cost import MeasuredCost
from lookahead.hf import smollm2
from lookahead.hf.forward_times import SIZES, time_forwards


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="What forwards with drafts of different sizes cost.")
    parser.add_argument("--contexts", type=int, nargs="+", default=[256, 2000])
    parser.add_argument("--rounds", type=int, default=7)
    add_report_option(parser)
    given = parser.parse_args()
    model, rows = smollm2.load()[0], list[Row]()
    for context in given.contexts:
        cost = MeasuredCost()
        time_forwards(model, cost, context, given.rounds)
        curve = cost.curve(max(SIZES))
        for size in SIZES:
            place = {"context": context, "drafted": size}
            rows.append(
                place | {"seconds": float(curve[size]) * cost.plain_seconds, "forwards": round(float(curve[size]), 4)}
            )
    report = made("costs", rows, rounds=given.rounds)
    keep(report, given)
    print(f"{report['machine']}\n\n{markdown(report)}")


def markdown(report: Report) -> str:
    """Return a table of both, a row for each context."""
    cells = []
    for context in dict.fromkeys(row["context"] for row in report["rows"]):
        rows = [row for row in report["rows"] if row["context"] == context]
        cells.append([f"{context}, ms", *(f"{1e3 * row['seconds']:.0f}" for row in rows)])
        cells.append([f"{context}, forwards", *(f"{row['forwards']:.2f}" for row in rows)])
    return table(["context", *(f"{size} tokens" for size in SIZES)], cells)


if __name__ == "__main__":
    main()

"""The plots of the page of results, as SVG that is the same each time."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

from benchmarks.generate import times_of
from benchmarks.replay import detailed, drafters_of, summed
from benchmarks.reports import Report, Row
from benchmarks.timing import bootstrapped, ratio

__all__ = ["Draw"]

Draw: TypeAlias = Callable[[Report, Path], None]  # draws a report into a file

_COLOURS = {
    "lookahead": "#d1495b",
    "prompt lookup": "#30638e",
    "vLLM": "#8a8d91",
    "Arctic": "#edae49",
    "copy limit": "#9fc5a5",
    "generate": "#444444",
}
_STYLE = {
    "svg.hashsalt": "lookahead",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e6e6e6",
    "axes.axisbelow": True,
    "legend.frameon": False,
    "legend.fontsize": 8,
}


@contextmanager
def figure(path: Path, title: str, across: str, up: str, size: tuple[float, float] = (7, 3.6)) -> Iterator[Any]:
    """Give axes to draw on, and write what was drawn."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    with pyplot.rc_context(_STYLE):
        drawn, axes = pyplot.subplots(figsize=size, layout="constrained")
        axes.set(title=title, xlabel=across, ylabel=up)
        yield axes
        path.parent.mkdir(parents=True, exist_ok=True)
        drawn.savefig(path, metadata={"Date": None})
        pyplot.close(drawn)
    text = path.read_text(encoding="utf-8")
    path.write_text("\n".join(line.rstrip() for line in text.splitlines()) + "\n", encoding="utf-8")


def colour(name: str) -> str:
    """Return the colour of a drafter or a way to generate."""
    return next((value for key, value in _COLOURS.items() if name.startswith(key)), "#444444")


# ---- Replay ----


def _best(report: Report, budget: int, cost: str, **wanted: object) -> dict[str, Row]:
    """Return the sums of each peer's best setting for a cost, of the lookahead that knows it, and of the copy limit."""
    found: dict[str, Row] = {}
    overall: dict[str, float] = {}
    for name in drafters_of(report, budget):
        kind = name.split(" (")[0]
        if kind == "lookahead" and name != f"lookahead ({cost})":
            continue
        rate = summed(report, budget=budget, drafter=name)[cost]
        if rate > overall.get(kind, 0.0):
            overall[kind], found[kind] = rate, summed(report, budget=budget, drafter=name, **wanted)
    return found


def replay_by_budget(report: Report, path: Path) -> None:
    """Draw tokens per forward-time against the budget, for the dearest cost."""
    cost = report["costs"][-1]
    budgets = sorted({row["budget"] for row in report["rows"]})
    sums = [_best(report, budget, cost) for budget in budgets]
    title = f"Replay, all formats: tokens per forward-time, {cost}"
    with figure(path, title, "budget: most tokens drafted in a forward", "tokens per forward-time") as axes:
        for kind in sums[0]:
            axes.plot(budgets, [row[kind][cost] for row in sums], "o-", label=kind, color=colour(kind))
        axes.set_xscale("log", base=2)
        axes.set_xticks(budgets, list(map(str, budgets)))
        axes.set_ylim(bottom=0)
        axes.legend()


def replay_by_format(report: Report, path: Path) -> None:
    """Draw tokens per forward of each format."""
    cost, budget = report["costs"][0], detailed(report)
    formats = list(dict.fromkeys(row["format"] for row in report["rows"]))
    sums = [_best(report, budget, cost, format=form) for form in formats]
    title = f"Replay: tokens per forward, at most {budget} drafted; peers at their best setting"
    with figure(path, title, "", "tokens per forward") as axes:
        _bars(axes, formats, {kind: [row[kind]["tokens per forward"] for row in sums] for kind in sums[0]})


def _bars(axes: Any, places: list[str], heights: dict[str, list[float]], errors: Any = None) -> None:
    """Draw groups of bars."""
    width = 0.8 / len(heights)
    for number, (name, values) in enumerate(heights.items()):
        spots = [at + (number - (len(heights) - 1) / 2) * width for at in range(len(places))]
        bars = None if errors is None else errors[name]
        axes.bar(spots, values, width, label=name, color=colour(name), yerr=bars, error_kw={"linewidth": 0.8})
    axes.set_xticks(range(len(places)), places)
    axes.grid(axis="x", visible=False)
    axes.legend()


# ---- By the clock ----


def generated(report: Report, path: Path) -> None:
    """Draw how many times as fast as plain generation each task was."""
    heights: dict[str, list[float]] = {"prompt lookup, best setting": [], "lookahead": []}
    errors: dict[str, list[list[float]]] = {name: [[], []] for name in heights}
    for row in report["rows"]:
        times = times_of(row)
        best = min((name for name in times if "lookup" in name), key=lambda name: statistics.median(times[name]))
        for label, name in zip(heights, (best, "lookahead"), strict=True):
            middle, low, high = bootstrapped(times["generate"], times[name])
            heights[label].append(middle)
            errors[label][0].append(middle - low)
            errors[label][1].append(high - middle)
    temperature = report["rows"][0]["temperature"]
    title = f"SmolLM2-135M by the clock, {f'temperature {temperature}' if temperature else 'greedy'}"
    with figure(path, title, "", "times as fast as generate") as axes:
        _bars(axes, [row["task"] for row in report["rows"]], heights, errors)
        axes.axhline(1, color=colour("generate"), linewidth=0.8)


def forced(report: Report, path: Path) -> None:
    """Draw the gain against the context."""
    size = report["rows"][0]["size"]
    title = f"FORCED ANSWER, {size}: gain against context"
    with figure(path, title, "tokens of the prompt", "times as fast as generate") as axes:
        for dtype, line in (("float32", "o-"), ("bfloat16", "s--")):
            place = {"dtype": dtype, "format": report["rows"][0]["format"]}
            rows = [row for row in report["rows"] if row | place == row]
            for kind in ("lookahead", "prompt lookup") if rows else ():
                gains = []
                for row in rows:
                    name = next(name for name in row["seconds"] if name.startswith(kind))
                    gains.append(ratio(row["seconds"]["generate"], row["seconds"][name])[0])
                contexts = [row["context"] for row in rows]
                axes.plot(contexts, gains, line, label=f"{kind}, {dtype}", color=colour(kind))
        axes.axhline(1, color=colour("generate"), linewidth=0.8)
        axes.set_ylim(bottom=0)
        axes.legend()


def batched(report: Report, path: Path) -> None:
    """Draw the gain against the rows of a batch."""
    title = "SmolLM2-135M: gain against batch size (edits: FORCED ANSWER)"
    with figure(path, title, "rows", "times as fast as generate") as axes:
        for task, line in (("edits", "o-"), ("novel text", "s--")):
            rows = [row for row in report["rows"] if row["task"] == task]
            gains = [ratio(row["seconds"]["generate"], row["seconds"]["lookahead"])[0] for row in rows]
            axes.plot([row["rows"] for row in rows], gains, line, label=task, color=colour("lookahead"))
        axes.axhline(1, color=colour("generate"), linewidth=0.8)
        axes.set_ylim(bottom=0)
        axes.legend()


# ---- Scale and costs ----


def drafting(report: Report, path: Path) -> None:
    """Draw the time to draft against the context."""
    _against_context(report, path, "Time to draft", "microseconds, median", lambda row: row["median_micros"])


def memory(report: Report, path: Path) -> None:
    """Draw the memory against the context."""
    megabytes: Callable[[Row], float] = lambda row: max((row["bytes"] or 0) / 1e6, 0.01)  # noqa: E731
    _against_context(report, path, "Memory of one sequence", "megabytes", megabytes)


def _against_context(report: Report, path: Path, title: str, up: str, value: Callable[[Row], float]) -> None:
    """Draw one figure of each drafter, both axes logarithmic."""
    rows = [row for row in report["rows"] if row["by"] == "context"]
    with figure(path, f"{title} against context", "tokens of context", up) as axes:
        for name in dict.fromkeys(row["drafter"] for row in rows):
            own = [row for row in rows if row["drafter"] == name]
            axes.loglog([row["context"] for row in own], list(map(value, own)), "o-", label=name, color=colour(name))
        axes.legend()


def costs(report: Report, path: Path) -> None:
    """Draw what a forward costs against the tokens behind the last one."""
    title = "SmolLM2-135M, float32: what a forward costs"
    with figure(path, title, "draft tokens", "forwards without a draft") as axes:
        contexts = dict.fromkeys(row["context"] for row in report["rows"])
        for context, line in zip(contexts, ("o-", "s--", "^:"), strict=False):
            rows = [row for row in report["rows"] if row["context"] == context]
            sizes, values = [row["drafted"] for row in rows], [row["forwards"] for row in rows]
            axes.plot(sizes, values, line, label=f"{context} tokens of context", color=colour("lookahead"))
        axes.set_ylim(bottom=0)
        axes.legend()

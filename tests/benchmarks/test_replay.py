"""A run of the replay benchmark."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from benchmarks import replay as benchmark
from lookahead.bench.tasks import Edit


@pytest.fixture(scope="module")
def edit() -> Edit:
    before = "".join(f"value_{number} = compute({number * 7 % 31})\n" for number in range(40))
    return Edit("values.py", "Log value 20.", before, before.replace("value_20 =", "logged = value_20 ="))


@pytest.mark.model
def test_a_run_writes_what_it_shows(
    edit: Edit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tasks, out = tmp_path / "tasks.jsonl", tmp_path / "out.json"
    tasks.write_text(json.dumps(vars(edit)) + "\n")
    arguments = ["--tasks", tasks, "--budgets", 8, 16, "--json", out, "--formats", "json", "--only", "look", "vLLM"]
    monkeypatch.setattr(sys, "argv", ["replay", *map(str, arguments)])
    benchmark.main()
    shown, report = capsys.readouterr().out, json.loads(out.read_text())
    assert (
        report["command"]
        == f"python -m benchmarks.replay --tasks {tasks} --budgets 8 16 --formats json --only look vLLM"
    )
    assert {row["budget"] for row in report["rows"]} == {8, 16}
    for cost in ("linear:0.002", "linear:0.03"):
        short, long = (benchmark.summed(report, budget=size, drafter=f"lookahead ({cost})") for size in (8, 16))
        rate = long["tokens"] / long["forwards"]
        assert long["tokens per forward"] == rate > short["tokens per forward"]
        assert f"| {rate:.2f} |" in shown
        assert long["linear:0.03"] < long["linear:0.002"] < rate
    assert benchmark.markdown(report) in shown

"""`lookahead bench` as it is typed, on a small repository."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lookahead.bench.tasks import FORMATS
from tests.cli.commands import run, saved
from tests.histories import commit, source, started
from tests.vocabularies import vocabulary


@pytest.fixture(scope="module")
def repo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = started(tmp_path_factory.mktemp("bench") / "project")
    for number in range(3):
        text = source(f"value_{number} = None", number)
        commit(folder, f"Change value {number}", main_dot_py=text, go_dot_go=source(f"y := {number}"))
    return folder


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tokenizer")
    vocabulary("byte_level").save_pretrained(path)
    return path


def figures(*arguments: Any) -> dict[str, Any]:
    result = run("bench", *arguments, "--json")
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_all_formats_are_counted(repo: Path, tokenizer: Path) -> None:
    found = figures("--repo", repo, "--tokenizer", tokenizer, "--tasks", 1, "--budget", 16)
    assert (found["repo"], found["tasks"], found["commits"], found["budget"]) == ("project", 1, 500, 16)
    assert [cost["cost"] for cost in found["costs"]] == ["linear:0.002", "linear:0.03"]
    for cost in found["costs"]:
        rows = {(row["drafter"], row["format"]): row for row in cost["rows"]}
        assert {form for _, form in rows} == set(FORMATS)
        for form in FORMATS:
            ours, lookup = rows["lookahead", form], rows["prompt lookup (10, n=2)", form]
            assert ours["tokens"] == lookup["tokens"] > ours["forwards"]
            assert ours["speed"] <= ours["tokens_per_forward"] <= 17
        ours, lookup = rows["lookahead", "json"], rows["prompt lookup (10, n=2)", "json"]
        assert ours["speed"] > lookup["speed"]


def test_commits_and_files_are_chosen(repo: Path, tokenizer: Path) -> None:
    few = "--repo", repo, "--tokenizer", tokenizer, "--format", "diff", "--cost", "linear:0"
    assert figures(*few, "--commits", 1)["tasks"] == 2
    assert figures(*few, "--suffix", ".go")["tasks"] == 2


def test_tables_say_what_they_rest_on(repo: Path, tokenizer: Path) -> None:
    arguments = "--tasks", 1, "--format", "diff", "--cost", "linear:0.01"
    result = run("bench", "--repo", repo, "--tokenizer", tokenizer, *arguments, env={"COLUMNS": "160"})
    assert result.exit_code == 0, result.output
    assert "project: 1 changes, at most 64 tokens drafted in a forward" in result.stdout
    rows = [line.split("│")[1].strip() for line in result.stdout.splitlines() if line.startswith("│")]
    assert rows == ["diff", "all"] * 2
    assert "Expected where drafts cost linear:0.01 (given); time to draft is not counted." in result.stdout


def test_a_model_s_forwards_are_timed(repo: Path, tmp_path: Path) -> None:
    model = saved(tmp_path / "model")
    (cost,) = figures("--repo", repo, "--model", model, "--tasks", 1, "--format", "json")["costs"]
    assert cost["cost"] == "measured"
    assert cost["forward_seconds"] > 0
    assert all(row["speed"] > 0 for row in cost["rows"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--format", "prose"], "--format prose is not known; allowed are whole file, numbered"),
        (["--cost", "cheap"], "cost='cheap' is out of range; allowed is None, a function"),
        (["--repo", "/nowhere"], "/nowhere is no folder; give the folder of a git repository"),
        (["--suffix", ".rs"], "none of the newest 500 commits makes a task: a file of 1200 to 16000 characters"),
        (["--tokenizer", "/nowhere"], "/nowhere cannot be loaded; allowed is a folder where save_pretrained"),
    ],
)
def test_wrong_usage_is_told(repo: Path, tokenizer: Path, arguments: list[str], words: str) -> None:
    result = run("bench", "--repo", repo, "--tokenizer", tokenizer, *arguments)
    assert result.exit_code == 64
    assert words in " ".join(result.stderr.split())

"""The page of results says what the files of results say, and nothing else."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import matplotlib
import pytest

import benchmarks
from benchmarks import __main__ as command
from benchmarks.page import write
from benchmarks.sections import SECTIONS

HERE = Path(benchmarks.__file__).parent


def test_the_page_is_what_its_files_say(tmp_path: Path) -> None:
    shutil.copytree(HERE / "data" / "results", tmp_path / "data" / "results")
    write(tmp_path)
    hint = "is not what data/results say; run: python -m benchmarks --render"
    assert (tmp_path / "RESULTS.md").read_text() == (HERE / "RESULTS.md").read_text(), f"RESULTS.md {hint}"
    drawn, kept = ({path.name: path for path in (folder / "plots").glob("*")} for folder in (tmp_path, HERE))
    assert set(drawn) == set(kept), f"plots/ {hint}"
    for name, path in drawn.items():
        if f"Matplotlib v{matplotlib.__version__}" not in kept[name].read_text():
            pytest.skip("another release of matplotlib drew the plots that are kept")
        assert path.read_text() == kept[name].read_text(), f"plots/{name} {hint}"


def test_what_was_not_run_is_said_to_be_missing(tmp_path: Path) -> None:
    write(tmp_path)
    text = (tmp_path / "RESULTS.md").read_text()
    assert all(f"`python -m benchmarks {name}`" in text for name in SECTIONS)


def test_a_section_is_run_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmarks", "gpu", "--quick", "--folder", str(tmp_path)])
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    command.main()
    assert [path.name for path in (tmp_path / "data" / "results").iterdir()] == ["gpu.json"]
    text = (tmp_path / "RESULTS.md").read_text()
    assert f"`python -m benchmarks.gpu {SECTIONS['gpu'].quick}`" in text
    assert "no CUDA device found" in text
    monkeypatch.setattr(sys, "argv", ["benchmarks", "speed"])
    with pytest.raises(SystemExit):
        command.main()
    assert "there is no section speed; there are replay, turns" in capsys.readouterr().err


def test_a_section_that_fails_leaves_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = subprocess.CompletedProcess([], 1)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: failed)
    monkeypatch.setattr(sys, "argv", ["benchmarks", "costs", "--folder", str(tmp_path)])
    with pytest.raises(SystemExit, match="these failed, and the page has what was there before: costs"):
        command.main()
    assert (tmp_path / "RESULTS.md").exists()

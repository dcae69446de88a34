"""`lookahead run` as it is typed: what it prints, what it writes, and its exit codes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import Result

from lookahead import Drafter
from lookahead.trace.record import Trace
from tests.cli.commands import TEXT, run, saved
from tests.models import tiny
from tests.vocabularies import letters

GREEDY: dict[str, Any] = {"do_sample": False}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(tmp_path_factory.mktemp("model"))


def ask(folder: Path, *arguments: Any, **kwargs: Any) -> Result:
    return run("run", "--model", folder, "--max-new-tokens", 40, *arguments, **kwargs)


def vanilla(text: str, **settings: Any) -> str:
    """Return what `generate` answers."""
    ids = letters()(text, return_tensors="pt")["input_ids"]
    torch.manual_seed(3)
    settings = {"attention_mask": torch.ones_like(ids), "max_new_tokens": 40, **GREEDY, **settings}
    out = tiny(dtype=torch.float32).generate(ids, **settings)
    return letters().decode(out[0, ids.shape[1] :])


SAMPLED: tuple[tuple[Any, ...], dict[str, Any]] = (
    ("--temperature", 0.8, "--top-p", 0.95, "--top-k", 9, "--seed", 3),
    {"do_sample": True, "temperature": 0.8, "top_p": 0.95, "top_k": 9},
)


@pytest.mark.parametrize("plain", [(), ("--no-lookahead",)], ids=str)
@pytest.mark.parametrize(("more", "settings"), [((), {}), SAMPLED], ids=["greedy", "sampled"])
def test_the_answer_is_that_of_generate(
    folder: Path, more: tuple[Any, ...], settings: dict[str, Any], plain: tuple[str, ...]
) -> None:
    result = ask(folder, TEXT, *more, *plain)
    assert (result.exit_code, result.stdout, result.stderr) == (0, vanilla(TEXT, **settings), "")


def test_prompts_come_from_files_and_from_the_standard_input(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "one").write_text(f"{TEXT}\n\n")
    (tmp_path / "two").write_text(TEXT[::-1])
    files = "--file", tmp_path / "one", "--file", tmp_path / "two"
    together = f"{TEXT}\n\n{TEXT[::-1]}"
    assert ask(folder, *files).stdout == vanilla(together)
    assert ask(folder, *files, "abc").stdout == vanilla(f"{together}\n\nabc")
    assert ask(folder, input=TEXT).stdout == ask(folder, "-", input=TEXT).stdout == vanilla(TEXT)
    assert ask(folder, "--file", tmp_path / "one", "-", input="abc").stdout == vanilla(f"{TEXT}\n\nabc")


def test_a_chat_template_is_used_where_there_is_one(folder: Path, tmp_path: Path) -> None:
    tokenizer = letters()
    tokenizer.chat_template = "{% for message in messages %}{{ message.content }}bb{% endfor %}"
    saved(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    assert ask(tmp_path, TEXT).stdout == vanilla(f"{TEXT}bb")
    assert ask(tmp_path, TEXT, "--raw").stdout == vanilla(TEXT)


def test_a_prediction_is_copied_from(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "expected").write_text(vanilla(TEXT))
    result = ask(folder, TEXT, "--prediction", tmp_path / "expected", "--json")
    found = json.loads(result.stdout)
    assert found["text"] == vanilla(TEXT) and found["finished"] is True
    assert found["stats"]["drafted_by_source"]["prediction"] > 0
    assert found["stats"]["tokens"] == 40 and found["stats"]["forwards"] < 40


def test_figures_go_to_the_standard_error(folder: Path) -> None:
    for more in ((), ("--no-lookahead",)):
        result = ask(folder, TEXT, "--stats", *more)
        assert result.stdout == vanilla(TEXT)
        assert "40 tokens in" in result.stderr and "tokens per second" in result.stderr and "model" in result.stderr


def test_the_trace_holds_the_answer(folder: Path, tmp_path: Path) -> None:
    result = ask(folder, TEXT, "--trace", tmp_path / "out.json")
    assert result.exit_code == 0, result.output
    trace = Trace.load(tmp_path / "out.json")
    texts = trace.texts([token for step in trace.steps for token in step.tokens])
    assert "".join(texts) == result.stdout and "".join(trace.texts(trace.prompts[0])) == TEXT
    assert trace.about["model"] == folder.name
    shown = run("trace", tmp_path / "out.json")
    assert shown.stdout.startswith(result.stdout)


def test_a_terminal_sees_colours(folder: Path) -> None:
    result = ask(folder, TEXT, env={"FORCE_COLOR": "1", "TERM": "xterm-256color"})
    assert "\x1b[1;31m" in result.stdout and result.stdout.endswith("\n")


@pytest.fixture
def interrupted() -> Iterator[None]:
    """Have the user press Ctrl-C while the third draft is thought of."""
    with pytest.MonkeyPatch.context() as patch:
        real, left = Drafter.propose, [3]

        def propose(self: Drafter, budget: int | None = None) -> Any:
            left[0] -= 1
            if not left[0]:
                raise KeyboardInterrupt
            return real(self, budget)

        patch.setattr(Drafter, "propose", propose)
        yield


@pytest.mark.usefixtures("interrupted")
def test_an_interruption_exits_with_130_and_tells_what_there_is(folder: Path, tmp_path: Path) -> None:
    result = ask(folder, TEXT, "--trace", tmp_path / "out.json")
    assert result.exit_code == 130
    assert vanilla(TEXT).startswith(result.stdout) and 0 < len(result.stdout) < 40
    assert "interrupted" in result.stderr and f"{len(result.stdout)} tokens in 3 forwards" in result.stderr
    trace = Trace.load(tmp_path / "out.json")
    assert "".join(trace.texts([token for step in trace.steps for token in step.tokens])) == result.stdout


@pytest.mark.usefixtures("interrupted")
def test_an_interruption_is_told_to_machines(folder: Path) -> None:
    result = ask(folder, TEXT, "--json")
    found = json.loads(result.stdout)
    assert (result.exit_code, found["finished"], found["stats"]["forwards"]) == (130, False, 3)


SLOWLY = """
import time
from lookahead.cli import main, screen
put = screen.Screen.put
screen.Screen.put = lambda *args: (put(*args), time.sleep(0.05))
main()
"""


def test_the_signal_of_ctrl_c_ends_it_with_130_and_no_traceback(folder: Path) -> None:
    command = [sys.executable, "-c", SLOWLY, "run", "--model", str(folder), TEXT, "--no-lookahead"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout and process.stderr
        begun = process.stdout.read(1)
        process.send_signal(signal.SIGINT)
        answer, said = (begun + process.stdout.read()).decode(), process.stderr.read().decode()
    assert process.returncode == 130 and 0 < len(answer) < 40 and vanilla(TEXT).startswith(answer)
    assert "interrupted" in said and "Traceback" not in said


def test_without_a_wish_the_answer_goes_on_until_the_model_has_no_more_positions(folder: Path) -> None:
    found = json.loads(run("run", "--model", folder, TEXT, "--json").stdout)
    assert found["stats"]["tokens"] == 512 - len(TEXT)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a", "--model", "/no/such/folder"], "there is no folder '/no/such/folder'"),
        (["--model", "MODEL"], "there is no prompt"),
        ([" ", "--model", "MODEL"], "there is no prompt"),
        (["--model", "MODEL", "--file", "TMP/none"], "none cannot be read: No such file"),
        (["--model", "MODEL", "--file", "TMP/bytes"], "not text in UTF-8"),
        (["a", "--model", "MODEL", "--prediction", "TMP/none"], "none cannot be read: No such file"),
        (["a", "--model", "MODEL", "--chat"], "has no chat template"),
        (["a" * 600, "--model", "MODEL"], "512 positions; shorten the prompt"),
        (["a" * 500, "--model", "MODEL", "--max-new-tokens", "13"], "allow 12 new tokens at most"),
        (["a", "--model", "MODEL", "--top-p", "0.9", "--top-k", "3"], "--top-p and --top-k is for sampling"),
        (["a", "--model", "MODEL", "--trace", "TMP/out.json", "--no-lookahead"], "leave out --no-lookahead"),
        (
            ["a", "--model", "MODEL", "--trace", "TMP/no/out.json"],
            "out.json cannot be written; give a file in a folder",
        ),
        (["a", "--model", "MODEL", "--dtype", "int8"], "dtype 'int8' is not known"),
        (["a"], "Missing option '--model'"),
    ],
)
def test_wrong_usage_exits_with_64_and_one_line(
    folder: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    (tmp_path / "bytes").write_bytes(b"ab\xff")
    arguments = [one.replace("MODEL", str(folder)).replace("TMP", str(tmp_path)) for one in arguments]
    result = run("run", *arguments)
    assert (result.exit_code, result.stdout) == (64, "")
    assert message in result.stderr and result.stderr.count("\n") == 1
    assert result.stderr.startswith("lookahead run: ")

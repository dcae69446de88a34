"""The other programs of examples/: with a tiny model they give what generate gives."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from examples import inside_other_code, rewrite_file


def test_a_call_by_a_grammar_follows_its_schema(folder: str) -> None:
    pytest.importorskip("xgrammar")
    from jsonschema import validate

    from examples import grammar_tool_call

    plain, ahead = grammar_tool_call.main(folder)
    assert ahead == plain
    validate(json.loads(ahead), grammar_tool_call.SCHEMA)


def test_a_server_is_told_what_to_expect(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("openai")
    from examples import predicted_edit
    from tests.server.serving import prompt_of, running, vanilla

    file = tmp_path / "basket.py"
    file.write_text("def total(items):\n    return sum(items)\n")
    with running() as server:
        answer = predicted_edit.main(f"{server.url}/v1", str(file), "Add types.")
    asked = f"Copy this text. Add types.\n\n{file.read_text()}"
    ids = prompt_of([{"role": "user", "content": asked}])
    assert answer == vanilla(ids, max_new_tokens=256, do_sample=False)[0]
    said = capsys.readouterr()
    assert said.out == answer
    assert "of the prediction" in said.err


@pytest.mark.filterwarnings("ignore:.*torch_dtype.*")
def test_code_that_calls_generate_inside_itself(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("smolagents")
    ways = inside_other_code.with_pipeline, inside_other_code.with_smolagents
    answers = [way(folder) for way in ways]
    monkeypatch.setattr(inside_other_code, "lookahead", _Without())
    assert [way(folder) for way in ways] == answers


class _Without:
    """Takes the place of lookahead and does nothing."""

    def enable(self, model: Any, tokenizer: Any) -> Any:
        self.stats = self
        return self

    enabled = enable

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *error: Any) -> None:
        pass

    def summary(self) -> str:
        return "plain"


def test_a_session_remembers_an_answer(folder: str) -> None:
    from examples import session

    first, _, again = session.main(folder)
    assert again[0] == first[0]
    assert again[2] < again[1] / 2


def test_a_repository_is_drafted_from(folder: str, tmp_path: Path) -> None:
    pytest.importorskip("pydivsufsort")
    from examples import repository
    from tests.cli.commands import run

    corpus = tmp_path / "data.lkh"
    assert run("index", repository.DATA, "-o", corpus, "--tokenizer", folder).exit_code == 0
    alone, known = repository.main(str(corpus), folder)
    assert known < alone / 2


def test_a_file_is_rewritten(folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "basket.py"
    file.write_text("def total(items):\n    return sum(items)\n")
    rewrite_file.main(folder, str(file), "Add types.")
    said = capsys.readouterr()
    assert said.out
    assert "tokens per forward" in said.err

"""The agent edits as its answers say, and lookahead changes none of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from examples import edit_agent

PATH = edit_agent.DATA / "inventory.py"


def test_recorded_edits_are_applied_in_fewer_forwards(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    before, wanted = PATH.read_text(), PATH.read_text()
    for turn in json.loads((edit_agent.DATA / "inventory-turns.json").read_text()):
        assert wanted.count(turn["old_str"]) == 1
        wanted = wanted.replace(turn["old_str"], turn["new_str"])
    assert edit_agent.main(["--forced", "--compare", "--write", "--model", folder]) == wanted
    assert PATH.read_text() == before
    compile(wanted, "inventory.py", "exec")
    said = capsys.readouterr().out
    assert said.startswith("FORCED ANSWERS")
    assert said.count("  applied; ") == said.count("the same answer") == 3
    assert said.count(" = 1.00 tokens per forward") == 0


def test_an_answer_without_a_call_changes_nothing(
    folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "greeting.py"
    file.write_text("print('hello')\n")
    assert edit_agent.main(["--model", folder, "--file", str(file), "--write", "Say goodbye."]) == file.read_text()
    assert "no str_replace call" in capsys.readouterr().out
    assert file.read_text() == "print('hello')\n"


@pytest.mark.parametrize(
    ("said", "became", "text"),
    [
        ('{"old_str": "b", "new_str": "x"}', "applied", "a x a"),
        ('{"old_str": "a", "new_str": "x"}', "old_str occurs 2 times", "a b a"),
        ('{"old_str": "c", "new_str": "x"}', "old_str occurs 0 times", "a b a"),
        ('{"old_str": "b"}', "no str_replace call", "a b a"),
        ("[1]", "no str_replace call", "a b a"),
    ],
)
def test_a_call_is_applied_where_it_fits_once(said: str, became: str, text: str) -> None:
    agent = edit_agent.Agent(None, None, "letters", "a b a")
    call = f'<tool_call>\n{{"name": "str_replace", "arguments": {said}}}\n</tool_call>'
    assert (agent.apply(call), agent.text) == (became, text)


def test_what_is_missing_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        edit_agent.main(["--file", "x.py"])
    assert "give --file FILE and what to change, or --forced" in capsys.readouterr().err

"""What a conversation's prompts hold, and what is replayed of it."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks import refactorings, turns
from benchmarks.peers import Arctic
from benchmarks.splicing import compiles
from lookahead.hf import smollm2

BEFORE = "".join(f"value_{number} = compute({number * 7 % 31})\n" for number in range(30))
TRACE: dict[str, Any] = {
    "path": "values.py",
    "before": BEFORE,
    "turns": [
        {
            "instruction": f"Log value {number}.",
            "after": BEFORE.replace(f"value_{number} =", f"logged = value_{number} ="),
        }
        for number in (10, 20, 29)
    ],
    "files": [],
}


def options(**changed: Any) -> argparse.Namespace:
    return argparse.Namespace(
        **{"repeat": False, "chat": False, "budget": 16, "cost": "linear:0.03", "only": None} | changed
    )


@pytest.mark.model
@pytest.mark.parametrize(
    ("changed", "files", "answers"),
    [({}, (1, 0, 0), (0, 0, 0)), ({"repeat": True}, (1, 1, 1), (0, 0, 0)), ({"chat": True}, (1, 1, 1), (0, 1, 2))],
)
def test_prompts_hold_what_the_options_say(
    changed: dict[str, bool], files: tuple[int, ...], answers: tuple[int, ...]
) -> None:
    tokenizer = smollm2.load_tokenizer()
    found = turns.turns_of(TRACE, "whole file", options(**changed), tokenizer)
    for number, (prompt, written) in enumerate(found):
        text, turn = tokenizer.decode(prompt), TRACE["turns"][number]
        assert turn["instruction"] in text
        assert tokenizer.decode(written) == f"```python\n{turn['after']}```"
        shown = TRACE["turns"][number - 1]["after"] if changed.get("repeat") and number else BEFORE
        assert text.count(shown) == files[number]
        assert sum(earlier["after"] in text for earlier in TRACE["turns"][:number]) == (
            1 if changed.get("repeat") and number else answers[number]
        )


@pytest.mark.model
def test_memory_is_worth_what_the_prompt_does_not_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*arguments: str) -> dict[str, list[float]]:
        given = ["--traces", str(file), "--formats", "whole file", *arguments]
        monkeypatch.setattr(sys, "argv", ["turns", *given])
        turns.main()
        rows = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]
        return {row[0]: [float(cell) for cell in row[1:5]] for row in rows[2:]}

    file = tmp_path / "traces.jsonl"
    file.write_text(json.dumps(TRACE) + "\n")
    alone, chat = run(), run("--chat")
    assert set(alone) >= {"lookahead, nothing kept", "lookahead, session", "lookahead, one drafter"}
    assert min(alone["lookahead, session"][1:3]) > max(alone["lookahead, nothing kept"][1:3])
    for name in alone:
        if "session" not in name and name != "Arctic, global tree":
            assert max(alone[name][1:3]) < alone[name][0]  # the first turn's prompt shows the file
            assert min(chat[name][1:3]) > max(alone[name][1:3])
    if Arctic.installed:
        assert min(alone["Arctic, global tree"][1:3]) > max(alone["Arctic, nothing kept"][1:3])
    file.write_text('{"path": "x"}\n')
    with pytest.raises(SystemExit, match="lacks before, turns, files; write it by mine_edits --turns"):
        run()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "holds no trace; write it by mine_edits --turns"),
        ("{", "traces.jsonl:1 is not JSON"),
        ("[1]", "lacks path, before, turns, files"),
        (None, "cannot be read"),
    ],
)
def test_a_file_that_holds_no_traces_is_told_in_one_line(tmp_path: Path, text: str | None, says: str) -> None:
    file = tmp_path / "traces.jsonl"
    if text is not None:
        file.write_text(text)
    with pytest.raises(SystemExit, match=says):
        turns.traces_of(options(traces=file, count=8))


def test_texts_of_traces_may_hold_what_else_parts_lines(tmp_path: Path) -> None:
    file, trace = tmp_path / "traces.jsonl", TRACE | {"before": "a\u2028b\x85"}
    file.write_text(2 * (json.dumps(trace, ensure_ascii=False) + "\n"), encoding="utf-8")
    assert turns.traces_of(options(traces=file, count=1)) == ([trace], "traces.jsonl")


def test_built_in_traces_go_on_where_the_turn_before_ended() -> None:
    found = list(refactorings.traces(3, seed=2, turns=3, corpus=30_000))
    assert found == list(refactorings.traces(3, seed=2, turns=3, corpus=30_000))
    assert len({trace["path"] for trace in found}) == 3
    for trace in found:
        texts = [trace["before"], *(turn["after"] for turn in trace["turns"])]
        assert len(set(texts)) == 4
        assert all(map(compiles, texts))
        assert trace["path"] not in [file["path"] for file in trace["files"]]
        assert 0 < sum(len(file["text"]) for file in trace["files"]) <= 30_000

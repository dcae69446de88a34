"""What is written is read again, and what is damaged is refused with a line number."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookahead import Draft
from lookahead.trace.page import columns
from lookahead.trace.record import Trace
from lookahead.trace.step import Step
from tests.trace.traces import BYTES, trace_of


def plain(trace: Trace, pieces: bool = True) -> Any:
    """Return all that a trace holds, in types that compare."""
    steps = [
        {
            name: value.tolist() if isinstance(value, np.ndarray) else value
            for name, value in {**vars(step), **vars(step.draft)}.items()
            if name not in ("draft", "drawn_from")
        }
        for step in trace.steps
    ]
    return trace.prompts, steps, trace.about, trace.note


@given(st.integers(0, 2**32), st.integers(0, 12), st.integers(1, 3))
def test_a_trace_is_read_as_it_was_written(tmp_path_factory: Any, seed: int, steps: int, rows: int) -> None:
    trace, path = trace_of(seed, steps, rows), tmp_path_factory.getbasetemp() / "trace.json"
    trace.save(path)
    again = Trace.load(path)
    assert plain(again) == plain(trace)
    tokens = [token for step in trace.steps for token in [*step.tokens, *step.draft.tokens.tolist()]]
    assert again.pieces(tokens) == trace.pieces(tokens)
    assert again.texts(tokens) == trace.texts(tokens)
    assert again.by_source() == trace.by_source() and again.seconds == trace.seconds


def test_every_line_is_json_for_anyone(tmp_path: Path) -> None:
    trace_of(0, 5).save(tmp_path / "trace.json")
    header, *steps = [json.loads(line) for line in (tmp_path / "trace.json").read_text("utf-8").splitlines()]
    assert (header["format"], header["version"], len(steps)) == ("lookahead-trace", 1, 5)
    assert {"forward", "row", "tokens", "path", "draft", "seconds"} == set(steps[0])


def test_a_character_of_several_tokens_comes_with_the_last_of_them() -> None:
    trace = Trace(pieces=lambda tokens: [bytes([token]) for token in tokens])
    assert trace.texts(list("a█é!".encode())) == ["a", "", "", "█", "", "é", "!"]
    assert trace.texts([0xE2, 0x96, 0x61]) == ["", "", "\N{REPLACEMENT CHARACTER}a"]
    assert trace.texts([0x61, 0xE2]) == ["a", "\N{REPLACEMENT CHARACTER}"]
    assert trace.texts([]) == []


DAMAGES = ("empty", "text", "other json", "later", "no prompts", "cut", "no draft", "row", "path", "tokens", "parents")
DAMAGES += ("source", "lengths", "times", "nested")


def damaged(lines: list[str]) -> dict[str, tuple[list[str], str]]:
    """Return files that are no sound trace, and what is said of each."""
    header, step = json.loads(lines[0]), json.loads(lines[2])

    def changed(**changes: Any) -> list[str]:
        return [*lines[:2], json.dumps({**step, **changes}), *lines[3:]]

    draft = step["draft"]
    return {
        "empty": ([], "is no trace"),
        "text": (["hello"], "is no trace"),
        "other json": (['{"format": "other"}'], "is no trace"),
        "later": ([json.dumps({**header, "version": 2}), *lines[1:]], "has version 2 of the format"),
        "no prompts": ([json.dumps({**header, "prompts": None})], "the header of .* is damaged"),
        "cut": ([*lines[:2], lines[2][:-9]], "line 3 of .* is damaged"),
        "no draft": (changed(draft=None), "line 3 of .* is damaged"),
        "row": (changed(row=7), "a row has a prompt"),
        "path": (changed(path=[99]), "the path leads through the draft"),
        "tokens": (changed(tokens=[1], path=[0], draft={**draft, "tokens": [5] * len(draft["tokens"])}), "emitted"),
        "parents": (changed(draft={**draft, "parents": [5] * len(draft["parents"])}), "parent stands before"),
        "source": (changed(draft={**draft, "sources": [50] * len(draft["sources"])}), "line 3 of .* is damaged"),
        "times": (changed(seconds=[0.1, float("inf"), 0.1]), "times and probabilities are finite"),
        "nested": ([*lines[:2], "[" * 100_000], "line 3 of .* is damaged"),
        "lengths": (changed(draft={**draft, "lengths": [1]}), "as many as tokens"),
    }


@pytest.mark.parametrize("what", DAMAGES)
def test_what_is_no_trace_is_refused(what: str, tmp_path: Path) -> None:
    path, trace = tmp_path / "trace.json", Trace([[1, 2]], pieces=BYTES)
    draft = Draft.chain([3, 4], [0.9, 0.8])
    trace.steps = [
        Step(number + 1, 0, draft, np.array([0, 1]), np.array([2, 3]), [3, 4, 5], [0, 1]) for number in range(3)
    ]
    trace.save(path)
    lines, said = damaged(path.read_text("utf-8").splitlines())[what]
    path.write_text("\n".join(lines), "utf-8")
    with pytest.raises(ValueError, match=said) as found:
        Trace.load(path)
    assert "trace.json" in str(found.value)


def test_what_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    for name, said in [("none", "No such file"), (".", "Is a directory"), ("bytes", "is not text in UTF-8")]:
        with pytest.raises(ValueError, match=said):
            Trace.load(tmp_path / name)


@given(st.integers(0, 2**32), st.data())
def test_a_file_with_any_change_is_refused_or_shown(tmp_path_factory: Any, seed: int, data: st.DataObject) -> None:
    path = tmp_path_factory.getbasetemp() / "changed.json"
    trace_of(seed, 3).save(path)
    text = path.read_text("utf-8")
    at = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(at, min(len(text), at + 12)))
    put = data.draw(
        st.sampled_from(["", "0", "-1", "9" * 30, "null", "[]", "{}", '"', ",", "]", "1e999", "NaN", "\\ud800"])
    )
    path.write_text(text[:at] + put + text[end:], "utf-8")
    try:
        trace = Trace.load(path)
    except ValueError as error:
        assert "changed.json" in str(error)
    else:
        json.dumps(columns(trace), allow_nan=False)
        trace.html().encode()

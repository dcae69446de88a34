"""Calls are followed in every dialect, in whatever pieces they come; after each value the schema says what comes."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookahead.views.calls import CALLS, Calls
from lookahead.views.dialects import DIALECTS, Dialect
from lookahead.views.openings import Watcher

BY_NAME = {dialect.name: dialect for dialect in DIALECTS}
KEYS: dict[str, Any] = {
    "path": {"type": "string"},
    "where": {
        "type": "object",
        "properties": {"deep": {"type": "boolean"}, "near": {"type": "string"}},
        "required": ["deep", "near"],
    },
    "limit": {"type": "integer"},
    "tags": {"type": "array"},
    "text": {"type": "string"},
}
TOOL = {"name": "edit", "parameters": {"type": "object", "properties": KEYS, "required": list(KEYS)}}
OTHER = {"name": "other", "input_schema": {"type": "object", "properties": {"x": {"type": "string"}}}}
PROMPT = f"Call {json.dumps(TOOL)} or {json.dumps(OTHER)}."
ARGUMENTS = {
    "path": 'a "b"\\',
    "where": {"deep": True, "near": "{, }"},
    "limit": 12,
    "tags": ["x", {"y": 1}],
    "text": "é\n</p>",
}
LAST = '"text": "'


def _json(key: str, **style: Any) -> str:
    return json.dumps({"name": "edit", key: ARGUMENTS}, **style)


ANSWERS: dict[str, tuple[str, str]] = {
    "hermes": ("hermes", f"<tool_call>\n{_json('arguments')}\n</tool_call>"),
    "hermes, indented": ("hermes", f"<tool_call>\n{_json('arguments', indent=2)}\n</tool_call>"),
    "hermes, no blanks": ("hermes", f"<tool_call>\n{_json('arguments', separators=(',', ':'))}\n</tool_call>"),
    "llama": ("llama", _json("parameters")),
    "llama, tag": ("llama", f"<|python_tag|>{_json('parameters')}"),
    "mistral": ("mistral", f"[TOOL_CALLS][{_json('arguments')}]"),
    "mistral, named": ("mistral, named", f"[TOOL_CALLS]edit[ARGS]{json.dumps(ARGUMENTS)}"),
    "pythonic": (
        "pythonic",
        """[edit(path="a 'b'", where={"deep": True, "near": "{, }"}, limit=12, tags=["x", {'y': 1}], text="'")]""",
    ),
    "qwen coder": (
        "qwen coder",
        "<tool_call>\n<function=edit>\n"
        + "".join(f"<parameter={key}>\n{value}\n</parameter>\n" for key, value in ARGUMENTS.items())
        + "</function>\n</tool_call>",
    ),
    "anthropic": (
        "anthropic",
        '<function_calls>\n<invoke name="edit">\n'
        + "".join(f'<parameter name="{key}">{value}</parameter>\n' for key, value in ARGUMENTS.items())
        + "</invoke>\n</function_calls>",
    ),
}


class Replay:
    """Feeds an answer to the calls of a prompt."""

    def __init__(self, dialect: Dialect, prompt: str = PROMPT) -> None:
        self._calls, self._watcher, self._said = Calls(prompt), Watcher(CALLS), bytearray()
        self.first = self._calls.begin([dialect])

    def feed(self, piece: bytes) -> list[str]:
        """Return what is foreseen behind a piece."""
        self._said += piece
        return self._calls.feed(piece, self._watcher.feed(piece), self._said)


@pytest.mark.parametrize("name", ANSWERS)
def test_after_each_value_the_next_key_is_foreseen(name: str) -> None:
    dialect, answer = ANSWERS[name]
    replay, right, free = Replay(BY_NAME[dialect]), 0, 0
    text = answer.encode()
    for end in range(1, len(text) + 1):
        ahead = replay.feed(text[end - 1 : end])
        if ahead:
            rest = text[end:].decode("utf-8", "ignore")
            hit = next((one for one in ahead if rest.startswith(one)), "")
            right, free = right + bool(hit), free + 1
            if not name.endswith(("indented", "blanks")):  # which is seen only after the head
                assert hit, (answer[:end], ahead)
    keys = sum(len(key) for key in KEYS)
    assert right > keys and right >= 0.8 * free


@pytest.mark.parametrize("name", ANSWERS)
def test_behind_the_opening_the_whole_head_is_foreseen(name: str) -> None:
    dialect, answer = ANSWERS[name]
    replay = Replay(BY_NAME[dialect])
    opening = next((one for one in CALLS if one == BY_NAME[dialect].opening and answer.startswith(one)), "")
    ahead = replay.feed(opening.encode()) if opening else replay.first
    if name.endswith(("indented", "blanks")):
        assert any(one.startswith("\n{") for one in ahead)
    else:
        assert any(answer[len(opening) :].startswith(one) and "path" in one for one in ahead)
        assert any("other" in one for one in ahead)


@given(st.sampled_from(sorted(ANSWERS)), st.lists(st.integers(1, 40)))
def test_pieces_do_not_matter(name: str, cuts: list[int]) -> None:
    dialect, answer = ANSWERS[name]
    whole, parts, left = Replay(BY_NAME[dialect]), Replay(BY_NAME[dialect]), answer.encode()
    for cut in cuts:
        piece, left = left[:cut], left[cut:]
        for at in range(len(piece)):
            foreseen = whole.feed(piece[at : at + 1])
        if piece:
            assert parts.feed(piece) == foreseen


def test_an_optional_key_may_come_and_the_call_may_end() -> None:
    tool = {"name": "run", "parameters": {"properties": {"a": {"type": "string"}, "b": {}}, "required": ["a"]}}
    replay = Replay(BY_NAME["hermes"], json.dumps(tool))
    ahead = replay.feed(b'<tool_call>\n{"name": "run", "arguments": {"a": "x"')
    assert ahead == ["}}\n</tool_call>", ', "b": ']


@pytest.mark.parametrize("prompt", ["Hello.", '{"properties": {"a": 1}}', PROMPT[: len(PROMPT) // 4]])
def test_a_prompt_without_tools_foresees_nothing(prompt: str) -> None:
    for dialect, answer in ANSWERS.values():
        replay = Replay(BY_NAME[dialect], prompt)
        assert not replay.first and not any(replay.feed(answer[at : at + 5].encode()) for at in range(0, 200, 5))


def test_a_tool_that_is_not_offered_is_not_followed() -> None:
    replay = Replay(BY_NAME["hermes"])
    replay.feed(b'<tool_call>\n{"name": "unheard')
    assert replay.feed(b'_of", "arguments": {"path": "x"') == []


def test_a_second_call_is_followed_as_the_first() -> None:
    call = f"<tool_call>\n{_json('arguments')}\n</tool_call>\n"
    replay = Replay(BY_NAME["hermes"])
    replay.feed(call.encode())
    assert any("edit" in one for one in replay.feed(b"<tool_call>"))
    assert replay.feed(b'\n{"name": "edit", "arguments": {"path": "x"') == [', "where": {"deep": ']


def test_what_stands_in_a_value_opens_no_call() -> None:
    replay = Replay(BY_NAME["hermes"])
    replay.feed(b'<tool_call>\n{"name": "edit", "arguments": {"path": "<tool_call> {')
    assert replay.feed(b'\\"name\\": x"') == [', "where": {"deep": ']


@given(
    st.sampled_from(DIALECTS),
    st.lists(
        st.sampled_from(
            [
                *CALLS,
                *(answer[:90] for _, answer in ANSWERS.values()),
                "{",
                "}}",
                "[",
                '"',
                "\\",
                ":",
                ",",
                " ",
                "=",
                "é",
            ]
        ),
        max_size=9,
    ),
)
def test_any_text_may_come(dialect: Dialect, pieces: list[str]) -> None:
    replay = Replay(dialect)
    for piece in pieces:
        data = piece.encode()
        for part in (data[: len(data) // 2], data[len(data) // 2 :]):
            assert all(replay.feed(part))


@pytest.mark.parametrize("begin", ["{", '{"tags": [', '{"path": "a"'])
def test_endless_blanks_in_a_call_cost_next_to_nothing(begin: str) -> None:
    calls = Calls(PROMPT)
    calls.begin([BY_NAME["hermes"]])
    text = f'<tool_call>\n{{"name": "edit", "arguments": {begin}'
    watcher, said = Watcher(CALLS), bytearray(text.encode())
    calls.feed(bytes(said), watcher.feed(bytes(said)), said)
    started = time.process_time()
    for _ in range(1000):
        said += b"\n"
        calls.feed(b"\n", [], said)
    assert time.process_time() - started < 0.5, "seconds where two runs of blanks share them in every way"

"""Tools through the real openai client, with answers that are written for the model, and calls that are forced."""

from __future__ import annotations

import json
from typing import Any

import openai
import pytest
import torch

from lookahead.hf import answering
from tests.server.serving import NAME, prompt_of, tokenizer

TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "write_file",
        "description": "Write a file.",
        "parameters": {
            "type": "object",
            "properties": {"mode": {"enum": ["add", "replace"]}, "line": {"enum": [1, 7]}},
            "required": ["mode"],
            "additionalProperties": False,
        },
    },
}
OTHER: dict[str, Any] = {"type": "function", "function": {"name": "look"}}
MESSAGES: list[Any] = [{"role": "user", "content": "Add a line."}]
CALL = '{"name": "write_file", "arguments": {"mode": "add"}}'


class Script:
    """Makes the model write a text, whatever it would say."""

    def __init__(self, text: str, prompt: int) -> None:
        self._ids, self._prompt = [*tokenizer()(text)["input_ids"], tokenizer().eos_token_id], prompt

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        told = torch.full_like(scores, -100.0)
        told[0, self._ids[input_ids.shape[1] - self._prompt]] = 0.0
        return told


@pytest.fixture
def says(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return what sets the text of the next answers."""

    def script(text: str) -> None:
        monkeypatch.setattr(answering, "_processors", lambda settings, prompt, chances: [Script(text, prompt)])

    return script


def given(**more: Any) -> dict[str, Any]:
    return {"model": NAME, "messages": MESSAGES, "max_tokens": 120, "tools": [TOOL, OTHER], **more}


def test_calls_are_parsed(client: openai.OpenAI, says: Any) -> None:
    says(f"I add it.\n<tool_call>\n{CALL}\n</tool_call>\n<tool_call>\n{CALL}\n</tool_call>")
    choice = client.chat.completions.create(**given()).choices[0]
    assert (choice.message.content, choice.finish_reason) == ("I add it.", "tool_calls")
    assert [json.loads(call.function.arguments) for call in choice.message.tool_calls] == [{"mode": "add"}] * 2
    assert len({call.id for call in choice.message.tool_calls}) == 2


def test_calls_are_streamed(client: openai.OpenAI, says: Any) -> None:
    says(f"I add it.\n<tool_call>\n{CALL}\n</tool_call>")
    chunks = [chunk.choices[0] for chunk in client.chat.completions.create(**given(stream=True))]
    calls = [call for chunk in chunks for call in chunk.delta.tool_calls or []]
    assert "".join(chunk.delta.content or "" for chunk in chunks) == "I add it."
    assert [(call.index, call.function.name) for call in calls] == [(0, "write_file")]
    assert chunks[-1].finish_reason == "tool_calls"


def test_what_looks_like_a_call_and_is_none_is_said(client: openai.OpenAI, says: Any) -> None:
    says("<tool_call>{broken</tool_call>")
    choice = client.chat.completions.create(**given()).choices[0]
    assert (choice.message.content, choice.finish_reason) == ("<tool_call>{broken</tool_call>", "stop")


def test_without_tools_nothing_is_parsed(client: openai.OpenAI, says: Any) -> None:
    text = f"<tool_call>{CALL}</tool_call>"
    says(text)
    for more in ({"tools": openai.NOT_GIVEN}, {"tool_choice": "none"}):
        choice = client.chat.completions.create(**given(**more)).choices[0]
        assert (choice.message.content, choice.finish_reason) == (text, "stop")


def test_the_template_gets_the_tools_and_the_turns_before(client: openai.OpenAI) -> None:
    called = {"id": "call_1", "type": "function", "function": {"name": "write_file", "arguments": '{"mode": "add"}'}}
    turns = [
        *MESSAGES,
        {"role": "assistant", "content": None, "tool_calls": [called]},
        {"role": "tool", "tool_call_id": "call_1", "content": [{"type": "text", "text": "done"}]},
    ]
    answer = client.chat.completions.create(**given(messages=turns, max_tokens=1))
    plain = [
        *MESSAGES,
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"function": {"name": "write_file", "arguments": {"mode": "add"}}}],
        },
        {"role": "tool", "content": "done"},
    ]
    look = {"type": "function", "function": {"name": "look", "description": "", "parameters": {"type": "object"}}}
    assert answer.usage.prompt_tokens == prompt_of(plain, tools=[TOOL, look]).shape[1]


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "write_file"}}])
def test_a_forced_call_is_made(client: openai.OpenAI, choice: Any) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    pytest.importorskip("xgrammar")
    tools = [TOOL] if choice == "required" else [TOOL, OTHER]
    made = client.chat.completions.create(**given(tools=tools, tool_choice=choice, temperature=0)).choices[0]
    assert made.finish_reason == "tool_calls"
    assert [call.function.name for call in made.message.tool_calls] == ["write_file"]
    jsonschema.validate(json.loads(made.message.tool_calls[0].function.arguments), TOOL["function"]["parameters"])

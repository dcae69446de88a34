"""Tools through the real openai client, with answers that are written for the model, and calls that are forced."""

from __future__ import annotations

import json
from typing import Any

import openai
import pytest
import torch

from lookahead.hf import answering
from lookahead.hf.grammars import Grammars
from lookahead.server.tool_calls import FoundCall, ToolStream, forced, form_of
from tests.server.serving import NAME, model, prompt_of, tokenizer

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


@pytest.mark.parametrize("stream", [False, True])
def test_one_call_at_most_where_several_are_not_wanted(client: openai.OpenAI, says: Any, stream: bool) -> None:
    says(f"I add it.\n<tool_call>\n{CALL}\n</tool_call>\n<tool_call>\n{CALL}\n</tool_call>")
    more = {"stream": True, "stream_options": {"include_usage": True}} if stream else {}
    answer = client.chat.completions.create(**given(parallel_tool_calls=False, **more))
    chunks = list(answer) if stream else [answer]
    parts = [choice.delta if stream else choice.message for chunk in chunks for choice in chunk.choices]
    assert [call.function.name for part in parts for call in part.tool_calls or []] == ["write_file"]
    assert [choice.finish_reason for chunk in chunks for choice in chunk.choices][-1] == "tool_calls"
    whole = len(tokenizer()(f"I add it.\n<tool_call>\n{CALL}\n</tool_call>")["input_ids"])
    assert chunks[-1].usage.completion_tokens <= whole + 1


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


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("template", ["<tool_call>", "[TOOL_CALLS]", '{"name": name, "parameters": dictionary}'])
def test_a_forced_call_follows_a_schema_that_refers_to_its_own_parts(template: str, many: bool) -> None:
    xgrammar = pytest.importorskip("xgrammar")
    parts = {"line": {"enum": [1, 7]}, "lines": {"type": "array", "items": {"$ref": "#/$defs/line"}}}
    schema = {"type": "object", "properties": {"at": {"$ref": "#/$defs/lines"}}, "required": ["at"], "$defs": parts}
    form = form_of(f"{{% if tools %}}{template}{{% endif %}}")
    assert form is not None
    tools: list[tuple[str, Any]] = [("edit", {**schema, "additionalProperties": False}), ("look", None)]
    _, wanted = forced(form, tools if many else tools[:1])
    grammar = xgrammar.Grammar.from_json_schema(json.dumps(wanted))
    for line, is_allowed in ((7, True), (8, False)):
        call: Any = {"name": "edit", form.arguments: {"at": [line]}}
        text = json.dumps([call] if template.startswith("[") else call)
        assert xgrammar.testing._is_grammar_accept_string(grammar, text) == is_allowed


def test_a_forced_call_in_tags_is_made() -> None:
    pytest.importorskip("xgrammar")
    form = form_of("{% if tools %}<tool_call><function=name>{% endif %}")
    assert form is not None
    tools = [(one["function"]["name"], one["function"].get("parameters")) for one in (TOOL, OTHER)]
    opening, tag = forced(form, tools)
    prompt = tokenizer()("Add a line.", return_tensors="pt")
    processors = [Grammars(model(), tokenizer()).of_tag(tag)()]
    torch.manual_seed(1)
    out = model().generate(**prompt, max_new_tokens=200, do_sample=True, logits_processor=processors)
    text = tokenizer().decode(out[0, prompt["input_ids"].shape[1] :], skip_special_tokens=True)
    stream = ToolStream(form, opening, tools)
    (call,) = [*stream.feed(text), *stream.end()]
    assert isinstance(call, FoundCall)
    assert call.name in {"look", "write_file"}

"""Text as it streams, and the calls of tools in it: however it is cut, the whole is the same."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookahead.server.tagged_calls import tagged_calls
from lookahead.server.text import TextStream
from lookahead.server.tool_calls import FoundCall, ToolStream, forced, form_of
from tests.server.serving import HERMES, tokenizer
from tests.vocabularies import KINDS, SAMPLE, vocabulary

LLAMA = '{% if tools %}{"name": function name, "parameters": dictionary}{% endif %}'
MISTRAL = "{% if tools %}[AVAILABLE_TOOLS]{{ tools }}[/AVAILABLE_TOOLS]{% endif %}[TOOL_CALLS]"
CODER = "{% if tools %}{{ tools }}<tool_call>\n<function=name>\n<parameter=key>\nvalue{% endif %}"
CALL = '{"name": "write", "arguments": {"path": "a.py", "lines": [1, 2]}}'
CALLED = FoundCall("write", '{"path": "a.py", "lines": [1, 2]}')
TAGGED = "<function=write>\n<parameter=path>\na.py\n</parameter>\n<parameter=lines>\n[1, 2]\n</parameter>\n</function>"
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}, "lines": {"type": "array"}}}


@pytest.mark.parametrize("kind", KINDS)
@given(text=st.text(max_size=60))
def test_the_parts_add_up_to_the_text(kind: str, text: str) -> None:
    ids = vocabulary(kind)(text, add_special_tokens=False)["input_ids"]
    stream = TextStream(vocabulary(kind))
    parts = [stream.feed(token) for token in ids]
    assert "".join([*parts, stream.end()]) == vocabulary(kind).decode(ids)


def test_no_part_ends_within_a_character() -> None:
    ids = tokenizer()("naïve – 😀 π")["input_ids"]
    stream = TextStream(tokenizer())
    assert all("\ufffd" not in stream.feed(token) for token in ids)


def test_bytes_that_are_no_character_do_not_hold_up_the_text() -> None:
    broken = tokenizer()("😀")["input_ids"][:1]
    stream = TextStream(tokenizer())
    assert sum(len(stream.feed(token)) for token in broken * 40) > 20


@given(seed=st.integers(0, 10**6), stops=st.lists(st.sampled_from(["item", "def ", "\n    ", "self.items", "zzz"])))
def test_a_text_ends_before_the_first_stop(seed: int, stops: list[str]) -> None:
    start = random.Random(seed).randrange(300)
    text = SAMPLE[start : start + 150]
    stream = TextStream(tokenizer(), stops)
    told = "".join([*(stream.feed(token) for token in tokenizer()(text)["input_ids"]), stream.end()])
    places = [text.index(stop) for stop in stops if stop in text]
    assert told == text[: min(places, default=len(text))]
    assert stream.is_stopped == bool(places)


def cut(text: str, seed: int) -> list[str]:
    """Cut a text into random parts."""
    generator, parts = random.Random(seed), []
    while text:
        length = generator.randint(1, 6)
        parts.append(text[:length])
        text = text[length:]
    return parts


def read(template: str, text: str, seed: int) -> list[str | FoundCall]:
    """Read a text that comes in parts; neighbouring texts are joined."""
    form = form_of(template)
    assert form is not None
    stream = ToolStream(form, tools=[("write", SCHEMA)])
    found = [one for part in cut(text, seed) for one in stream.feed(part)] + stream.end()
    joined: list[str | FoundCall] = []
    for one in found:
        if isinstance(one, str) and joined and isinstance(joined[-1], str):
            joined[-1] += one
        else:
            joined.append(one)
    return joined


_FORMS = [
    (HERMES, f"I write.\n<tool_call>\n{CALL}\n</tool_call>", ["I write.", CALLED]),
    (HERMES, f"<tool_call>{CALL}</tool_call>\n<tool_call>\n{CALL}\n</tool_call>", [CALLED, CALLED]),
    (HERMES, f"<tool_call>{CALL}", [CALLED]),  # the end token came first
    (HERMES, "a < b and <tool", ["a < b and <tool"]),
    (HERMES, "<tool_call>{no JSON}</tool_call> after", ["<tool_call>{no JSON}</tool_call> after"]),
    (HERMES, "<tool_call>[1]</tool_call>", ["<tool_call>[1]</tool_call>"]),
    (HERMES, "<tool_call>" + "[" * 100000, ["<tool_call>" + "[" * 100000]),
    (CODER, f"Yes.\n<tool_call>\n{TAGGED}\n</tool_call>\n<tool_call>{TAGGED}</tool_call>", ["Yes.", CALLED, CALLED]),
    (CODER, f"<tool_call>\n{TAGGED.removesuffix('</function>')}", [CALLED]),  # the end token came first
    (
        CODER,
        "<tool_call><function=write><parameter=path>say <tool_call></parameter></function></tool_call>",
        [FoundCall("write", '{"path": "say <tool_call>"}')],
    ),
    (CODER, "<tool_call>\n<function=look>\n</function>\n</tool_call>", [FoundCall("look", "{}")]),
    (CODER, f"<tool_call>{CALL}</tool_call>", [f"<tool_call>{CALL}</tool_call>"]),
    (CODER, "<tool_call><function=a>b</function></tool_call>", ["<tool_call><function=a>b</function></tool_call>"]),
    (LLAMA, CALL.replace("arguments", "parameters"), [CALLED]),
    (LLAMA, f"<|python_tag|>{CALL}; {CALL}", [CALLED, CALLED]),
    (LLAMA, f"Here: {CALL}", [f"Here: {CALL}"]),
    (LLAMA, '{"a": 1}', ['{"a": 1}']),
    (MISTRAL, f"[TOOL_CALLS][{CALL}, {CALL}]", [CALLED, CALLED]),
    (MISTRAL, f"[TOOL_CALLS]write[ARGS]{CALLED.arguments}", [CALLED]),
    (MISTRAL, f"Yes.[TOOL_CALLS]write{CALLED.arguments}[TOOL_CALLS]write{CALLED.arguments}", ["Yes.", CALLED, CALLED]),
    (MISTRAL, "[TOOL_CALLS] none", ["[TOOL_CALLS] none"]),
]


@pytest.mark.parametrize(("template", "text", "expected"), _FORMS)
@pytest.mark.parametrize("seed", range(4))
def test_calls_are_found_however_the_text_comes(
    template: str, text: str, expected: list[str | FoundCall], seed: int
) -> None:
    assert read(template, text, seed) == expected


_VALUES = [
    ({"type": "string"}, "\n\n  [1]\n\n", "\n  [1]\n"),
    ({}, "12", "12"),
    ({"type": "integer"}, "\n12\n", 12),
    ({"type": ["boolean", "null"]}, "True", True),
    ({"anyOf": [{"type": "null"}, {"type": "object"}]}, '{"a": "b"}', {"a": "b"}),
    ({"enum": ["1", 2]}, "1", "1"),
    ({"enum": ["1", 2]}, "2", 2),
    ({"enum": 5}, "2", 2),
    ({"type": "array"}, "[" * 100000, "[" * 100000),
]


@pytest.mark.parametrize(("schema", "written", "value"), _VALUES)
def test_a_value_in_tags_is_what_its_schema_says(schema: dict[str, Any], written: str, value: Any) -> None:
    text = f"<function=f><parameter=key>{written}</parameter></function>"
    assert tagged_calls(text, {"f": {"properties": {"key": schema}}}) == [("f", {"key": value})]


@pytest.mark.parametrize(("template", "text", "expected"), [one for one in _FORMS if CALLED in one[2]])
def test_the_first_call_may_be_the_only_one(template: str, text: str, expected: list[str | FoundCall]) -> None:
    form = form_of(template)
    assert form is not None
    stream = ToolStream(form, tools=[("write", SCHEMA)], is_single=True)
    assert [*stream.feed(text), *stream.end()] == expected[: expected.index(CALLED) + 1]


def test_a_template_without_tools_has_no_form() -> None:
    assert form_of("{{ messages }} <tool_call>") is None
    assert form_of("{% if tools %}{{ tools }}{% endif %}") is None


@pytest.mark.parametrize("template", [HERMES, LLAMA, MISTRAL])
def test_a_forced_call_has_a_schema(template: str) -> None:
    form = form_of(template)
    assert form is not None
    opening, schema = forced(form, [("write", {"type": "object", "properties": {"path": {"type": "string"}}})])
    call = schema["items"] if schema["type"] == "array" else schema
    assert call["properties"]["name"] == {"const": "write"}
    stream = ToolStream(form, opening)
    written = json.dumps({"name": "write", form.arguments: {"path": "x"}})
    text = f"[{written}]" if schema["type"] == "array" else written
    assert [*stream.feed(text), *stream.end()] == [FoundCall("write", '{"path": "x"}')]

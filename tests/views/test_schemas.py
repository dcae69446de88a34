from __future__ import annotations

import json
import time
from typing import Any
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookahead.views import schemas
from lookahead.views.schemas import Schema, tools

PARAMETERS = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": 'A path, such as "{a}/b".'},
        "where": {"type": "object", "properties": {"line": {"type": "integer"}}, "required": ["line"]},
        "tags": {"type": ["array", "null"]},
    },
    "required": ["path", "where"],
}
OPENAI = {"type": "function", "function": {"name": "edit", "description": "Edit {it}.", "parameters": PARAMETERS}}
ANTHROPIC = {"name": "edit", "description": "Edit } it.", "input_schema": PARAMETERS}
TAGGED = """<tools>
<function>
<name>edit</name>
<description>Edit it.</description>
<parameters>
<parameter>
<name>path</name>
<type>string</type>
</parameter>
<parameter>
<name>line</name>
<type>integer</type>
</parameter>
<required>["path"]</required>
</parameters>
</function>
</tools>"""


@pytest.mark.parametrize("indent", [None, 4])
@pytest.mark.parametrize("tool", [OPENAI, ANTHROPIC, OPENAI["function"]], ids=["OpenAI", "Anthropic", "bare"])
def test_a_tool_is_found_with_its_keys_in_their_order(tool: Any, indent: int | None) -> None:
    found = tools(f"You may call {{these}}:\n{json.dumps(tool, indent=indent)}\nor none.")
    assert list(found) == ["edit"]
    assert [(key, each.begins) for key, each in found["edit"].keys.items()] == [
        ("path", '"'),
        ("where", "{"),
        ("tags", "["),
    ]
    assert found["edit"].required == {"path", "where"}
    assert list(found["edit"].keys["where"].keys) == ["line"]


def test_several_tools_come_as_they_were_named_last() -> None:
    offered = [{**ANTHROPIC, "name": name} for name in ("one", "two", "three")]
    for text in (json.dumps(offered), "\n".join(map(json.dumps, offered)), f"[AVAILABLE_TOOLS]{json.dumps(offered)}["):
        assert list(tools(text)) == ["three", "two", "one"]
    assert list(tools(json.dumps(offered) + '\n<tool_call>\n{"name": "one"'))[0] == "one"


def test_tags_offer_tools_too() -> None:
    assert tools(TAGGED) == {"edit": Schema("{", {"path": Schema('"'), "line": Schema()}, frozenset({"path"}))}


def test_keys_that_have_to_come_come_before_those_that_may() -> None:
    schema = Schema("{", {key: Schema() for key in "abcd"}, frozenset("ac"))
    assert schema.ahead([]) == ["a"]
    assert schema.ahead(["a"]) == ["c", "b"]
    assert schema.ahead(["a", "b"]) == ["c"]
    assert schema.ahead(["a", "c"]) == [None, "d"]
    assert schema.ahead(["c"])[-1] == "d", "a key that was left out does not stop the others"
    assert schema.ahead(["unknown"]) == ["a"]


@given(
    st.lists(
        st.sampled_from(
            [json.dumps(OPENAI), TAGGED, '"properties": {', "{", "}", '"', '{"name": "x", ', "[1]", "\\", "é"]
        ),
        max_size=6,
    ),
    st.integers(0, 400),
)
def test_any_text_may_come(pieces: list[str], cut: int) -> None:
    for name, schema in tools("".join(pieces)[cut:]).items():
        assert name and bool(schema.ahead([])) == bool(schema.keys)


@pytest.mark.parametrize(
    "odd", [{"properties": []}, {"properties": {"a": None, "b": 3}, "required": "a"}, {"type": 3}, {}]
)
def test_a_schema_may_hold_anything(odd: dict[str, Any]) -> None:
    text = json.dumps({"name": "edit", "parameters": {"properties": {}, **odd}})
    assert list(tools(text)) == ["edit"] and set(tools(text)["edit"].ahead([])) <= {None, "a"}


def test_tools_in_tags_that_nothing_closes_are_passed_over_in_time_of_their_length() -> None:
    started = time.process_time()
    assert not tools("<function><name>a</name>" * 20_000)
    assert time.process_time() - started < 2, "over a minute where each looks for its end"
    assert list(tools(TAGGED + "<function><name>open</name>"))[:1] == list(tools(TAGGED))


@pytest.mark.parametrize("nest", ['{"properties":' * 20_000, ('{"properties":' * 60 + "x ") * 300])
def test_json_that_ends_in_nothing_is_read_only_so_far_and_tools_before_it_count(
    nest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoder = Mock(wraps=json.JSONDecoder())
    monkeypatch.setattr(schemas, "_DECODER", decoder)
    offered = json.dumps(ANTHROPIC)
    assert list(tools(offered + nest)) == ["edit"]
    tries = decoder.raw_decode.call_count
    assert list(tools(offered + 2 * nest)) == ["edit"]
    assert decoder.raw_decode.call_count - tries < 1.1 * tries < 10_000
    assert list(tools(nest[:3000] + "\n" + offered)) == ["edit"]

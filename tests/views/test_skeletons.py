from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookahead.views.dialects import DIALECTS, HERMES, LLAMA, MISTRAL, Dialect, of_prompt
from lookahead.views.pairs import PAIRS
from lookahead.views.skeletons import named_blocks, skeletons


@pytest.mark.parametrize("line", ["src/app.py", "`src/app.py`", "**src/app.py**:", "File: src/app.py:", "# src/app.py"])
def test_a_path_right_before_a_fence_names_its_block(line: str) -> None:
    text = f"Change this.\n{line}\n```python\nx = 'other/file.py'\n```\n"
    assert [path for _, path in named_blocks(text)] == ["src/app.py"]
    assert text[named_blocks(text)[0][0] :].startswith("\n```python")


def test_a_fence_without_a_path_before_it_names_nothing() -> None:
    assert named_blocks("Look at src/app.py, please.\n\n```\nx\n```\nsrc/app.py is it\n```\n") == []


def test_skeletons_name_the_last_two_files_the_latest_last() -> None:
    said = skeletons(["a.py", "b.py", "a.py", "c.py"], [HERMES])
    assert any("+++ b/c.py\n" in each for each in said) and any('"path": "a.py"' in each for each in said)
    assert not any("b.py" in each for each in said)
    assert "c.py" in said[-1]
    assert any("--- a/file\n" in each for each in skeletons([], [HERMES]))


@given(st.text(alphabet="ab/.`\n{} ", max_size=80))
def test_any_text_may_come(text: str) -> None:
    blocks = named_blocks(text)
    assert all(text[at:].startswith("\n```") and path in text[:at] for at, path in blocks)
    skeletons([path for _, path in blocks], of_prompt(text))


CALLS = {
    "hermes": '<tool_call>\n{"name": "f", "arguments": {"a": "x", "b": "',
    "qwen coder": "<tool_call>\n<function=f>\n<parameter=a>\nx\n</parameter>\n<parameter=b>\n",
    "llama": '<|python_tag|>{"name": "f", "parameters": {"a": "x", "b": "',
    "pythonic": '[f(a="x", b="',
    "mistral": '[TOOL_CALLS][{"name": "f", "arguments": {"a": "x", "b": "',
    "mistral, named": '[TOOL_CALLS]f[ARGS]{"a": "x", "b": "',
    "anthropic": '<function_calls>\n<invoke name="f">\n<parameter name="a">x</parameter>\n<parameter name="b">',
}


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_a_call_is_written_as_the_family_writes_it(dialect: Dialect) -> None:
    assert dialect.call("f", {"a": "x"}, "b") == CALLS[dialect.name]
    assert dialect.call("f", {}, "a") + "x" + dialect.next("b") == CALLS[dialect.name]


@pytest.mark.parametrize(
    ("prompt", "names"),
    [
        ("Hello", ["hermes"]),
        ("return a json object within <tool_call></tool_call> tags", ["hermes"]),
        ("<tool_call>\n<function=example_function_name>", ["hermes", "qwen coder"]),
        ('{"name": function name, "parameters": dictionary of argument name and its value}', ["llama"]),
        ("[AVAILABLE_TOOLS][][/AVAILABLE_TOOLS]", ["mistral"]),
        ("in the format of [func_name1(params_name1=params_value1)]", ["pythonic"]),
    ],
)
def test_the_prompt_tells_how_calls_are_written(prompt: str, names: list[str]) -> None:
    assert [dialect.name for dialect in of_prompt(prompt)] == names


def test_skeletons_of_calls_are_those_of_the_dialect() -> None:
    said = skeletons(["a.py"], [MISTRAL, LLAMA])
    assert '[TOOL_CALLS][{"name": "str_replace", "arguments": {"path": "a.py", "old_str": "' in said
    assert '<|python_tag|>{"name": "write_file", "parameters": {"path": "a.py", "content": "' in said
    assert not any("<tool_call>" in each for each in said)


def test_pairs_are_two_different_openings_and_second_ones_are_unique() -> None:
    assert all(first != second for first, second in PAIRS)
    assert len({second for _, second in PAIRS}) == len(PAIRS)
    assert ('\\"old_str\\":\\"', '\\"new_str\\":\\"') in PAIRS

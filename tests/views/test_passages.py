from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookahead.views.forms import FORMS, form
from lookahead.views.forms.form import Passage, offsets, surface
from lookahead.views.passages import find

CODE = ("import os", "", "def first(a):", "    return a + 1", "", 'TEXT = "é\\t"', "print(first(2))  # 'x' < & >")
OTHER = ("package main", "", "func main() {", "\tprintln(1)", "}")
HOSTILE = st.text(st.sampled_from("\n\n\n\\\"'`~<>&;|:+-@* \t\r1Lnux→ab"), max_size=300)
MEGABYTE = 1_000_000


def lines_of(text: str) -> list[tuple[str, tuple[str, ...]]]:
    return [(passage.form, passage.lines) for passage in find(text)]


def write(name: str, lines: tuple[str, ...] = CODE) -> str:
    return form(name).joint.join(form(name).write(lines))


def test_a_text_without_anything_special_is_one_plain_passage() -> None:
    text = "\n".join(CODE)
    assert find(text) == [Passage("plain", CODE, tuple(offsets(CODE)))]
    assert find("") == find("a\nb\n\n") == find(" \n" * 9) == []


def test_a_prompt_with_many_forms() -> None:
    numbered = write("numbered", OTHER)
    call = f'{{"content": "{write("json")}\\nend"}}'
    text = "\n".join(["Change:", "```python", *CODE, "```", "and", numbered, "with", call, ""])
    found = find(text)
    assert [(passage.form, passage.lines) for passage in found] == [
        ("plain", CODE),
        ("numbered", OTHER),
        ("json", (*CODE, "end")),
    ]
    assert [text[passage.starts[2] :][:12] for passage in found] == ["def first(a)", "     3\tfunc ", "def first(a)"]


@pytest.mark.parametrize("name", [each.name for each in FORMS if each.name not in ("plain", "context")])
def test_each_form_is_found(name: str) -> None:
    before = {"added": "@@\n", "removed": "@@\n", "json2": '{"a": "{\\"b\\": \\"'}.get(name, form(name).lead)
    assert (name, CODE) in lines_of("<x>\n" + before.removeprefix("\n") + write(name))


def test_a_listing_replaces_the_fence_around_it() -> None:
    assert lines_of(f"Here:\n```\n{write('numbered')}\n```\n") == [("numbered", CODE)]
    diff = f"@@ -1,7 +1,8 @@\n{write('context')}\n+more\n"
    assert lines_of(f"```diff\n--- a\n+++ b\n{diff}```\n") == [("removed", CODE), ("added", (*CODE, "more"))]


@pytest.mark.parametrize("outer", ["json", "json2", "quoted", "removed", "entities_quoted", "numbered"])
def test_a_listing_within_another_form(outer: str) -> None:
    inner = form("numbered_arrow").write(CODE)
    before = {"json": '{"out": "', "json2": '{"a": "{\\"b\\": \\"', "removed": "@@\n"}.get(outer, "<x>\n")
    written = form(outer).write(inner)
    text = before + form(outer).joint.join(written)
    starts = offsets(written, len(before), len(form(outer).joint))
    assert find(text) == [Passage("numbered_arrow", CODE, tuple(starts))]


def test_forms_nest_twice() -> None:
    inner = form("numbered").write(form("quoted").write(CODE))
    text = '{"out": "' + surface(form("json"), inner)[0]
    assert lines_of(text) == [("quoted", CODE)]


def test_a_part_in_another_form_stands_beside_the_whole() -> None:
    lines = ["Output of the command:", *OTHER, *form("numbered").write(CODE), "Done.", *OTHER]
    text = json.dumps({"output": "\n".join(lines)}, ensure_ascii=False)
    assert lines_of(text) == [("json", tuple(lines)), ("numbered", CODE)]


def test_starts_within_a_line_of_a_listing_are_exact() -> None:
    listing = form("numbered").write(["{", f'  "content": "{write("json")}",', '  "path": "a.py"', "}"])
    text = "See:\n\n" + "\n".join(listing)
    found = {passage.form: passage for passage in find(text)}
    assert found["json"].lines == CODE
    expected = offsets(form("json").write(CODE), text.index("import os"), 2)
    assert list(found["json"].starts) == expected


def test_the_latest_are_kept() -> None:
    blocks = [tuple(f"{word} {number}" for word in "abc") for number in range(9)]
    text = "\n".join("\n".join(["```", *block, "```"]) for block in blocks)
    assert [passage.lines for passage in find(text, limit=2)] == blocks[-2:]
    assert [passage.lines for passage in find(text, characters=36)] == blocks[-3:]
    assert [passage.lines for passage in find(text, characters=24 + 11)] == blocks[-2:]
    assert find(text, limit=0) == find(text, characters=0) == find(text, limit=-1) == []


def test_the_first_of_the_latest_loses_its_first_lines() -> None:
    text = "\n".join(CODE)
    assert find(text, characters=len(text)) == [Passage("plain", CODE[1:], tuple(offsets(CODE)[1:]))]
    assert find(text, characters=len(text) + 1)[0].lines == CODE


def test_what_stands_there_twice_is_one_passage() -> None:
    block = "\n".join(["```", *CODE, "```"])
    (found,) = find(f"{block}\n{block}")
    assert found.starts[0] == len(block) + 5


def test_the_whole_stays_where_little_of_it_is_special() -> None:
    prose = tuple(f"Sentence {number}, and so on." for number in range(40))
    text = "\n".join([*prose, "```", *OTHER, "```"])
    assert lines_of(text) == [("plain", (*prose, "```", *OTHER, "```")), ("plain", OTHER)]


@given(HOSTILE | st.text(max_size=200), st.integers(0, 5), st.integers(0, 300))
def test_any_text_gives_passages_within_the_limits(text: str, limit: int, characters: int) -> None:
    found = find(text, limit, characters)
    assert len(found) <= limit
    assert sum(len(line) + 1 for passage in found for line in passage.lines) <= characters
    for passage in found:
        assert len(passage.lines) == len(passage.starts) >= 3
        assert all(0 <= start <= len(text) for start in passage.starts)
        assert form(passage.form)


UNITS = [
    '"',
    "\\",
    "1",
    "`",
    "> ",
    " ",
    "\t",
    "x",
    "\n",
    "'",
    "~",
    "@",
    "<",
    "&lt;",
    "\\n",
    '\\"',
    "\\\\n",
    '"\\n\\n\\n',
]
UNITS += [
    "'\\n",
    "```\n",
    "@@\n",
    "> \n",
    "1\t\n",
    "1: x\n",
    "\n\n a",
    "@@\n+a\n",
    "--- a\n",
    "&lt;\n",
    "a:",
    "<a ",
    "\\u",
    " \n",
]


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("tail", ["", "\\n\\n\\n\n"])
def test_hostile_texts_come_to_an_end(unit: str, tail: str) -> None:
    text = unit * (MEGABYTE // len(unit)) + tail
    for passage in find(text):
        assert 0 <= passage.starts[0] <= passage.starts[-1] <= len(text)

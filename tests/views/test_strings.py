from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookahead.views.strings import Strings

LINES = st.lists(st.text(alphabet="ab\"'\\\t é/n", max_size=8), min_size=1, max_size=6)


def heard(text: str) -> list[tuple[str, str]]:
    """Ask at each escaped newline, as a reader does."""
    said, strings, found = text.encode(), Strings(), []
    for end in range(2, len(said) + 1):
        if said[end - 2 : end] == b"\\n":
            found.append(strings.line(bytearray(said[:end]), end))
    return found


@pytest.mark.parametrize("before", ["", "x = ", '{"a": "b", "c": ', "f('x', ", "it's\n"])
@given(LINES)
def test_lines_of_strings_are_read_as_they_come(before: str, lines: list[str]) -> None:
    said = [(quote, line) for quote, line in heard(before + json.dumps("\n".join([*lines, ""]))) if quote == '"']
    assert [line for _, line in said] == lines
    once = json.dumps({"a": "\n".join([*lines, ""])})
    twice = [line for quote, line in heard(before + json.dumps(once)) if quote == '\\"']
    assert twice == lines


def test_what_is_no_string_gives_no_quote() -> None:
    assert heard(r"a\nb") == heard("it's\n" + r"a\nb") == [("", "")]
    assert heard(r"""x = 'it\'s "so"\nand so\n', "it's\n" """) == [("'", 'it\'s "so"'), ("'", "and so"), ('"', "it's")]

from __future__ import annotations

import ast
import html
import json
import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lookahead.views.forms import FORMS, form
from lookahead.views.forms.form import LEAST_LINES, Form, Passage, offsets, passages, surface
from lookahead.views.forms.indented import indented
from lookahead.views.forms.numbered import listed

STRANGE = "\\\"'`/<>&|:+-@*nxtu01 \t\r\b\x00\x1b\x85é→😀\ud83d\udc00\u2028\xa0"
PIECES = st.sampled_from([*STRANGE, "\\n", "&lt;", "    ", "\\u000a"])
LINE = st.lists(PIECES, max_size=12).map("".join) | st.text(st.characters(exclude_characters="\n"), max_size=12)
LINES = st.lists(LINE, min_size=4, max_size=15)
PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
NAMES = [each.name for each in FORMS]
HOSTILE = st.text(st.sampled_from("\n\n\n\\\"'`~<>&;|:+-@* \t\r1Lnux→ab😀\ud83d"), max_size=300)


def has_content(lines: list[str]) -> bool:
    return sum(bool(line.strip()) for line in lines) >= LEAST_LINES


def least_spaces(lines: list[str]) -> int:
    return min(len(line) - len(line.lstrip(" ")) for line in lines if line not in ("", "\r"))


def read_back(name: str, lines: list[str], before: str = "", after: str = "", read_as: str = "") -> None:
    """Write lines, with text around, and read them: they come back, each with the place where its surface begins."""
    kind = form(name)
    assume(has_content(lines))
    written = kind.write(lines)
    text = before + kind.joint.join(written) + after
    found = [passage for passage in kind.read(text) if passage.lines == tuple(lines)]
    assert [passage.form for passage in found] == [read_as or name]
    assert list(found[0].starts) == offsets(written, len(before), len(kind.joint))


# ---- What every form keeps ----


@given(st.sampled_from(NAMES), st.lists(LINE, max_size=6))
def test_a_surface_holds_one_surface_line_for_each_line(name: str, lines: list[str]) -> None:
    kind = form(name)
    written = kind.write(lines)
    text, starts = surface(kind, lines)
    assert len(written) == len(starts) == len(lines)
    assert text == kind.lead + kind.joint.join(written)
    assert all(text.startswith(line, start) for line, start in zip(written, starts, strict=True))
    assert not any("\n" in line for line in written)


@given(st.sampled_from(NAMES), HOSTILE | st.text(max_size=300))
def test_reading_never_raises_and_points_into_the_text(name: str, text: str) -> None:
    for passage in form(name).read(text):
        assert form(passage.form).read is form(name).read
        assert has_content(list(passage.lines))
        assert not any("\n" in line for line in passage.lines)
        assert len(passage.starts) == len(passage.lines)
        assert 0 <= passage.starts[0] and passage.starts[-1] <= len(text)
        assert list(passage.starts) == sorted(passage.starts)


@pytest.mark.parametrize("name", NAMES)
def test_names_lead_to_forms(name: str) -> None:
    assert NAMES.count(name) == 1
    assert form(name).name == name
    assert form(name).read("") == form(name).read("a\nb\nc\n") == []
    assert surface(form(name), []) == (form(name).lead, [])


def test_an_unknown_name_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(ValueError, match="name is 'yaml'; allowed is one of plain, .*json2"):
        form("yaml")


def test_passages_need_three_lines_with_content() -> None:
    assert passages("plain", ["a", " ", "", "b", "\t"], [0, 2, 4, 5, 7]) == []
    assert passages("plain", ["a", "", "b", "c"], [0, 2, 3, 5]) == [Passage("plain", ("a", "", "b", "c"), (0, 2, 3, 5))]


# ---- Strings ----


@pytest.mark.parametrize(("name", "depth"), [("json", 1), ("json_ascii", 1), ("json2", 2)])
@given(st.lists(LINE, min_size=1))
def test_json_strings_say_what_the_lines_say(name: str, depth: int, lines: list[str]) -> None:
    text = "\n".join(lines)
    assume(not PAIR.search(text))  # two surrogates that make a character come back as that character
    written = form(name).joint.join(form(name).write(lines))
    assert written.isascii() or name != "json_ascii"
    for _ in range(depth):
        written = json.loads(f'"{written}"')
    assert written == text


@given(LINES, st.sampled_from(["", '{"path": "a.py", "content": "', 'cut off \\" here: "', 'one\ntwo: \'"x" "']))
def test_json_strings_are_read_also_when_cut_off(lines: list[str], before: str) -> None:
    assume(not any(map(PAIR.search, lines)))
    ascii_only = all(map(str.isascii, lines))
    read_back("json", lines, before, '", "a": 1}\n' if before else "", read_as="json")
    read_back("json_ascii", lines, before, '"' if before else "", read_as="json" if ascii_only else "json_ascii")


@given(LINES, st.sampled_from(["", '\\"', '\\"}"}}\nmore']))
def test_json_strings_in_json_strings_are_read(lines: list[str], after: str) -> None:
    assume(not any(map(PAIR.search, lines)))
    read_back("json2", lines, '<tool_call>\n{"arguments": "{\\"content\\": \\"', after)
    read_back("json2", lines, '{"arguments": "{\\n  \\"path\\": \\"a\\",\\n  \\"content\\": \\"', after)


def test_every_guise_of_an_escape_is_read_and_what_is_none_stays() -> None:
    text = r'"\ud83d\ude00\u00e9\n\/\b\f\r\t\n\x41\q\u12\n\U0001F600\U99999999\'\nend\u000aof\"\\\n"'
    found = form("json").read(text)
    expected = ("😀é", "/\b\f\r\t", "A\\q\\u12", "😀\\U99999999'", "end", 'of"\\', "")
    assert [passage.lines for passage in found] == [expected]
    assert [text[start:][:2] for start in found[0].starts] == ["\\u", "\\/", "\\x", "\\U", "en", "en", '"']


@given(LINES)
def test_literals_say_what_the_lines_say(lines: list[str]) -> None:
    text = surface(form("single"), lines)[0].removeprefix(form("single").lead)
    assert ast.literal_eval(f"'{text}'") == "\n".join(lines)
    assume(not any(map(PAIR.search, lines)))
    read_back("single", lines, "x = '", "'")


def test_apostrophes_within_double_quotes_begin_no_literal() -> None:
    def read(text: str) -> list[tuple[str, ...]]:
        return [passage.lines for passage in form("single").read(text)]

    assert read(r"""{"a": "f('x')\nb\nc\n d = 'e\n\n\n'\n"}""") == []
    assert read(r"""cut \" off: f('a\nb\nc = \"x\"\n d')""") == []
    assert read(r"""g("it's", 'a\nb\nc\n"d"', 'cut""") == [("a", "b", "c", '"d"')]
    assert read(r"""f('a\nb\nc\nd""") == [("a", "b", "c", "d")]


# ---- Prefixes ----


@pytest.mark.parametrize("name", ["numbered", "numbered_arrow", "numbered_bar", "numbered_column", "quoted"])
@given(LINES, st.sampled_from([("", ""), ("See:\n```\n", "\n```"), ("7\t\n\n", "\n\n"), ("> \n1:a\n2:b\n#\n", "\n")]))
def test_numbers_and_quotes_go(name: str, lines: list[str], around: tuple[str, str]) -> None:
    read_back(name, lines, *around)


@given(LINES)
def test_numbers_with_a_colon_go_where_the_space_behind_it_is_no_riddle(lines: list[str]) -> None:
    assume(has_content(lines))
    odd = least_spaces(lines) % 2 == 1
    if not odd or {"", "\r"} & {*lines}:
        read_back("numbered_colon", lines)
    if not odd:
        read_back("numbered_letter", lines)


def test_listings_as_they_are_met() -> None:
    def read(text: str) -> list[tuple[str, tuple[str, ...]]]:
        return [(passage.form, passage.lines) for passage in form("numbered").read(text)]

    assert read("   99 | a\n  100 |\n  101 |   b\n  105 | c") == [("numbered_column", ("a", "", "  b", "c"))]
    assert read("9:    def a():\n10:\n11:        b\n12:\n13:    c") == [
        ("numbered_colon", ("    def a():", "", "        b", "", "    c"))
    ]
    assert read("8: a\n9: b\n9: c\n10: d\n11: e\n") == [("numbered_colon", ("c", "d", "e"))]
    assert read("     1\ta\r\n     2\t\r\n     3\tb\n     4\tc") == [("numbered", ("a\r", "\r", "b", "c"))]
    assert read("1\ta\n2|b\n3: c\n4\td") == []
    assert read("L1\ta\nL2\tb\nL3\tc") == []


@given(
    st.sampled_from([("{}", "|"), ("{:6d}", "\t"), ("{}", ": "), ("{:4d}", " | "), ("L{}", ":")]),
    LINE,
    st.integers(0, 999),
)
def test_a_numbered_line_tells_how_to_number_the_next(style: tuple[str, str], line: str, number: int) -> None:
    head, mark = style
    said = [f"{head.format(number + after)}{mark}{line}" for after in (0, 1)]
    found = {one.content: one for one in listed(said[0])}
    assert found[line].number == number
    assert form(found[line].form).write([line, line]) == said


def test_what_has_no_number_is_no_line_of_a_listing() -> None:
    assert listed("") == listed("return 1") == listed("L1\ta") == listed("12345678: a") == []
    assert [(one.content, one.usual) for one in listed("7:  a")] == [("  a", ""), (" a", "numbered_colon")]
    assert [one.usual for one in listed("     7\ta")] == ["numbered"]


BORDERS = st.sampled_from(["", "```\n", "text\n\n", "Here it is:\n", "<file>\n"])


@given(LINES, st.sampled_from([1, 4, 8, "\t", " \t"]), BORDERS)
def test_a_shift_goes_where_a_line_was_not_indented(lines: list[str], by: int | str, before: str) -> None:
    kind = indented(by)
    prefix = kind.write(["x"])[0][:-1]
    lines = ["first", *(line for line in lines if line.strip(" \t\r") or not line.startswith(prefix)), "last"]
    assume(has_content(lines))
    text = before + "\n".join(kind.write(lines)) + "\nend"
    assert Passage(kind.name, tuple(lines), tuple(offsets(kind.write(lines), len(before)))) in kind.read(text)


def test_code_is_not_taken_for_shifted() -> None:
    code = "def a():\n    one\n    two\n    three\n\nif b:\n    one\n    two\n\n    three\n"
    assert form("indented_4").read(code) == []
    assert [passage.lines for passage in form("indented_4").read("\t\ta\n\t b\n\tc\n \n")] == [("\ta", " b", "c")]
    assert form("indented_8").write(["a", "", " \r"]) == ["        a", "", " \r"]
    assert form("indented_2t").write(["a"]) == ["\t\ta"]


# ---- Diffs ----


CHANGES = st.lists(st.tuples(st.sampled_from(["context", "removed", "added"]), LINE), min_size=4, max_size=15)
HEADS = ["@@ -1,9 +1,9 @@ def f():\n", "@@\n", "```diff\n", "*** Update File: a.py\n", "--- x\n+++ y\n@@ -1 +1 @@\n"]
TAILS = ["", "\n", "\n\\ No newline at end of file\n", "\n```\n x\n", "\n*** End Patch"]


@given(CHANGES, st.sampled_from(HEADS), st.sampled_from(TAILS))
def test_both_sides_of_a_diff_are_read(changes: list[tuple[str, str]], head: str, after: str) -> None:
    written = [form(sign).write([line])[0] for sign, line in changes]
    text = "\n".join(written)
    assume({"removed", "added"} & {sign for sign, _ in changes})
    assume("\n--- " not in "\n" + text or "\n+++ " not in text)  # as between two files
    starts = offsets(written, len(head))
    expected = []
    for side, other in (("removed", "added"), ("added", "removed")):
        kept = [(line, at) for (sign, line), at in zip(changes, starts, strict=True) if sign != other]
        if has_content([line for line, _ in kept]):
            expected.append(Passage(side, *(tuple(part) for part in zip(*kept, strict=True))))
    assert form("context").read(head + text + after) == expected


def test_hunks_of_a_file_are_one_passage_and_those_of_two_files_are_not() -> None:
    one = "@@ -1,2 +1,3 @@\n a\n\n-b\n+B\n@@ -9 +9 @@\n c\n"
    two = "--- a/y\n+++ b/y\n@@ -1 +1 @@\n-d\n-e\n-f\n\nThat is all.\n"
    found = [(passage.form, passage.lines) for passage in form("added").read(f"--- a/x\n+++ b/x\n{one}{two}")]
    assert found == [("removed", ("a", "", "b", "c")), ("added", ("a", "", "B", "c")), ("removed", ("d", "e", "f"))]


def test_a_patch_that_adds_a_file_has_one_side() -> None:
    text = "*** Begin Patch\n*** Add File: a.py\n+a\n+\n+b\n+c\n*** End Patch\n"
    assert form("added").read(text) == [Passage("added", ("a", "", "b", "c"), (35, 38, 40, 43))]


# ---- Fences and entities ----


@given(LINES, st.sampled_from(["```", "````", "~~~"]), st.sampled_from(["", "python", " {.py}"]), st.booleans())
def test_fences_go(lines: list[str], fence: str, language: str, ends: bool) -> None:
    assume(not any(line.lstrip(" \t").startswith(fence) for line in lines))
    before = f"Look:\n{fence}{language}\n"
    read_back("plain", lines, before, f"\n{fence}\nDone." if ends else "")


def test_fences_as_they_are_met() -> None:
    def read(text: str) -> list[tuple[str, ...]]:
        return [passage.lines for passage in form("plain").read(text)]

    assert read("````\n```\na\nb\n```\n````\n") == [("```", "a", "b", "```")]
    assert read("```\na\nb\nc\n```<|im_end|>\n~~~\nd\ne\nf\n~~~") == [("a", "b", "c"), ("d", "e", "f")]
    assert read("x ``` y\n```a`b\nc\nd\ne\n") == []


@pytest.mark.parametrize(("name", "quote"), [("entities", False), ("entities_quoted", True)])
@given(LINES)
def test_entities_go(name: str, quote: bool, lines: list[str]) -> None:
    written = form(name).write(lines)
    assert html.unescape("\n".join(written)) == "\n".join(lines)
    characters = "".join(lines)
    assume(sum(map(characters.count, "<>&" + "\"'" * quote)) >= 3)
    quoted = quote and {*"\"'"} & {*characters}
    clash = re.search("&(?:quot|apos|#39|#34|#x27|#x22);", "\n".join(written)) and not quoted
    assume(not clash)
    read_back(name, lines, "<content>\n", "\n</content>", read_as="entities_quoted" if quoted else "entities")


def test_far_entities_are_no_passage_and_stretches_end() -> None:
    far = [f"a &lt; {number}" if number % 30 == 0 else "plain" for number in range(300)]
    assert form("entities").read("\n".join(far)) == []
    near = ["word"] * 50 + ["a &lt; b", "c &amp;&amp; d", "e"] + ["word"] * 50
    (found,) = form("entities").read("\n".join([*near, "<x>", *near[:50]]))
    assert found.lines == (*near[30:50], "a < b", "c && d", *near[52:72])
    assert found.starts[0] == 5 * 30


def test_forms_are_plain_data() -> None:
    assert all(isinstance(each, Form) and isinstance(each.openings, tuple) for each in FORMS)

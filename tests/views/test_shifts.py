from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lookahead.views.shifts import Shifts

PASSAGE = ["def first():", "    return second()", "", "class Third:", "        fourth = fifth", "short"]
LINES = st.lists(st.text(alphabet=" \tabcdefgh", max_size=20), max_size=12)


def test_two_lines_in_a_row_that_moved_alike_tell_by_how_much() -> None:
    shifts = Shifts([PASSAGE])
    assert shifts.learn("    def first():") == []
    assert shifts.learn("        return second()") == [(0, 4)]
    assert shifts.learn("    class Third:") == []


def test_lines_that_moved_to_the_left() -> None:
    shifts = Shifts([["x"], PASSAGE])
    shifts.learn("return second()")
    assert shifts.learn("    fourth = fifth") == [(1, -4)]


def test_lines_that_did_not_move_moved_apart_or_are_short_or_unknown_tell_nothing() -> None:
    for said in (PASSAGE, ["  def first():", "return second()"], ["  short", "  short"], ["a stranger's line"] * 3):
        shifts = Shifts([PASSAGE])
        assert [found for line in said for found in shifts.learn(line)] == []


def test_the_passages_that_hold_a_line_as_it_is() -> None:
    shifts = Shifts([PASSAGE, ["x"], PASSAGE])
    assert shifts.holders("    return second()") == [0, 2]
    assert shifts.holders("return second()") == shifts.holders("short") == shifts.holders("a stranger's line") == []


@given(st.lists(LINES, max_size=3), LINES)
def test_any_lines_may_come_and_what_is_told_is_true(passages: list[list[str]], said: list[str]) -> None:
    shifts = Shifts(passages)
    for line in said:
        for passage, columns in shifts.learn(line):
            depth = len(line) - len(line.lstrip(" \t")) - columns
            assert columns != 0
            assert any(
                source.strip() == line.strip() and len(source) - len(source.lstrip(" \t")) == depth
                for source in passages[passage]
            )

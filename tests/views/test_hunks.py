from __future__ import annotations

import difflib

from hypothesis import given
from hypothesis import strategies as st

from lookahead.views.hunks import Hunks, Line, Say

LINES = st.lists(st.sampled_from(["a", "b", "", "  c", "- d", "@@"]), max_size=30)


def cut(text: bytes, sizes: list[int]) -> list[bytes]:
    """Cut a text into pieces of some sizes, the rest into single bytes."""
    pieces = []
    for size in sizes:
        pieces.append(text[:size])
        text = text[size:]
    return [*pieces, *(bytes([byte]) for byte in text)]


@given(LINES, LINES)
def test_says_where_a_hunk_begins_in_the_new_file_and_which_old_line_comes_first(
    old: list[str], new: list[str]
) -> None:
    diff = list(difflib.unified_diff(old, new, "a/f", "b/f", lineterm=""))
    hunks = Hunks()
    for number, line in enumerate(diff):
        if line.startswith("@@ -"):
            begin, end = line.split(" +")
            assert hunks.feed(f"{begin} +".encode()) == Say(end.split(" ")[0].split(",")[0] + ",") or ",0" in line
            guess = hunks.feed(f"{end}\n".encode())
            start, _, count = begin.removeprefix("@@ -").partition(",")
            assert guess == (None if count == "0" else Line("context", int(start) - 1))
        else:
            guess = hunks.feed(f"{line}\n".encode())
            ended = number + 1 == len(diff) or diff[number + 1].startswith("@@ -")
            assert (guess == Say("@@ -")) == (ended and number > 1)


@given(LINES, LINES, st.lists(st.integers(1, 9), max_size=40))
def test_the_end_of_a_hunk_is_seen_whatever_the_pieces(old: list[str], new: list[str], sizes: list[int]) -> None:
    diff = "".join(f"{line}\n" for line in difflib.unified_diff(old, new, "a/f", "b/f", lineterm=""))
    hunks, last = Hunks(), None
    for piece in cut(diff.encode(), sizes):
        last = hunks.feed(piece) if piece else last
    assert last == (Say("@@ -") if diff else None)


@given(st.lists(st.binary(max_size=20), max_size=10))
def test_any_text_may_come(pieces: list[bytes]) -> None:
    hunks = Hunks()
    for piece in pieces:
        hunks.feed(piece)


def test_a_new_file_starts_to_count_anew() -> None:
    hunks = Hunks()
    hunks.feed(b"--- a/f\n+++ b/f\n@@ -1,1 +1,3 @@\n a\n+b\n+c\n--- a/g\n+++ b/g\n")
    assert hunks.feed(b"@@ -5,2 +") == Say("5,")


def test_numbers_of_any_length_may_come() -> None:
    for pieces in ([b"@@ -" + b"9" * 5000 + b",1 +1,1 @@\n"], [b"@@ -" + b"9" * 5000, b",1 +", b"1,1 @@\n"]):
        hunks = Hunks()
        assert [hunks.feed(piece) for piece in pieces][-1] is None

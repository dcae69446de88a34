from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lookahead.views.openings import Opening, Watcher

TEXTS = st.text(alphabet="ab\né", min_size=1, max_size=4)


@given(st.sets(TEXTS, min_size=1, max_size=6), st.lists(st.text(alphabet="ab\né", max_size=9), max_size=12))
def test_finds_every_occurrence_whatever_the_pieces(openings: set[str], pieces: list[str]) -> None:
    watcher, found = Watcher(openings), list[Opening]()
    for piece in pieces:
        found += watcher.feed(piece.encode())
    data = "".join(pieces).encode()
    assert sorted((opening.end, opening.text) for opening in found) == sorted(
        (at + len(opening.encode()), opening)
        for opening in openings
        for at in range(len(data))
        if data[at:].startswith(opening.encode())
    )


@given(st.binary(max_size=40))
def test_any_bytes_may_come(data: bytes) -> None:
    watcher = Watcher(["é"])
    found = [opening for byte in data for opening in watcher.feed(bytes([byte]))]
    assert len(found) == data.count("é".encode())


def test_an_opening_may_begin_before_the_stream() -> None:
    assert Watcher(["b\na", "b"], b"b\n").feed(b"ab") == [Opening("b\na", 1), Opening("b", 2)]


def test_nothing_to_watch_for() -> None:
    assert Watcher([]).feed(b"abc") == []

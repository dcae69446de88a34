from __future__ import annotations

import sys
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookahead import Drafter
from lookahead.draft.recycling import KEPT, Successors
from lookahead.draft.recycling_kernels import SUCCESSOR, blend
from lookahead.tree import Accepted
from tests import twins


def as_dict(row: Any) -> dict[int, float]:
    return {int(one["token"]): float(one["share"]) for one in row if one["share"] > 0}


@st.composite
def heard(draw: st.DrawFn) -> list[tuple[int, list[int], list[float]]]:
    """Give tokens and what could have come after each, with different shares for any two."""
    chance = np.random.default_rng(draw(st.integers(0, 2**16)))
    rows = []
    for _ in range(draw(st.integers(1, 12))):
        width = draw(st.integers(1, KEPT))
        shares = np.sort(chance.dirichlet(np.ones(width)))[::-1].astype(np.float32)
        rows.append((draw(st.integers(0, 2)), chance.permutation(12)[:width].tolist(), shares.tolist()))
    return rows


@given(heard())
def test_blend(heard: list[tuple[int, list[int], list[float]]]) -> None:
    rows, expected = np.zeros((3, KEPT), SUCCESSOR), dict[int, dict[int, float]]()
    found = np.zeros((len(heard), KEPT), SUCCESSOR)
    for number, (token, successors, shares) in enumerate(heard):
        found[number, : len(shares)] = list(zip(successors, shares, strict=True))
        expected[token] = twins.blend(expected.get(token, {}), dict(zip(successors, shares, strict=True)), KEPT)
    blend(rows, np.array([token for token, *_ in heard], np.int32), found)
    for token in range(3):
        assert as_dict(rows[token]) == pytest.approx(expected.get(token, {}), rel=1e-5)
        assert (np.diff(rows[token]["share"]) <= 0).all()


def test_a_large_vocabulary_takes_less_than_16_megabytes() -> None:
    found = Successors()
    found.learn([149_999], np.arange(KEPT)[None], np.full((1, KEPT), 0.1, np.float32))
    assert 150_000 <= len(found.rows) and found.rows.nbytes < 16e6


def test_a_token_borrows_only_while_it_has_no_successors() -> None:
    found = Successors()
    for token in (4, 7):
        found.borrow(7, np.array([token, 5, 9]), np.array([0.5, 0.3, 0.2], np.float32))
    assert as_dict(found.rows[7]) == pytest.approx({4: 0.15, 5: 0.09, 9: 0.06})
    found.borrow(5, np.array([5, 9]), np.array([0.5, 0.3], np.float32))
    assert as_dict(found.rows[5]) == pytest.approx({9: 0.09})  # not itself


def said(tokens: list[int], nodes: list[int], successors: list[list[int]]) -> Accepted:
    """Give what a step said, and what might have been said behind nodes, each half as likely as the one before."""

    def told(count: int) -> Any:
        shares = np.broadcast_to(0.5 ** np.arange(1, len(successors[0]) + 1, dtype=np.float32), np.shape(successors))
        return nodes, np.array(successors)[:, :count], shares[:, :count]

    return Accepted(tokens, successors=told)


def test_a_drafter_drafts_what_might_have_been_said() -> None:
    for options, expected in (({}, 1), ({"recycling": False}, 0), ({"tree": False}, 0)):
        drafter = Drafter(cost="linear:0", budget=4, **options)  # type: ignore[arg-type]
        drafter.begin([1, 2, 3])
        drafter.accept(said([4], [-1], [[4, 5]]))
        drafter.accept(said([3], [-1], [[8, 9]]))
        draft = drafter.propose()
        assert draft.tokens[0] == 4 and draft.sources[0] == "output"
        assert draft.sources.count("recycled") == expected


def test_refused_tokens_are_heard_of_too() -> None:
    drafter = Drafter(cost="linear:0", budget=2)
    drafter.begin([1, 2, 3, 1])
    assert drafter.propose().tokens.tolist() == [2, 3]
    drafter.accept(said([5], [1, 0, -1], [[20, 21], [30, 31], [5, 6]]))
    assert as_dict(drafter.successors.rows[3]) == pytest.approx({20: 0.5, 21: 0.25})
    assert as_dict(drafter.successors.rows[2]) == pytest.approx({30: 0.5, 31: 0.25})
    assert as_dict(drafter.successors.rows[1]) == pytest.approx({5: 0.5, 6: 0.25})
    assert as_dict(drafter.successors.rows[5]) == pytest.approx({6: 0.075})  # borrowed
    drafter.begin([9])
    assert as_dict(drafter.successors.rows[3])  # kept for the next sequence


def test_threads_make_room_at_the_same_time() -> None:
    places, shares, failed = np.arange(KEPT), np.full(KEPT, 0.1, np.float32), list[Exception]()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(60):
            shared, gate = Successors(), threading.Barrier(6)

            def work(token: int, shared: Successors = shared, gate: threading.Barrier = gate) -> None:
                gate.wait()
                try:
                    shared.borrow(token, places, shares)
                except Exception as error:
                    failed.append(error)

            tokens = [16384 * number + 9 for number in range(6)]
            threads = [threading.Thread(target=work, args=(token,)) for token in tokens]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert not failed
            assert all(shared.rows[token]["share"][0] > 0 for token in tokens)
    finally:
        sys.setswitchinterval(interval)

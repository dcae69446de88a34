"""What is remembered can be found again, once, within its bytes, and the least recently useful goes first."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from lookahead.draft.remembered import Remembered
from lookahead.index.suffix_tree import SuffixTree

PLENTY = 10**8


def text(seed: int, size: int = 500) -> NDArray[np.int32]:
    return np.random.default_rng(seed).integers(0, 50_000, size).astype(np.int32)


@given(st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=8), min_size=1, max_size=12))
def test_every_text_can_be_copied_through_to_its_end(parts: list[list[int]]) -> None:
    """Whatever is cut out of a text because it is known, the places found along it say what it goes on with."""
    pieces = [text(seed, 70) for seed in range(6)]
    texts = [np.concatenate([pieces[one] for one in part]) for part in parts]
    memory = Remembered(PLENTY)
    for one in texts:
        memory.add(one)
    for one in texts:
        cursor = memory.cursor()
        for at in range(0, one.size - 1):
            cursor.advance(one[at : at + 1])
            places = cursor.candidates(32, 4)["position"]
            if at >= 32:
                assert one[at + 1] in memory.tokens[places]


def test_what_is_known_is_not_taken_in_again() -> None:
    memory, first = Remembered(PLENTY), text(1, 2000)
    memory.add(first)
    memory.add(first)
    assert memory.tokens.size == 2001
    changed = first.copy()
    changed[1000] = 60_000
    memory.add(changed)
    assert memory.tokens.size == 2001 + 513 + 1
    memory.add(np.concatenate((first[:900], text(2, 100), first[900:])))
    assert memory.tokens.size == 2515 + 612 + 1


@pytest.mark.parametrize("size", [100, 400, 4000])
def test_bytes_stay_within_the_cap_and_the_latest_stays(size: int) -> None:
    memory = Remembered(200_000)
    for seed in range(100):
        memory.add(text(seed, size))
        assert memory.nbytes <= 200_000
        cursor = memory.cursor()
        assert cursor.advance(text(seed, size)[-32:])[1][-1] == 32
    assert memory.epoch > 0


def test_no_more_is_taken_in_than_may_fit_and_the_latest_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    taken, real = list[int](), SuffixTree.take

    def take(self: SuffixTree, tokens: NDArray[np.int32]) -> None:
        taken.append(tokens.size)
        real(self, tokens)

    monkeypatch.setattr(SuffixTree, "take", take)
    memory, long = Remembered(200_000), text(0, 400_000)
    memory.add(long)
    assert taken[0] <= 200_000 // 4
    assert memory.cursor().advance(long[-64:])[1][-1] == 64
    other = Remembered(200_000)
    taken.clear()
    other.fill([text(seed, 4000) for seed in range(100)])
    assert sum(taken) <= 200_000 // 4 * 2
    assert other.cursor().advance(text(99, 4000)[-64:])[1][-1] == 64
    assert max(memory.nbytes, other.nbytes) <= 200_000


def test_the_least_recently_useful_goes_first() -> None:
    memory = Remembered(500_000)
    memory.add(text(0, 1000))
    for seed in range(1, 40):
        before = memory.epoch
        place = memory.cursor().advance(text(0, 1000)[:32])[0][-1]
        memory.touch(int(place) - 1)  # useful again and again
        memory.add(text(seed, 1000))
        assert before <= memory.epoch
    assert memory.epoch > 0
    assert memory.cursor().advance(text(0, 1000))[1][-1] == 1000
    assert memory.cursor().advance(text(1, 1000))[1][-1] < 10


def test_passages_fill_another_in_the_same_order() -> None:
    memory, other = Remembered(PLENTY), Remembered(PLENTY)
    for seed in (1, 2, 3):
        memory.add(text(seed))
    memory.touch(3)
    other.fill(memory.passages())
    assert [passage.tolist() for passage in other.passages()] == [text(seed).tolist() for seed in (2, 3, 1)]

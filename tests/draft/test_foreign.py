"""What other texts offer really stands there, and matches what was said."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from lookahead.draft.foreign import Foreign, Recalled
from lookahead.draft.remembered import Remembered
from lookahead.index.static_corpus import Document, StaticCorpus, build


def text(seed: int, size: int = 300) -> NDArray[np.int32]:
    return np.random.default_rng(seed).integers(0, 50_000, size).astype(np.int32)


def remembered(*texts: NDArray[np.int32]) -> Remembered:
    memory = Remembered(10**8)
    for one in texts:
        memory.add(one)
    return memory


@pytest.fixture(params=["memory", "corpus"])
def foreign(request: pytest.FixtureRequest, tmp_path: Path) -> Foreign:
    if request.param == "memory":
        return Recalled("session", remembered(text(1), text(2)), threading.RLock())
    build([Document(str(seed), text(seed)) for seed in (1, 2)], tmp_path / "c.lkh", "")
    return Foreign("corpus:c", StaticCorpus.open(tmp_path / "c.lkh"))


def test_what_is_offered_goes_on_behind_what_was_said(foreign: Foreign) -> None:
    foreign.hear(text(1)[:50].tolist())
    best, *_ = foreign.offers(4, 20)
    assert (best.match_length, best.excerpt.tolist()) == (50, text(1)[50:70].tolist())
    foreign.hear(text(2)[:290].tolist())
    best, *_ = foreign.offers(4, 20)
    assert (best.match_length >= 64, best.excerpt.tolist()) == (True, text(2)[290:].tolist())  # up to the border
    foreign.hear([1])
    assert foreign.offers(4, 20) == []


def test_a_copy_that_goes_on_goes_on(foreign: Foreign, monkeypatch: pytest.MonkeyPatch) -> None:
    foreign.hear(text(1)[:50].tolist())
    best, *_ = foreign.offers(4, 20)
    foreign.took(best.position + 9)
    foreign.hear(text(1)[50:61].tolist())  # ten of the draft, and the model's own
    if not isinstance(foreign, Recalled):
        monkeypatch.delattr(type(foreign._cursor), "candidates")  # a corpus is not searched for it
    offers = foreign.offers(4, 20)
    assert max(offer.match_length for offer in offers) == 61
    assert all(offer.excerpt.tolist() == text(1)[61:81].tolist() for offer in offers)


def test_behind_a_change_a_copy_goes_on_close_by(foreign: Foreign) -> None:
    foreign.hear(text(1)[:50].tolist())
    best, *_ = foreign.offers(4, 20)
    foreign.took(best.position + 4)
    foreign.hear([*text(1)[50:55].tolist(), 7, 7, int(text(1)[60])])  # other tokens in the place of some
    (offer,) = foreign.offers(4, 20)
    assert (offer.match_length, offer.excerpt.tolist()) == (1, text(1)[61:81].tolist())


def test_what_moved_meanwhile_is_found_again() -> None:
    memory, lock = Remembered(100_000), threading.RLock()
    memory.add(text(1))
    recalled = Recalled("session", memory, lock)
    recalled.hear(text(1)[:50].tolist())
    position = recalled.offers(4, 8)[0].position
    recalled.took(position)
    for seed in range(2, 30):
        memory.touch(memory.cursor().advance(text(1)[:40])[0][-1] - 1)
        memory.add(text(seed))
    assert memory.epoch > 0
    recalled.took(position)  # of another epoch: not believed
    recalled.hear(text(1)[50:60].tolist())
    best, *_ = recalled.offers(4, 8)
    assert (best.match_length, best.excerpt.tolist()) == (60, text(1)[60:68].tolist())


def test_of_the_versions_of_a_text_the_latest_is_followed() -> None:
    old, new = text(1, 2000), text(1, 2000)
    new[1000] = 60_000
    recalled = Recalled("session", remembered(old, new), threading.RLock())
    for at in range(900, 1100, 10):
        recalled.hear(new[at : at + 10].tolist())
        best, *_ = recalled.offers(4, 20)
        recalled.took(best.position)
        if at >= 960:
            assert best.excerpt[:5].tolist() == new[at + 10 : at + 15].tolist()


@given(
    st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=40), min_size=1, max_size=4),
    st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=12), min_size=1, max_size=6),
    st.integers(1, 5),
)
def test_every_offer_is_true(texts: list[list[int]], steps: list[list[int]], least: int) -> None:
    memory, said = remembered(*(np.array(one, np.int32) for one in texts)), list[int]()
    recalled = Recalled("session", memory, threading.RLock())
    for step in steps:
        said += step
        recalled.hear(step)
        for number, offer in enumerate(recalled.offers(least, 10)):
            end, length = offer.position, offer.match_length
            assert memory.tokens[end - length : end].tolist() == said[len(said) - length :]
            held = memory.tokens[end : end + 10].tolist()
            assert offer.excerpt.tolist() == held[: (held + [-1]).index(-1)] != []
            assert length >= least or number == 0
            if number == 0:
                recalled.took(end)

from __future__ import annotations

import copy
import gc
import weakref
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookahead import Accepted, Draft, Drafter, Lookahead
from lookahead.index.corpus import SMALLEST_CAP
from tests.vocabularies import KINDS, SAMPLE, vocabulary

PROMPTS = st.lists(st.integers(0, 4), min_size=1, max_size=40)
PASSAGE = [*range(100, 160)]
OTHER = [*range(200, 230)]


@st.composite
def rounds(draw: st.DrawFn) -> list[tuple[list[float], int, bool]]:
    """Give for each step: which of the draft's nodes are accepted, one token of the target's own, and its budget."""
    step = st.tuples(st.lists(st.floats(0, 0.99), max_size=6), st.integers(0, 4), st.integers(0, 30))
    return draw(st.lists(step, min_size=1, max_size=8))


def answer(draft: Draft, turns: list[float], own: int) -> Accepted:
    """Go down a draft, at each fork by the next number, and end with a token that is no child there."""
    children, path = draft.children(), list[int]()
    for turn in turns:
        here = sorted(children[path[-1] + 1 if path else 0].values())
        if not here:
            break
        path.append(here[int(turn * len(here))])
    taken = children[path[-1] + 1 if path else 0]
    bonus = next(token for token in [*range(own, 99)] if token not in taken)
    return Accepted([*draft.tokens[path].tolist(), bonus], path)


def same(one: Draft, other: Draft) -> bool:
    arrays = ("tokens", "parents", "probs")
    return one.sources == other.sources and all(
        np.array_equal(getattr(one, name), getattr(other, name)) for name in arrays
    )


@given(PROMPTS, rounds(), st.integers(0, 20), st.sampled_from([0, 0.002, 0.03, 0.5]), st.booleans())
def test_every_draft_is_well_formed(prompt: list[int], steps: list[Any], most: int, slope: float, tree: bool) -> None:
    drafter = Drafter(budget=most, cost=f"linear:{slope}", tree=tree)
    drafter.begin(prompt)
    for turns, own, budget in steps:
        draft = drafter.propose(budget)
        assert len(draft) <= min(budget, most)
        assert (draft.tokens.dtype, draft.parents.dtype, draft.probs.dtype) == (np.int32, np.int32, np.float32)
        assert all(-1 <= parent < node for node, parent in enumerate(draft.parents.tolist()))
        pairs = list(zip(draft.parents.tolist(), draft.tokens.tolist(), strict=True))
        assert len(set(pairs)) == len(pairs), "siblings carry different tokens"
        for prob, parent in zip(draft.probs.tolist(), draft.parents.tolist(), strict=True):
            assert 0 < prob <= 1
            assert prob <= (draft.probs[parent] if parent >= 0 else 1)
        assert set(draft.sources) <= {"prompt", "output"}
        assert tree or draft.is_chain
        drafter.accept(answer(draft, turns, own))


@given(PROMPTS, rounds(), st.booleans())
def test_token_ids_say_as_much_as_an_accepted(prompt: list[int], steps: list[Any], tree: bool) -> None:
    one, other = Drafter(cost="linear:0", tree=tree), Drafter(cost="linear:0", tree=tree)
    one.begin(prompt)
    other.begin(np.array(prompt))
    for turns, own, budget in steps:
        draft = one.propose(budget)
        assert same(draft, other.propose(budget))
        accepted = answer(draft, turns, own)
        one.accept(accepted)
        other.accept(np.array(accepted.tokens))
    assert same(one.propose(), other.propose())


@given(PROMPTS, PROMPTS, rounds())
def test_begin_forgets_the_earlier_sequence(prompt: list[int], earlier: list[int], steps: list[Any]) -> None:
    used, fresh = Drafter(cost="linear:0"), Drafter(cost="linear:0")
    used.begin(earlier)
    for turns, own, budget in steps:
        used.accept(answer(used.propose(budget), turns, own))
    used.begin(prompt)
    fresh.begin(prompt)
    fresh.calibration, fresh.policy = copy.deepcopy((used.calibration, used.policy))
    for turns, own, budget in steps:
        draft = fresh.propose(budget)
        assert same(used.propose(budget), draft)
        for drafter in (used, fresh):
            drafter.accept(answer(draft, turns, own))


@given(PROMPTS, st.integers(0, 30))
def test_proposing_twice_gives_the_same(prompt: list[int], budget: int) -> None:
    drafter = Drafter(cost="linear:0")
    drafter.begin(prompt)
    first = drafter.propose(budget)
    drafter.propose(1)
    assert same(drafter.propose(budget), first)


@given(st.integers(0, 2**31 - 1), st.integers(2, 50), st.integers(1, 64))
def test_one_token_again_and_again_is_drafted_to_the_budget(token: int, times: int, budget: int) -> None:
    drafter = Drafter(cost="linear:0")
    drafter.begin([token] * times)
    draft = drafter.propose(budget)
    assert draft.tokens.tolist() == [token] * budget
    assert draft.is_chain


@pytest.mark.parametrize("tree", [False, True])
def test_after_a_clean_copy_the_draft_is_the_rest_of_the_passage(tree: bool) -> None:
    drafter = Drafter(tree=tree)
    drafter.begin([*PASSAGE, *OTHER])
    drafter.accept(PASSAGE[:20])
    assert drafter.propose(30).tokens.tolist() == PASSAGE[20:50]
    drafter.accept([*PASSAGE[20:50], PASSAGE[50]])
    assert drafter.propose(5).tokens.tolist() == PASSAGE[51:56]


def test_after_a_substitution_the_copy_goes_on_behind_it() -> None:
    drafter = Drafter(cost="linear:0")
    drafter.begin([*PASSAGE, *OTHER])
    drafter.accept(PASSAGE[:20])
    drafter.propose(10)
    drafter.accept([*PASSAGE[20:25], 999])
    drafter.accept([PASSAGE[26]])
    assert drafter.propose(5).tokens.tolist() == PASSAGE[27:32]


def test_of_several_places_near_equals_the_one_behind_the_copy_comes_first() -> None:
    block = [1, 2, 3]
    prompt = [*block, 10, *PASSAGE[:20], *block, 11, *OTHER, *block, 12, 50]
    drafter = Drafter(cost="linear:0")
    drafter.begin(prompt)
    drafter.accept(PASSAGE[:10])
    draft = drafter.propose(10)
    drafter.accept([*draft.tokens.tolist(), 1, 2, 3])
    assert drafter.propose(1).tokens.tolist() == [11]


def test_sources_are_named() -> None:
    drafter = Drafter(cost="linear:0")
    drafter.begin(PASSAGE)
    drafter.accept(PASSAGE[:5])
    assert set(drafter.propose(5).sources) == {"prompt"}
    drafter.accept([*OTHER, *OTHER[:5]])
    assert set(drafter.propose(5).sources) == {"output"}


def test_origins_are_places_in_the_source_and_lengths_of_the_match() -> None:
    drafter = Drafter(cost="linear:0", tree=False)
    drafter.begin([9, 1, 2, 3, 4, 5, 8, 1, 2, 3])
    draft = drafter.propose(3)
    places, lengths = drafter.origins(draft)
    assert (draft.tokens.tolist(), places.tolist(), lengths.tolist()) == ([4, 5, 8], [4, 5, 6], [3, 4, 5])
    places, lengths = drafter.origins(Draft.chain([7, 7]))
    assert places.tolist() == lengths.tolist() == [-1, -1]
    drafter.accept([30, 30, 30, 30])
    draft = drafter.propose(4)  # the copy meets the end of the text, and repeats itself
    places, lengths = drafter.origins(draft)
    assert draft.tokens.tolist() == [30] * 4 and set(draft.sources) == {"output"}
    assert places.tolist() == [3] * 4 and lengths.tolist() == [3, 4, 5, 6]


def test_without_anything_to_copy_the_draft_is_empty() -> None:
    drafter = Drafter()
    assert len(drafter.propose()) == 0
    drafter.begin([])
    assert len(drafter.propose()) == 0
    drafter.begin([1, 2, 3])
    assert len(drafter.propose()) == 0
    drafter.accept([])
    assert len(drafter.propose()) == 0


def test_the_budget_of_one_step_never_passes_the_option() -> None:
    drafter = Drafter(budget=3)
    drafter.begin([*PASSAGE, *PASSAGE[:30]])
    assert [len(drafter.propose(budget)) for budget in (None, 0, 1, 3, 4, 10**9)] == [3, 0, 1, 3, 3, 3]
    nothing = Drafter(budget=0)
    nothing.begin([1, 1, 1, 1])
    assert len(nothing.propose()) == len(nothing.propose(5)) == 0


def test_a_cap_on_bytes_forgets_the_oldest_and_goes_on_drafting() -> None:
    capped, free = Drafter(max_bytes=SMALLEST_CAP), Drafter()
    random = np.random.default_rng(0)
    noise = random.integers(1000, 50_000, 6000)
    for drafter in (capped, free):
        drafter.begin([*PASSAGE, *noise, *OTHER])
        drafter.accept(PASSAGE[:20])
    assert len(capped.propose()) == 0
    assert free.propose(64).tokens.tolist() == PASSAGE[20:60] + noise[:24].tolist()
    for _ in range(300):  # eviction while drafts are accepted
        capped.accept([*capped.propose().tokens.tolist(), *random.integers(1000, 50_000, 10), *OTHER[:6]])
        assert capped.propose(4).tokens.tolist() == OTHER[6:10] or len(capped.propose(4)) > 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_tokenizer_lets_it_begin_with_text(kind: str) -> None:
    drafter, other = Drafter(vocabulary(kind)), Drafter(vocabulary(kind))
    drafter.begin(SAMPLE)
    other.begin(vocabulary(kind)(SAMPLE, add_special_tokens=False)["input_ids"])
    assert same(drafter.propose(), other.propose())


def test_what_is_no_tokenizer_is_refused() -> None:
    with pytest.raises(TypeError, match="str is no tokenizer; allowed is a fast tokenizer of transformers"):
        Drafter("gpt2")
    with pytest.raises(TypeError, match="str is no tokenizer"):
        Lookahead("gpt2")


def test_the_tokenizer_within_a_processor_is_found() -> None:
    class Processor:
        tokenizer = vocabulary("byte_level")

    Drafter(Processor()).begin(SAMPLE)


def test_text_without_a_tokenizer_is_refused() -> None:
    with pytest.raises(ValueError, match="got text but no tokenizer; pass token ids, or make the Drafter"):
        Drafter().begin("some text")


def test_a_negative_budget_is_refused() -> None:
    drafter = Drafter()
    drafter.begin([1, 1, 1])
    with pytest.raises(ValueError, match="budget=-1 is negative; allowed is 0"):
        drafter.propose(-1)


BAD_IDS = [
    ([-1], "token ids run from -1 to -1"),
    ([2**31], "token ids run from 2147483648"),
    ([[1, 2]], "one dimension is allowed"),
    ([1.5], "integers are allowed"),
    (5, "one dimension is allowed"),
]


@pytest.mark.parametrize(("ids", "message"), BAD_IDS, ids=str)
def test_ids_that_are_none_are_refused_and_change_nothing(ids: Any, message: str) -> None:
    drafter = Drafter()
    drafter.begin([*PASSAGE, *PASSAGE[:20]])
    before = drafter.propose(5)
    for call in (drafter.begin, drafter.accept):
        with pytest.raises(ValueError, match=message):
            call(ids)
    assert same(drafter.propose(5), before)
    assert before.tokens.tolist() == PASSAGE[20:25]


def test_accept_before_begin_is_refused() -> None:
    with pytest.raises(RuntimeError, match="call begin"):
        Drafter().accept([1])


def test_torch_ids_are_taken() -> None:
    torch = pytest.importorskip("torch")
    drafter = Drafter()
    drafter.begin(torch.tensor([1, 2, 3, 4, 1, 2, 3]))
    drafter.accept(torch.tensor([4, 1]))
    assert drafter.propose(2).tokens.tolist() == [2, 3]


@pytest.mark.parametrize("budget", [1.5, "a", True])
def test_a_budget_of_another_type_is_refused(budget: object) -> None:
    drafter = Drafter()
    drafter.begin([1, 1, 1])
    with pytest.raises(TypeError, match="budget=.*allowed is an int, 0 and above"):
        drafter.propose(budget)  # type: ignore[arg-type]


def test_ids_beyond_the_vocabulary_are_never_drafted() -> None:
    drafter = Drafter()
    drafter.begin([1, 2, 3, 400, 5, 1, 2], prediction=[300])
    drafter.vocabulary = 300
    assert drafter.propose(4).tokens.tolist() == [3]


def test_a_tokenizer_is_not_kept_alive() -> None:
    tokenizer = copy.deepcopy(vocabulary("byte_level"))
    seen = weakref.ref(tokenizer)
    Drafter(tokenizer).begin(SAMPLE)
    del tokenizer
    gc.collect()
    assert seen() is None

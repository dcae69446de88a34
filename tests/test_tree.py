from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookahead import Accepted, Draft
from tests.trees import draft_of, drafts, path_to, tree

DRAFT = tree({5: {6: {7: {}}, 8: {}}, 9: {}})


def test_the_empty_draft_has_nothing() -> None:
    draft = Draft.empty()
    assert len(draft) == 0
    assert draft.is_chain
    assert draft.children() == [{}]
    assert draft.follow([1, 2]) == []
    assert draft.depths.shape == (0,)
    assert draft.ancestors.shape == (0, 0)
    assert draft.truncate(0) is draft


def test_a_chain_is_a_tree_with_one_branch() -> None:
    draft = Draft.chain([4, 5, 5])
    assert draft.parents.tolist() == [-1, 0, 1]
    assert draft.probs.tolist() == [1, 1, 1]
    assert draft.sources == ("prompt",) * 3
    assert draft.is_chain
    assert [array.dtype for array in (draft.tokens, draft.parents, draft.probs)] == [np.int32, np.int32, np.float32]


def test_a_chain_takes_probabilities_and_a_source() -> None:
    draft = Draft.chain(np.array([4, 5]), probs=[0.5, 0.25], source="output")
    assert draft.probs.tolist() == [0.5, 0.25]
    assert draft.sources == ("output", "output")
    with pytest.raises(ValueError, match="of one length, got 2, 2, 1 and 2"):
        Draft.chain([4, 5], probs=[0.5])


def test_fields_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="tokens, parents, probs and sources of one length, got 1, 1, 1 and 0"):
        Draft(np.zeros(1, np.int32), np.zeros(1, np.int32), np.zeros(1, np.float32), ())


def test_a_draft_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        DRAFT.tokens = np.zeros(1, np.int32)  # type: ignore[misc]


def test_a_written_tree() -> None:
    assert DRAFT.tokens.tolist() == [5, 6, 7, 8, 9]
    assert DRAFT.parents.tolist() == [-1, 0, 1, 0, -1]
    assert DRAFT.depths.tolist() == [1, 2, 3, 2, 1]
    assert DRAFT.children() == [{5: 0, 9: 4}, {6: 1, 8: 3}, {7: 2}, {}, {}, {}]
    assert not DRAFT.is_chain
    assert DRAFT.ancestors[2].tolist() == [True, True, True, False, False]


def test_follow_stops_at_the_first_token_that_is_no_child() -> None:
    assert DRAFT.follow([5, 6, 7]) == [0, 1, 2]
    assert DRAFT.follow([5, 8, 7]) == [0, 3]
    assert DRAFT.follow([9, 6]) == [4]
    assert DRAFT.follow([6]) == []
    assert DRAFT.follow([]) == []


@given(drafts())
def test_depths_and_ancestors_are_those_found_by_climbing(draft: Draft) -> None:
    for node in range(len(draft)):
        path = path_to(draft, node)
        assert draft.depths[node] == len(path)
        assert np.flatnonzero(draft.ancestors[node]).tolist() == path


@given(drafts())
def test_every_node_is_found_by_following_its_path(draft: Draft) -> None:
    for node in range(len(draft)):
        path = path_to(draft, node)
        assert draft.follow([*draft.tokens[path].tolist(), 999]) == path
    assert sum(len(children) for children in draft.children()) == len(draft)


@given(drafts())
def test_only_a_draft_without_a_fork_is_a_chain(draft: Draft) -> None:
    in_order = all(parent == node - 1 for node, parent in enumerate(draft.parents.tolist()))
    assert draft.is_chain == in_order


@given(drafts(), st.integers(0, 14))
def test_truncating_keeps_the_first_nodes_as_they_were(draft: Draft, budget: int) -> None:
    short = draft.truncate(budget)
    count = min(budget, len(draft))
    assert len(short) == count
    assert short.tokens.tolist() == draft.tokens[:count].tolist()
    assert short.parents.tolist() == draft.parents[:count].tolist()
    assert short.sources == draft.sources[:count]
    assert all(parent < node for node, parent in enumerate(short.parents.tolist()))


def test_all_tokens_but_the_last_stay_in_the_cache() -> None:
    assert Accepted([5, 6, 99], path=[0, 1]).cached == [0, 1]
    assert Accepted([5, 6], path=[0, 1], finished=True).cached == [0]
    assert Accepted([99]).cached == []
    assert Accepted([]).cached == []
    assert Accepted([5], path=[0], finished=True).cached == []
    assert not Accepted([99]).finished


def test_tokens_far_beyond_any_vocabulary_are_kept() -> None:
    assert draft_of([2**31 - 1], [-1]).follow([2**31 - 1]) == [0]


@given(drafts(), st.integers(0, 14), st.integers(1, 70), st.booleans())
def test_a_draft_is_sound_up_to_its_first_fault(draft: Draft, budget: int, vocabulary: int, branches: bool) -> None:
    rows = list(enumerate(zip(draft.tokens.tolist(), draft.parents.tolist(), strict=True)))
    faults = [node for node, (token, parent) in rows if token >= vocabulary or not (branches or parent == node - 1)]
    sound = draft.sound(vocabulary, budget, branches)
    assert len(sound) == min([budget, len(draft), *faults])
    assert sound.tokens.tolist() == draft.tokens[: len(sound)].tolist()
    assert sound is draft or len(sound) < len(draft)


@pytest.mark.parametrize("token", [-1, -(2**31), 61, 2**31 - 1])
def test_what_is_no_token_of_the_model_is_not_sound(token: int) -> None:
    assert len(draft_of([5, token, 6], [-1, 0, 0]).sound(61, 9, True)) == 1


@pytest.mark.parametrize("parent", [1, 2, 2**31 - 1, -2, -(2**31)])
def test_a_parent_that_does_not_stand_before_its_child_is_not_sound(parent: int) -> None:
    for branches in (True, False):
        assert len(draft_of([5, 6, 7], [-1, parent, 1]).sound(61, 9, branches)) == 1

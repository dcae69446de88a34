from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from lookahead import Draft
from lookahead.verify.sequence import Sequence

ACTIONS = st.lists(
    st.tuples(st.just("append"), st.integers(0, 99))
    | st.tuples(st.just("ids"), st.none())
    | st.tuples(st.just("drafted"), st.integers(0, 400)),
    max_size=40,
)


@given(st.integers(0, 300), ACTIONS)
def test_it_behaves_like_a_list_and_known_tokens_never_change(length: int, actions: list[tuple[str, int]]) -> None:
    prompt = torch.arange(length)[None]
    sequence, known, views = Sequence(prompt), list(range(length)), []
    for action, value in actions:
        if action == "append":
            sequence.append(value)
            known.append(value)
        elif action == "ids":
            views.append((sequence.ids, list(known)))
        else:
            draft = [7] * value
            assert sequence.drafted(Draft.chain(draft)).tolist() == [known + draft]
        assert len(sequence) == len(known)
    assert sequence.ids.tolist() == [known]
    assert all(view.tolist() == [then] for view, then in views)


def test_views_outlive_growth_of_the_buffer() -> None:
    sequence = Sequence(torch.zeros(1, 3, dtype=torch.long))
    first = sequence.ids
    for token in range(5000):
        sequence.append(token)
        if token % 97 == 0:
            sequence.drafted(Draft.chain([1] * 300))
    assert first.tolist() == [[0, 0, 0]]
    assert sequence.ids.tolist() == [[0, 0, 0, *range(5000)]]


def test_a_draft_is_not_known() -> None:
    sequence = Sequence(torch.tensor([[4, 5]]))
    assert sequence.drafted(Draft.chain([6, 7])).tolist() == [[4, 5, 6, 7]]
    assert len(sequence) == 2
    sequence.append(8)
    assert sequence.ids.tolist() == [[4, 5, 8]]


def test_the_callers_ids_are_copied() -> None:
    prompt = torch.tensor([[4, 5]])
    sequence = Sequence(prompt)
    sequence.append(6)
    prompt[0, 0] = 99
    assert sequence.ids.tolist() == [[4, 5, 6]]
    assert prompt.tolist() == [[99, 5]]


def test_ids_are_of_64_bits_as_those_of_generate() -> None:
    sequence = Sequence(torch.tensor([[4, 5]], dtype=torch.int32))
    sequence.append(6)
    assert sequence.ids.dtype == torch.int64


def test_no_prompt_at_all() -> None:
    sequence = Sequence(torch.zeros(1, 0, dtype=torch.long))
    assert sequence.ids.shape == (1, 0)
    sequence.append(3)
    assert sequence.drafted(Draft.empty()).tolist() == [[3]]

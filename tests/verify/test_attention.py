from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lookahead import Draft
from lookahead.verify.attention import position_offsets, tree_mask, within_window
from tests.models import prompt, tiny
from tests.trees import drafts, path_to, tree

DTYPES = st.sampled_from([torch.bool, torch.float32, torch.float64, torch.bfloat16])


@given(st.lists(drafts(), min_size=1, max_size=3), st.integers(0, 6), st.integers(0, 2**16), DTYPES)
def test_the_mask_is_the_one_of_an_obvious_loop(trees: list[Draft], width: int, seed: int, dtype: torch.dtype) -> None:
    past = torch.rand(len(trees), width, generator=torch.Generator().manual_seed(seed)) < 0.5
    mask, count = tree_mask(trees, past, dtype), max(len(draft) for draft in trees) + 1
    assert mask.shape == (len(trees), 1, count, width + count)
    assert mask.dtype == dtype
    for row, draft in enumerate(trees):
        for token in range(count):
            seen = {token}  # what fills up sees itself
            if 0 < token <= len(draft):
                seen = {0, *(node + 1 for node in path_to(draft, token - 1))}
            expected = [*past[row].tolist(), *(other in seen for other in range(count))]
            if dtype == torch.bool:
                assert mask[row, 0, token].tolist() == expected
            else:
                hidden = torch.finfo(dtype).min
                assert mask[row, 0, token].tolist() == [0.0 if one else hidden for one in expected]


@given(st.lists(drafts(), min_size=1, max_size=3), st.integers(1, 6), st.integers(0, 2**16), st.integers(1, 9), DTYPES)
def test_a_window_counts_the_tokens_of_each_path(
    trees: list[Draft], width: int, seed: int, window: int, dtype: torch.dtype
) -> None:
    past = torch.rand(len(trees), width, generator=torch.Generator().manual_seed(seed)) < 0.5
    mask = tree_mask(trees, past, dtype)
    found = within_window(mask, trees, past, window)
    shown = True if dtype == torch.bool else 0.0
    for row, draft in enumerate(trees):
        live = [slot for slot in range(width) if past[row, slot]]
        for token in range(len(draft) + 1):
            path = [0, *(node + 1 for node in path_to(draft, token - 1))] if token else [0]
            expected = {*live, *(width + one for one in path)} & set([*live, *(width + one for one in path)][-window:])
            assert {slot for slot in range(found.shape[-1]) if found[row, 0, token, slot] == shown} == expected


@given(drafts(), st.integers(0, 5))
def test_a_chain_and_no_draft_have_the_causal_mask(draft: Draft, past: int) -> None:
    for chain in (Draft.empty(), Draft.chain(draft.tokens)):
        rows = len(chain) + 1
        causal = torch.ones(rows, past + rows, dtype=torch.bool).tril(past)
        assert torch.equal(tree_mask([chain], torch.ones(1, past, dtype=torch.bool), torch.bool)[0, 0], causal)


@given(st.lists(drafts(), min_size=1, max_size=3))
def test_offsets_are_0_for_the_last_known_token_then_the_depths(trees: list[Draft]) -> None:
    offsets, count = position_offsets(trees), max(len(draft) for draft in trees)
    assert offsets.dtype == torch.int64
    for draft, row in zip(trees, offsets.tolist(), strict=True):
        depths = [len(path_to(draft, node)) for node in range(len(draft))]
        assert row == [0, *depths, *[0] * (count - len(draft))]


def whole_tree(model: Any, known: torch.Tensor, draft: Draft) -> torch.Tensor:
    """Return the logits behind the last known token and each node, in one forward without a cache."""
    ids = torch.cat([known, torch.from_numpy(draft.tokens).long()[None]], dim=1)
    past = known.shape[1] - 1
    rows = ids.shape[1]
    mask = torch.ones(rows, rows, dtype=torch.bool).tril()
    mask[past:] = tree_mask([draft], torch.ones(1, past, dtype=torch.bool), torch.bool)[0, 0]
    positions = torch.cat([torch.arange(past), past + position_offsets([draft])[0]])[None]
    if model.config._attn_implementation == "eager":
        mask = torch.where(mask, 0.0, -1e30).to(model.dtype)
    with torch.no_grad():
        return model(input_ids=ids, attention_mask=mask[None, None], position_ids=positions).logits[0, past:]


# A float64 model is exact to rounding where it keeps to float64. Eager attention does not: its softmax computes in
# float32 whatever the model's type, and one rounding there shows with 1e-7 to 1e-6 of the logits.
@pytest.mark.parametrize(
    ("kind", "attention", "bound"), [("llama", "sdpa", 1e-14), ("gpt2", "sdpa", 1e-14), ("llama", "eager", 1e-5)]
)
@settings(max_examples=25)
@given(drafts(), st.integers(0, 3))
def test_logits_of_a_tree_are_those_of_each_branch_alone(
    kind: str, attention: str, bound: float, draft: Draft, seed: int
) -> None:
    model, known = tiny(kind, attention=attention), prompt(9, seed=seed)
    found = whole_tree(model, known, draft)
    worst = 0.0
    for node in range(-1, len(draft)):
        branch = draft.tokens[path_to(draft, node)].tolist() if node >= 0 else []
        with torch.no_grad():
            alone = model(input_ids=torch.cat([known, torch.tensor([branch], dtype=torch.long)], dim=1)).logits[0, -1]
        worst = max(worst, float((found[node + 1] - alone).abs().max() / alone.abs().max()))
    assert worst <= bound


def test_a_wrong_mask_would_show() -> None:
    draft = tree({5: {6: {}}, 7: {8: {}}})
    model, known = tiny("llama"), prompt(9)
    right = whole_tree(model, known, draft)
    chain = whole_tree(model, known, Draft.chain(draft.tokens))
    assert float((right[4] - chain[4]).abs().max()) > 1e-3

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lookahead import Draft
from lookahead.verify.attention import position_offsets, tree_mask
from tests.models import prompt, tiny
from tests.trees import drafts, path_to, tree

DTYPES = st.sampled_from([torch.bool, torch.float32, torch.float64, torch.bfloat16])


@given(drafts(), st.lists(st.booleans(), max_size=6), DTYPES)
def test_the_mask_is_the_one_of_an_obvious_loop(draft: Draft, past: list[bool], dtype: torch.dtype) -> None:
    rows, width = len(draft) + 1, len(past)
    mask = tree_mask(draft, torch.tensor(past, dtype=torch.bool), dtype)
    assert mask.shape == (1, 1, rows, width + rows)
    assert mask.dtype == dtype
    for row in range(rows):
        ancestors = {0, *(node + 1 for node in (path_to(draft, row - 1) if row else []))}
        expected = [*past, *(other in ancestors for other in range(rows))]
        if dtype == torch.bool:
            assert mask[0, 0, row].tolist() == expected
        else:
            hidden = torch.finfo(dtype).min
            assert mask[0, 0, row].tolist() == [0.0 if seen else hidden for seen in expected]


@given(drafts(), st.integers(0, 5))
def test_a_chain_and_no_draft_have_the_causal_mask(draft: Draft, past: int) -> None:
    for chain in (Draft.empty(), Draft.chain(draft.tokens)):
        rows = len(chain) + 1
        causal = torch.ones(rows, past + rows, dtype=torch.bool).tril(past)
        assert torch.equal(tree_mask(chain, torch.ones(past, dtype=torch.bool), torch.bool)[0, 0], causal)


@given(drafts())
def test_offsets_are_0_for_the_last_known_token_then_the_depths(draft: Draft) -> None:
    offsets = position_offsets(draft)
    assert offsets.dtype == torch.int64
    assert offsets.tolist() == [0, *(len(path_to(draft, node)) for node in range(len(draft)))]


def whole_tree(model: Any, known: torch.Tensor, draft: Draft) -> torch.Tensor:
    """Return the logits behind the last known token and each node, in one forward without a cache."""
    ids = torch.cat([known, torch.from_numpy(draft.tokens).long()[None]], dim=1)
    past = known.shape[1] - 1
    rows = ids.shape[1]
    mask = torch.ones(rows, rows, dtype=torch.bool).tril()
    mask[past:] = tree_mask(draft, torch.ones(past, dtype=torch.bool), torch.bool)[0, 0]
    positions = torch.cat([torch.arange(past), past + position_offsets(draft)])[None]
    if model.config._attn_implementation == "eager":
        mask = torch.where(mask, 0.0, -1e30).to(model.dtype)
    with torch.no_grad():
        return model(input_ids=ids, attention_mask=mask[None, None], position_ids=positions).logits[0, past:]


# A float64 model is exact to rounding where it keeps to float64. Eager attention does not: its softmax computes in
# float32 whatever the model's type, and one rounding there shows with 1e-7 of the logits.
@pytest.mark.parametrize(
    ("kind", "attention", "bound"), [("llama", "sdpa", 1e-14), ("gpt2", "sdpa", 1e-14), ("llama", "eager", 1e-6)]
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

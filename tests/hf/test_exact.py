"""`exact=True`: in half precision too, the output is vanilla's, where near-ties are what makes it differ."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import lookahead
from lookahead import Lookahead
from lookahead.hf.names import cache_name
from lookahead.verify.doubt import Doubt
from tests.models import KINDS, prompt, tiny

OPTIONS: dict[str, Any] = {"cost": "linear:0.002"}


def differing(model: Any, ahead: Lookahead, prompts: int = 24) -> int:
    """Return how many outputs differ from vanilla's."""
    found = 0
    for seed in range(prompts):
        vanilla = model.generate(prompt(seed=seed), max_new_tokens=60)
        ours = model.generate(prompt(seed=seed), max_new_tokens=60, custom_generate=ahead)
        found += not torch.equal(vanilla, ours)
        assert ahead.stats.tokens == 60
    return found


@pytest.mark.parametrize(("kind", "seed"), [("llama", 0), ("llama", 1), ("gpt2", 0), ("qwen3", 0)])
def test_half_precision(kind: str, seed: int) -> None:
    model = tiny(kind, dtype=torch.bfloat16, seed=seed)
    assert differing(model, Lookahead(**OPTIONS)) > 0, "nothing differs anyway, so nothing is shown"
    assert differing(model, Lookahead(exact=True, **OPTIONS)) == 0


def test_a_cache_that_is_handed_back() -> None:
    model = tiny(dtype=torch.bfloat16)
    for seed in range(8):
        settings: dict[str, Any] = {"max_new_tokens": 30, "return_dict_in_generate": True, "output_scores": True}
        vanilla = model.generate(prompt(seed=seed), **settings)
        ours = model.generate(prompt(seed=seed), custom_generate=Lookahead(exact=True, **OPTIONS), **settings)
        assert torch.equal(vanilla.sequences, ours.sequences)
        assert len(ours.scores) == 30
        assert vanilla[cache_name()].get_seq_length() == ours[cache_name()].get_seq_length()


def test_confident_text_costs_nothing() -> None:
    model, ids = tiny(dtype=torch.float32), prompt()
    forwards = []
    for exact in (False, True):
        ahead = Lookahead(exact=exact, recycling=False, **OPTIONS)
        vanilla = model.generate(ids, max_new_tokens=60)
        assert torch.equal(vanilla, model.generate(ids, max_new_tokens=60, custom_generate=ahead))
        forwards.append(ahead.stats.forwards)
    assert forwards[0] == forwards[1] < 60


def test_what_it_does_not_go_with() -> None:
    model = tiny(dtype=torch.bfloat16)
    ahead = Lookahead(exact=True)
    for settings, given in (
        ({"do_sample": True}, "sampling"),
        ({"repetition_penalty": 1.2}, "logits processors"),
        ({"num_return_sequences": 2, "do_sample": True}, "2 rows"),
    ):
        with pytest.raises(ValueError, match=f"exact=True does not go with {given}; allowed is greedy search"):
            model.generate(prompt(), max_new_tokens=5, custom_generate=ahead, **settings)
        with lookahead.enabled(model, ahead), pytest.warns(UserWarning, match=f"does not go with {given}"):
            model.generate(prompt(), max_new_tokens=5, **settings)
    if "mistral" in KINDS:
        with pytest.raises(ValueError, match="exact=True needs a cache that can be cut anywhere"):
            tiny("mistral").generate(prompt(), max_new_tokens=5, custom_generate=ahead)


def test_a_doubt_learns_how_far_logits_move() -> None:
    doubt = Doubt()
    logits = torch.tensor([[0.0, 5.0, 5.01], [0.0, 1.0, 9.0]], dtype=torch.bfloat16)
    assert doubt.rows(logits) == [True, False]
    doubt.put_off(logits[1])
    assert doubt.pending
    doubt.settle(torch.tensor([0.0, 5.5, 9.0]))
    assert not doubt.pending and doubt.noise == 4.5
    assert doubt.rows(logits) == [True, True]
    for _ in range(2000):
        doubt.put_off(logits[0])
        doubt.settle(logits[0])
    assert doubt.rows(logits) == [True, False]

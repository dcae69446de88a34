"""`exact=True`: in half precision too, the output is vanilla's, where near-ties are what makes it differ."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import LogitsProcessor

import lookahead
from lookahead import Draft, Drafter, Lookahead
from lookahead.hf.names import cache_name
from lookahead.verify.doubt import Doubt
from tests.models import KINDS, prompt, tiny

OPTIONS: dict[str, Any] = {"cost": "linear:0.002"}


def differing(model: Any, ahead: Lookahead, prompts: int = 24, **settings: Any) -> int:
    """Return how many outputs differ from vanilla's."""
    found = 0
    for seed in range(prompts):
        vanilla = model.generate(prompt(seed=seed), max_new_tokens=60, **settings)
        ours = model.generate(prompt(seed=seed), max_new_tokens=60, custom_generate=ahead, **settings)
        found += not torch.equal(vanilla, ours)
        assert ahead.stats.tokens == 60
    return found


@pytest.mark.parametrize(("kind", "seed"), [("llama", 0), ("llama", 1), ("gpt2", 0), ("qwen3", 0)])
def test_half_precision(kind: str, seed: int) -> None:
    model = tiny(kind, dtype=torch.bfloat16, seed=seed)
    assert differing(model, Lookahead(**OPTIONS)) > 0, "nothing differs anyway, so nothing is shown"
    assert differing(model, Lookahead(exact=True, **OPTIONS)) == 0


@pytest.mark.parametrize(
    "settings",
    [
        {"repetition_penalty": 1.02, "suppress_tokens": [7, 8]},
        {"sequence_bias": [[[5, 9], -2.0], [[11], 0.5]], "min_new_tokens": 10},
    ],
    ids=["penalty", "bias"],
)
def test_processors_without_a_state(settings: dict[str, Any]) -> None:
    model = tiny(dtype=torch.bfloat16)
    assert differing(model, Lookahead(**OPTIONS), 12, **settings) > 0, "nothing differs anyway, so nothing is shown"
    assert differing(model, Lookahead(exact=True, **OPTIONS), 12, **settings) == 0


def test_states_and_logits_of_every_token() -> None:
    model = tiny(dtype=torch.bfloat16)
    wanted: dict[str, Any] = {"return_dict_in_generate": True, "output_logits": True, "output_hidden_states": True}
    ahead = Lookahead(exact=True, **OPTIONS)
    for seed in range(6):
        vanilla = model.generate(prompt(seed=seed), max_new_tokens=30, **wanted)
        ours = model.generate(prompt(seed=seed), max_new_tokens=30, custom_generate=ahead, **wanted)
        assert torch.equal(vanilla.sequences, ours.sequences)
        assert len(ours.logits) == len(ours.hidden_states) == 30
        for theirs, own in zip(vanilla.hidden_states, ours.hidden_states, strict=True):
            assert torch.allclose(theirs[-1], own[-1], atol=0.2)


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


class Own(LogitsProcessor):
    """May keep a state, for all that is known."""

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        return scores


def test_what_it_does_not_go_with() -> None:
    model = tiny(dtype=torch.bfloat16)
    ahead = Lookahead(exact=True)
    cases: list[tuple[dict[str, Any], str]] = [
        ({"do_sample": True}, "sampling; allowed is greedy search"),
        ({"logits_processor": [Own()]}, "Own, which may keep a state"),
        ({"guidance_scale": 1.5}, "UnbatchedClassifierFreeGuidanceLogitsProcessor, which may keep a state"),
        ({"num_return_sequences": 2, "do_sample": True}, "2 rows; allowed is greedy search"),
    ]
    for settings, given in cases:
        with pytest.raises(ValueError, match=f"exact=True does not go with {given}"):
            model.generate(prompt(), max_new_tokens=5, custom_generate=ahead, **settings)
        given = given.split(";")[0]
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


def test_after_the_last_draft(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache that a draft once went through is not plain decoding's, so forwards without a draft are doubted, too."""
    propose, model, last = Drafter.propose, tiny(dtype=torch.bfloat16), prompt().shape[1] + 12

    def at_first(self: Drafter, budget: int | None = None) -> Draft:
        return propose(self, budget if self.context < last else 0)

    monkeypatch.setattr(Drafter, "propose", at_first)
    for seed in range(24, 40):  # of which one differed when drafts alone were doubted
        vanilla = model.generate(prompt(seed=seed), max_new_tokens=60)
        exact = Lookahead(exact=True, **OPTIONS)
        assert torch.equal(vanilla, model.generate(prompt(seed=seed), max_new_tokens=60, custom_generate=exact))

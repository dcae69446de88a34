"""Other drafters where the index has nothing: assistants of one's own and of another tokenizer, early exit, any."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from transformers.generation.candidate_generator import (
    CandidateGenerator,
    EarlyExitCandidateGenerator,
    PromptLookupCandidateGenerator,
)

from lookahead import Lookahead
from tests.models import VOCABULARY, prompt, tiny
from tests.vocabularies import letters

IDS = torch.randint(3, VOCABULARY, (1, 20), generator=torch.Generator().manual_seed(5))
OPTIONS: dict[str, Any] = {"cost": "linear:0.001", "recycling": False}


def assistant(seed: int = 0) -> Any:
    """Return a model that mostly says what `tiny` says."""
    model = copy.deepcopy(tiny(dtype=torch.float32))
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weights in model.parameters():
            weights.add_(0.01 * torch.randn(weights.shape, generator=generator))
    return model


def looked_up(**call: Any) -> CandidateGenerator:
    limit = call["generation_config"].max_length
    given = {"num_output_tokens": 5, "max_length": limit, "vocab_size": VOCABULARY}
    return PromptLookupCandidateGenerator(eos_token_id=torch.tensor([2]), **given)


def early(**call: Any) -> CandidateGenerator:
    config = copy.deepcopy(call.pop("generation_config"))
    config.assistant_early_exit = 1
    return EarlyExitCandidateGenerator(assistant_model=call.pop("model"), generation_config=config, **call)


class Liar(CandidateGenerator):
    """Proposes what no model knows, and more of it than there is room for."""

    def get_candidates(self, input_ids: torch.Tensor, **_: Any) -> tuple[torch.Tensor, torch.Tensor]:
        lies = torch.tensor([[7, VOCABULARY, -3, 2**40] * 60])
        return torch.cat([input_ids, lies], dim=1), torch.full((1, 240, 17), torch.nan)

    def update_candidate_strategy(self, *_: Any) -> None: ...


@pytest.mark.parametrize(
    "fallback",
    [assistant(), (assistant(), letters()), looked_up, early, Liar()],
    ids=["assistant", "another tokenizer", "function", "early exit", "liar"],
)
def test_greedy_output_is_vanillas(fallback: Any) -> None:
    model, accepted = tiny(dtype=torch.float32), 0
    ahead = Lookahead(letters(), fallback=fallback, **OPTIONS)
    for seed in range(3):
        ids = IDS if seed == 0 else prompt(seed=seed)
        vanilla = model.generate(ids, max_new_tokens=40)
        assert torch.equal(vanilla, model.generate(ids, max_new_tokens=40, custom_generate=ahead))
        accepted += ahead.stats.accepted_by_source["fallback"]
    assert accepted > 5 or not isinstance(fallback, type(tiny()))


def test_an_assistant_helps_where_nothing_is_copied() -> None:
    model = tiny(dtype=torch.float32)
    alone, helped = Lookahead(**OPTIONS), Lookahead(fallback=assistant(), **OPTIONS)
    for ahead in (alone, helped):
        torch.manual_seed(0)
        output = model.generate(IDS, max_new_tokens=40, do_sample=True, custom_generate=ahead)
        assert output.shape == (1, 60)
    assert helped.stats.accepted_by_source["fallback"] > 10
    assert helped.stats.forwards < alone.stats.forwards


def test_sampled_output_has_the_models_distribution() -> None:
    """Chi-square over the second and third token, of 600 answers without and with an assistant that is often wrong."""
    model, far = tiny(dtype=torch.float32), assistant(seed=3)
    with torch.no_grad():
        for weights in far.parameters():
            weights.add_(0.05 * torch.randn(weights.shape, generator=torch.Generator().manual_seed(1)))
    ahead = Lookahead(fallback=far, **OPTIONS)
    settings: dict[str, Any] = {"max_new_tokens": 3, "do_sample": True, "top_k": 3, "temperature": 3.0}
    torch.manual_seed(0)
    found: list[dict[tuple[int, ...], int]] = [{}, {}]
    accepted = drafted = 0
    for counts, custom in zip(found, (None, ahead), strict=True):
        for _ in range(600):
            ids = model.generate(IDS, custom_generate=custom, **settings)
            key = tuple(ids[0, -2:].tolist())
            counts[key] = counts.get(key, 0) + 1
            accepted += ahead.stats.accepted if custom else 0
            drafted += ahead.stats.drafted if custom else 0
    assert 0 < accepted < drafted
    keys = set(found[0]) | set(found[1])
    pairs = [(found[0].get(key, 0), found[1].get(key, 0)) for key in keys]
    statistic = sum((one - other) ** 2 / (one + other) for one, other in pairs)
    freedom = len(keys) - 1
    assert statistic < freedom + 4 * (2 * freedom) ** 0.5


def test_what_cannot_draft_is_refused() -> None:
    with pytest.raises(ValueError, match="fallback='draft' cannot draft; allowed is a model .* a pair"):
        Lookahead(fallback="draft")

    class Hidden(CandidateGenerator):
        requires_model_outputs = True

    for given, message in (
        (Hidden(), "Hidden requires the target's outputs without saying which; .* set model_kwargs_overrides"),
        (
            lambda **_: Hidden(),
            "Hidden drafts from the target's states, but the function .* set requires_model_outputs",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            tiny().generate(IDS, max_new_tokens=5, custom_generate=Lookahead(fallback=given, **OPTIONS))

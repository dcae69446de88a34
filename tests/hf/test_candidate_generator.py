"""The generator behind transformers' own assisted loop."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch

from lookahead import LookaheadCandidateGenerator
from tests.models import prompt, tiny


def assisted(model: Any, generator: Any, ids: torch.Tensor, **kwargs: Any) -> torch.Tensor:
    """Generate by the stock loop with a generator of our own."""
    model = copy.deepcopy(model)
    model._get_candidate_generator = lambda *args, **kwargs: generator
    output: torch.Tensor = model.generate(ids, prompt_lookup_num_tokens=1, **{"max_new_tokens": 40, **kwargs})
    return output


class Counting(LookaheadCandidateGenerator):
    """Writes down how many tokens it drafted each time."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.drafted: list[int] = []

    def get_candidates(self, input_ids: torch.Tensor, *args: Any, **kwargs: Any) -> tuple[torch.Tensor, None]:
        found = super().get_candidates(input_ids, *args, **kwargs)
        self.drafted.append(found[0].shape[1] - input_ids.shape[1])
        return found


@pytest.mark.parametrize("kind", ["llama", "qwen2", "gpt2", "bloom"])
def test_greedy_output_is_that_of_plain_decoding(kind: str) -> None:
    for seed in range(3):
        model, ids = tiny(kind), prompt(seed=seed)
        generator = Counting(max_length=80)
        assert torch.equal(assisted(model, generator, ids), model.generate(ids, max_new_tokens=40))
        assert sum(generator.drafted) > 0


def test_drafts_are_accepted_so_that_it_takes_fewer_forwards() -> None:
    generator = Counting()
    assisted(tiny(), generator, prompt(), max_new_tokens=200)
    assert len(generator.drafted) < 180


def test_one_generator_serves_one_call_after_the_other() -> None:
    generator = LookaheadCandidateGenerator(max_length=prompt().shape[1] + 40)
    for seed in (0, 1, 0):
        ids = prompt(seed=seed)
        assert torch.equal(assisted(tiny(), generator, ids), tiny().generate(ids, max_new_tokens=40))


@pytest.mark.parametrize("new", [1, 2, 3, 17])
def test_no_draft_passes_the_length(new: int) -> None:
    ids = prompt()
    generator = LookaheadCandidateGenerator(max_length=ids.shape[1] + new, cost="linear:0")
    lengths = []
    for taken in range(new):
        longer = torch.cat([ids, ids[:, :taken]], dim=1)
        lengths.append(generator.get_candidates(longer)[0].shape[1])
    assert max(lengths) <= ids.shape[1] + new - 1
    output = assisted(tiny(), generator, ids, max_new_tokens=new)
    assert torch.equal(output, tiny().generate(ids, max_new_tokens=new))


def test_candidates_follow_the_ids_on_their_device_and_in_their_type() -> None:
    ids = torch.tensor([[1, 2, 3, 4, 5, 6, 1, 2, 3]], dtype=torch.int32)
    candidates, logits = LookaheadCandidateGenerator(budget=2).get_candidates(ids)
    assert logits is None
    assert candidates.dtype == torch.int32
    assert candidates.tolist() == [[*ids[0].tolist(), 4, 5]]


def test_without_anything_to_copy_the_ids_come_back_alone() -> None:
    ids = torch.tensor([[1, 2, 3]])
    assert LookaheadCandidateGenerator().get_candidates(ids)[0].tolist() == ids.tolist()
    assert LookaheadCandidateGenerator(max_length=1).get_candidates(ids)[0].tolist() == ids.tolist()


def test_what_the_stock_loop_passes_besides_is_taken() -> None:
    ids = torch.tensor([[1, 1, 1]])
    generator = LookaheadCandidateGenerator(budget=1)
    found, _ = generator.get_candidates(ids, model_kwargs={}, model_outputs=None, is_first_iteration=True)
    assert found.tolist() == [[1, 1, 1, 1]]
    assert generator.update_candidate_strategy(ids, torch.zeros(1, 2, 5), 1) is None


def test_a_batch_is_refused() -> None:
    with pytest.raises(ValueError, match="a batch of 2 is not supported, allowed is 1: loop over the rows"):
        LookaheadCandidateGenerator().get_candidates(torch.ones(2, 3, dtype=torch.long))
    with pytest.raises(ValueError, match="batch"):
        assisted(tiny(), LookaheadCandidateGenerator(), prompt().repeat(2, 1))


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"tree": True}, ValueError, "tree=True is not possible here: the stock assisted loop verifies chains only"),
        ({"max_length": 0}, ValueError, "max_length=0 is out of range; allowed is 1 and above, or None"),
        ({"budget": -1}, ValueError, "budget=-1 is out of range"),
        ({"tokens": 5}, TypeError, "unknown option tokens"),
    ],
    ids=str,
)
def test_wrong_options_are_refused(given: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        LookaheadCandidateGenerator(**given)

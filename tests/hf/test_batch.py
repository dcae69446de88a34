"""Several rows in one call: the same as vanilla `generate`, row by row."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import DynamicCache

from lookahead import Lookahead
from lookahead.hf.names import cache_name
from tests.models import KINDS, VOCABULARY, prompt, tiny


def padded(lengths: list[int], seed: int = 0) -> dict[str, torch.Tensor]:
    """Give prompts of these lengths, padded on the left, and their mask."""
    ids = torch.zeros(len(lengths), max(lengths), dtype=torch.long)
    mask = torch.zeros_like(ids)
    for row, length in enumerate(lengths):
        ids[row, -length:], mask[row, -length:] = prompt(length, seed=seed + row)[0], 1
    return {"input_ids": ids, "attention_mask": mask}


def both(model: Any, inputs: dict[str, torch.Tensor], lookahead: Lookahead, **kwargs: Any) -> tuple[Any, Any]:
    kwargs = {"max_new_tokens": 40, **inputs, **kwargs}
    return model.generate(**kwargs), model.generate(**kwargs, custom_generate=lookahead)


@pytest.mark.parametrize("ends", [None, [11, 17, 23]])
@pytest.mark.parametrize("kind", KINDS)
def test_every_architecture(kind: str, ends: list[int] | None) -> None:
    lookahead, lengths = Lookahead(cost="linear:0.001"), [40] * 3 if kind == "bloom" else [40, 33, 25]
    for seed in range(2):
        vanilla, ours = both(tiny(kind), padded(lengths, seed), lookahead, max_new_tokens=60, eos_token_id=ends)
        assert torch.equal(vanilla, ours)
    assert lookahead.stats.accepted > 0 and lookahead.stats.forwards < 60


@settings(max_examples=40)
@given(
    st.sampled_from(["llama", "gpt2", "qwen3"]),
    st.lists(st.integers(1, 50), min_size=2, max_size=5),
    st.integers(0, 2**16),
    st.lists(st.integers(3, VOCABULARY - 1), max_size=8),
    st.fixed_dictionaries(
        {"max_new_tokens": st.integers(9, 50)},
        optional={
            "repetition_penalty": st.floats(0.8, 1.5),
            "no_repeat_ngram_size": st.integers(1, 4),
            "bad_words_ids": st.just([[7], [9, 11]]),
            "min_new_tokens": st.integers(1, 9),
            "suppress_tokens": st.just([5, 6]),
            "forced_eos_token_id": st.just(2),
            "exponential_decay_length_penalty": st.just((5, 1.2)),
        },
    ),
    st.fixed_dictionaries(
        {"cost": st.sampled_from([None, "linear:0", "linear:0.05"])},
        optional={"tree": st.booleans(), "recycling": st.booleans(), "budget": st.integers(0, 40)},
    ),
)
def test_greedy_rows_are_vanillas_rows(
    kind: str, lengths: list[int], seed: int, ends: list[int], asked: dict[str, Any], options: dict[str, Any]
) -> None:
    if not ends:
        asked.pop("exponential_decay_length_penalty", None)  # which generate takes only with an end
    vanilla, ours = both(tiny(kind), padded(lengths, seed), Lookahead(**options), eos_token_id=ends or None, **asked)
    assert torch.equal(vanilla, ours)


def test_rows_end_early_and_the_others_go_on() -> None:
    model, inputs = tiny(), padded([40, 33, 25, 40])
    free = model.generate(**inputs, max_new_tokens=100)[:, 40:]
    ends = [int(free[0, 3]), int(free[2, 20])]
    lookahead = Lookahead(cost="linear:0.001")
    vanilla, ours = both(model, inputs, lookahead, max_new_tokens=100, eos_token_id=ends)
    assert torch.equal(vanilla, ours)
    assert len({int((row == 0).sum()) for row in ours[:, 40:]}) > 1


def test_several_return_sequences() -> None:
    torch.manual_seed(0)
    found = tiny().generate(
        prompt(), do_sample=True, num_return_sequences=3, max_new_tokens=20, custom_generate=Lookahead()
    )
    assert found.shape == (3, 60) and len({tuple(row) for row in found.tolist()}) > 1
    vanilla, ours = both(tiny(), {"input_ids": prompt(), "attention_mask": prompt() > 0}, Lookahead(), num_beams=1)
    assert torch.equal(vanilla, ours)


def test_a_prefix_function_knows_its_row() -> None:
    def allowed(row: int, ids: torch.Tensor) -> list[int]:
        return [3 + row, 10 + int(ids[-1]) % 7, 30]

    vanilla, ours = both(tiny(), padded([40, 31, 17]), Lookahead(cost="linear:0"), prefix_allowed_tokens_fn=allowed)
    assert torch.equal(vanilla, ours)


def test_sampling_has_the_models_distribution() -> None:
    model, ids, rows, temperature = tiny(seed=3), prompt(), 48, 0.5
    with torch.no_grad():
        first = (model(ids).logits[0, -1] / temperature).softmax(-1)
        longer = torch.cat([ids.expand(VOCABULARY, -1), torch.arange(VOCABULARY)[:, None]], dim=1)
        second = (model(longer).logits[:, -1] / temperature).softmax(-1)
    expected = (first[:, None] * second).flatten().double()
    counts, total, accepted = torch.zeros_like(expected), 0, 0
    lookahead = Lookahead(cost="linear:0")
    torch.manual_seed(1)
    for _ in range(60):
        found = model.generate(
            ids.repeat(rows, 1), do_sample=True, temperature=temperature, top_k=0, max_new_tokens=3,
            custom_generate=lookahead,
        )  # fmt: skip
        pairs = found[:, -3] * VOCABULARY + found[:, -2]
        counts += torch.bincount(pairs, minlength=len(counts))
        total, accepted = total + rows, accepted + lookahead.stats.accepted
    likely = expected * total >= 5
    observed = torch.cat([counts[likely], counts[~likely].sum()[None]])
    wanted = total * torch.cat([expected[likely], expected[~likely].sum()[None]])
    statistic, freedom = float(((observed - wanted) ** 2 / wanted.clamp(min=1e-9)).sum()), len(wanted) - 1
    assert accepted > 100
    assert statistic < freedom + 4 * (2 * freedom) ** 0.5  # four standard deviations


def test_the_cache_is_left_as_vanilla_leaves_it() -> None:
    model, inputs = tiny(), padded([40, 33, 25])
    vanilla, ours = both(model, inputs, Lookahead(cost="linear:0.001"), return_dict_in_generate=True)
    assert torch.equal(vanilla.sequences, ours.sequences) and ours.keys() == vanilla.keys()
    caches = [output[cache_name()] for output in (vanilla, ours)]
    assert [cache.get_seq_length() for cache in caches] == [79, 79]
    for left, right in zip(*(cache.layers for cache in caches), strict=True):
        for row, start in enumerate([0, 7, 15]):
            torch.testing.assert_close(left.keys[row, :, start:], right.keys[row, :, start:])
            torch.testing.assert_close(left.values[row, :, start:], right.values[row, :, start:])


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind in ("llama", "gemma3", "mistral")])
@pytest.mark.parametrize("budget", [0, 3, 16])
def test_the_cache_holds_ends_and_padding_of_rows_that_ended_early(kind: str, budget: int) -> None:
    model, inputs, wanted = tiny(kind), padded([40, 33, 25]), {"return_dict_in_generate": True, "max_new_tokens": 60}
    free = model.generate(**inputs, max_new_tokens=60)[:, 40:]
    ends = [int(free[1, 4]), int(free[2, 9])]
    vanilla, ours = both(model, inputs, Lookahead(cost="linear:0", budget=budget), eos_token_id=ends, **wanted)
    assert torch.equal(vanilla.sequences, ours.sequences) and (ours.sequences[:, -1] == 0).any()
    for left, right in zip(*(output[cache_name()].layers for output in (vanilla, ours)), strict=True):
        assert type(left) is type(right) and left.keys.shape == right.keys.shape
        assert left.get_seq_length() == right.get_seq_length()
        for row, start in enumerate([0, 7, 15]):  # a window has left the prompt behind
            start = max(0, start + left.keys.shape[2] - left.get_seq_length())
            torch.testing.assert_close(left.keys[row, :, start:], right.keys[row, :, start:])
            torch.testing.assert_close(left.values[row, :, start:], right.values[row, :, start:])


@pytest.mark.parametrize("asked", [{"encoder_repetition_penalty": 1.4}, {"encoder_no_repeat_ngram_size": 2}])
def test_processors_of_the_prompt_know_their_row(asked: dict[str, Any]) -> None:
    lookahead = Lookahead(cost="linear:0")
    vanilla, ours = both(tiny(), padded([40, 33, 25]), lookahead, **asked)
    assert torch.equal(vanilla, ours) and lookahead.stats.accepted > 0


def test_a_cache_is_continued() -> None:
    model, inputs, results = tiny(), padded([40, 33, 25]), []
    for custom in (None, Lookahead(cost="linear:0.001")):
        cache = DynamicCache(config=model.config)
        kwargs: dict[str, Any] = {"max_new_tokens": 20, cache_name(): cache, "custom_generate": custom}
        known = model.generate(**inputs, **kwargs)
        longer = torch.cat([known, prompt(13, seed=5).expand(3, -1)], dim=1)
        mask = torch.cat([inputs["attention_mask"], torch.ones(3, 33, dtype=torch.long)], dim=1)
        results.append(model.generate(longer, attention_mask=mask, **kwargs))
    assert torch.equal(*results)


def test_a_cache_is_continued_behind_rows_that_ended() -> None:
    model, inputs, results = tiny(), padded([40, 33, 25]), []
    ends = model.generate(**inputs, max_new_tokens=9)[1:, -2].tolist()
    for custom in (None, Lookahead(cost="linear:0")):
        cache, ids, mask = DynamicCache(config=model.config), inputs["input_ids"], inputs["attention_mask"]
        kwargs: dict[str, Any] = {"max_new_tokens": 20, "eos_token_id": ends, cache_name(): cache}
        for turn in range(3):
            known = model.generate(ids, attention_mask=mask, custom_generate=custom, **kwargs)
            said = known[:, ids.shape[1] :]
            asked = prompt(13, seed=turn).expand(3, -1)
            mask = torch.cat([mask, (said != 0).long(), torch.ones_like(asked)], dim=1)
            ids = torch.cat([known, asked], dim=1)
        assert (mask[:, 40:] == 0).any() and not (mask[:, 40:] == 0).all(dim=0).any()
        results.append(ids)
    assert torch.equal(*results)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind in ("llama", "gemma3", "mistral")])
def test_what_a_mask_hides_within_a_prompt_keeps_its_slot(kind: str) -> None:
    ids, mask = prompt(30).repeat(2, 1), torch.ones(2, 30, dtype=torch.long)
    mask[0, 1::3] = 0
    assert torch.equal(*both(tiny(kind), {"input_ids": ids, "attention_mask": mask}, Lookahead(cost="linear:0")))


def test_prompts_of_another_integer_type() -> None:
    inputs = {name: ids.int() for name, ids in padded([40, 31]).items()}
    vanilla, ours = both(tiny(), inputs, Lookahead(cost="linear:0"), max_new_tokens=5)
    assert torch.equal(vanilla, ours) and vanilla.dtype == ours.dtype


def test_a_processor_that_says_it_knows_no_rows_is_called_for_one_at_a_time() -> None:
    class Odd:
        row_wise = True

        def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
            return scores.masked_fill(torch.arange(scores.shape[-1]) % 2 == input_ids[:, -1:] % 2, -1e9)

    vanilla, ours = both(tiny(), padded([40, 31]), Lookahead(cost="linear:0"), logits_processor=[Odd()])
    assert torch.equal(vanilla, ours)


class Fails:
    """Goes off at its n-th call, as a processor or behind a part of the model."""

    row_wise = True

    def __init__(self, calls: int) -> None:
        self.left = calls

    def __call__(self, *given: Any) -> Any:
        self.left -= 1
        if not self.left:
            raise KeyboardInterrupt
        return given[1] if len(given) == 2 else None


@pytest.mark.parametrize("calls", [2, 4, 6])
@pytest.mark.parametrize("place", ["processor", "layer", "head"])
def test_a_failure_leaves_the_callers_cache_usable(place: str, calls: int) -> None:
    model, inputs, lookahead = tiny(), padded([40, 33, 25]), Lookahead(cost="linear:0", budget=6)
    vanilla, ours = both(model, inputs, lookahead)
    assert torch.equal(vanilla, ours)
    cache, hook, asked = DynamicCache(config=model.config), None, dict[str, Any]()
    if place == "processor":
        asked = {"logits_processor": [Fails(5 * calls)]}
    else:
        part = model.model.layers[0] if place == "layer" else model.lm_head
        hook = part.register_forward_hook(Fails(calls))
    kwargs = {**inputs, "max_new_tokens": 40, **asked, cache_name(): cache}
    with pytest.raises(KeyboardInterrupt):
        model.generate(**kwargs, custom_generate=lookahead)
    if hook is not None:
        hook.remove()
    assert 40 <= cache.get_seq_length() < vanilla.shape[1]
    longer = torch.cat([vanilla, prompt(5, seed=3).expand(3, -1)], dim=1)
    mask = torch.cat([inputs["attention_mask"], torch.ones(3, 45, dtype=torch.long)], dim=1)
    expected = model.generate(longer, attention_mask=mask, max_new_tokens=10)
    on = model.generate(longer, attention_mask=mask, max_new_tokens=10, **{cache_name(): cache})
    assert torch.equal(on, expected)
    assert torch.equal(both(model, inputs, lookahead)[1], vanilla)


def test_a_cache_that_was_compacted_is_handed_back_as_wide_as_vanillas() -> None:
    model, inputs = tiny(), padded([10, 40, 40])
    free = model.generate(**inputs, max_new_tokens=100)[:, 40:]
    ends = [int(free[1, 2]), int(free[2, 2])]  # the short one goes on alone
    wanted = {"return_dict_in_generate": True, "max_new_tokens": 100, "eos_token_id": ends}
    vanilla, ours = both(model, inputs, Lookahead(cost="linear:0"), **wanted)
    assert torch.equal(vanilla.sequences, ours.sequences)
    assert ours[cache_name()].get_seq_length() == ours.sequences.shape[1] - 1


def test_a_prefill_that_fails_is_what_the_caller_hears_of() -> None:
    model = tiny()

    def fails(*_: Any) -> None:
        raise MemoryError("no room")

    assert torch.equal(*both(model, padded([20, 20]), Lookahead()))  # the comparisons are made
    hook = model.register_forward_pre_hook(fails)
    try:
        with pytest.raises(MemoryError, match="no room"):
            model.generate(
                **padded([20, 20]), return_dict_in_generate=True, max_new_tokens=5, custom_generate=Lookahead()
            )
    finally:
        hook.remove()


def test_a_model_in_training_is_decoded_plainly_and_asked_again_later() -> None:
    model, lookahead = copy.deepcopy(tiny(seed=7)), Lookahead()
    model.train()
    assert torch.equal(*both(model, padded([20, 20]), lookahead))
    assert "training mode" in str(lookahead.stats.note)
    model.eval()
    assert torch.equal(*both(model, padded([20, 20]), lookahead))
    assert lookahead.stats.note is None

"""The promise: what `generate` gives without lookahead it gives with it. Vanilla generate is the oracle."""

from __future__ import annotations

import copy
import threading
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import DynamicCache, GenerationConfig, LogitsProcessor, StoppingCriteria
from transformers.generation.streamers import BaseStreamer

from lookahead import Lookahead, Stats
from lookahead.hf.names import cache_name
from tests.models import KINDS, VOCABULARY, prompt, tiny
from tests.vocabularies import letters, vocabulary


def both(
    model: Any, ids: torch.Tensor, lookahead: Lookahead | None = None, seed: int = 0, **kwargs: Any
) -> tuple[Any, Any]:
    """Generate without and with lookahead from the same seed."""
    outputs, states = [], []
    for custom in (None, lookahead or Lookahead()):
        torch.manual_seed(seed)
        outputs.append(model.generate(ids, custom_generate=custom, **{"max_new_tokens": 40, **kwargs}))
        states.append(torch.get_rng_state())
    assert torch.equal(*states), "the random generator went another way"
    return outputs[0], outputs[1]


SAMPLING = {"do_sample": True, "temperature": 0.3}


@pytest.mark.parametrize("do_sample", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_every_architecture(kind: str, do_sample: bool) -> None:
    lookahead = Lookahead(cost="linear:0")
    for seed in range(2):
        settings = SAMPLING if do_sample else {}
        vanilla, ours = both(tiny(kind), prompt(seed=seed), lookahead, seed=seed, **settings)
        assert torch.equal(vanilla, ours)
    assert lookahead.stats.drafted > 0


@pytest.mark.parametrize("tree", [False, True])
@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_attention_implementations(attention: str, tree: bool) -> None:
    lookahead = Lookahead(tree=tree, cost="linear:0")
    vanilla, ours = both(tiny(attention=attention), prompt(), lookahead, max_new_tokens=60)
    assert torch.equal(vanilla, ours)
    assert lookahead.stats.accepted > 0


@pytest.mark.parametrize(
    "settings",
    [
        {"top_k": 5},
        {"top_p": 0.8},
        {"min_p": 0.05},
        {"typical_p": 0.7},
        {"epsilon_cutoff": 0.01},
        {"eta_cutoff": 0.01},
        {"top_k": 8, "top_p": 0.9, "repetition_penalty": 1.1},
        {"renormalize_logits": True, "top_p": 0.9},
    ],
)
def test_sampling_with_a_seed(settings: dict[str, Any]) -> None:
    for seed in range(4):
        vanilla, ours = both(tiny(), prompt(seed=seed), seed=seed, **SAMPLING, **settings)
        assert torch.equal(vanilla, ours)


@pytest.mark.parametrize(
    "settings",
    [
        {"repetition_penalty": 1.3},
        {"no_repeat_ngram_size": 3},
        {"bad_words_ids": [[5], [7, 9]]},
        {"min_new_tokens": 12, "eos_token_id": list(range(3, 30))},
        {"eos_token_id": [11, 17, 23]},
        {"forced_eos_token_id": 2},
        {"exponential_decay_length_penalty": (5, 1.2), "eos_token_id": 9},
        {"suppress_tokens": [3, 4, 5, 6]},
        {"begin_suppress_tokens": [3, 4, 5, 6]},
        {"sequence_bias": {(8,): 3.0}},
        {"guidance_scale": 1.4},
        {"prefix_allowed_tokens_fn": lambda row, ids: [int(ids[-1] * 7 % 50) + 3, int(ids[-2] % 50) + 3]},
        {"max_new_tokens": 1},
        {"max_new_tokens": 2},
        {"max_length": 55, "max_new_tokens": None},
        {"prefill_chunk_size": 16},
        {"max_time": 0.0},
    ],
)
def test_generation_settings(settings: dict[str, Any]) -> None:
    for seed in range(3):
        vanilla, ours = both(tiny(), prompt(seed=seed), **settings)
        assert torch.equal(vanilla, ours)


@given(
    length=st.integers(1, 60),
    period=st.integers(1, 13),
    new=st.integers(1, 50),
    budget=st.integers(0, 20),
    cost=st.sampled_from(["linear:0", "linear:0.03", None]),
    tree=st.booleans(),
    temperature=st.sampled_from([None, 0.1, 0.7, 1.5]),
    ends=st.sets(st.integers(0, VOCABULARY - 1), max_size=3),
    seed=st.integers(0, 2**16),
    with_text=st.booleans(),
    prediction=st.lists(st.integers(3, VOCABULARY - 1), max_size=20),
)
def test_any_prompt_and_options(
    length: int,
    period: int,
    new: int,
    budget: int,
    cost: str | None,
    tree: bool,
    temperature: float | None,
    ends: set[int],
    seed: int,
    with_text: bool,
    prediction: list[int],
) -> None:
    options = {"budget": budget, "cost": cost, "tree": tree, "prediction": prediction}
    lookahead = Lookahead(letters() if with_text else None, **options)
    settings: dict[str, Any] = {"max_new_tokens": new, "eos_token_id": sorted(ends) or None}
    if temperature:
        settings |= {"do_sample": True, "temperature": temperature}
    vanilla, ours = both(tiny(), prompt(length, period, seed), lookahead, seed=seed, **settings)
    assert torch.equal(vanilla, ours)
    assert lookahead.stats.tokens == ours.shape[1] - length
    assert lookahead.stats.forwards + lookahead.stats.accepted >= lookahead.stats.tokens


class Witness(LogitsProcessor):
    """Changes the scores by how often it was called, and writes down what it saw."""

    def __init__(self, calls: list[list[int]]) -> None:
        self.calls = calls

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        self.calls.append(input_ids[0].tolist())
        return scores + (len(self.calls) % 7) * torch.linspace(0, 0.1, scores.shape[-1])[None]


class Observer(StoppingCriteria):
    """Stops at its 23rd call, and writes down what it saw."""

    def __init__(self, calls: list[Any]) -> None:
        self.calls = calls

    def __call__(self, input_ids: torch.Tensor, scores: Any, **kwargs: Any) -> torch.Tensor:
        self.calls.append((input_ids[0].tolist(), None if scores is None else len(scores)))
        return torch.tensor([len(self.calls) == 23])


class Ear(BaseStreamer):
    """Writes down what it hears."""

    def __init__(self) -> None:
        self.heard: list[Any] = []

    def put(self, value: torch.Tensor) -> None:
        self.heard.append((tuple(value.shape), value.dtype, value.tolist()))

    def end(self) -> None:
        self.heard.append("end")


@pytest.mark.parametrize("scores", [False, True])
def test_processors_and_criteria_see_the_same_calls(scores: bool) -> None:
    for seed in range(3):
        seen, stopped = [list[Any](), list[Any]()], [list[Any](), list[Any]()]
        turns = iter((0, 1))

        def arguments(turn: int, seen: Any = seen, stopped: Any = stopped) -> dict[str, Any]:
            return {"logits_processor": [Witness(seen[turn])], "stopping_criteria": [Observer(stopped[turn])]}

        outputs = [
            tiny()
            .generate(
                prompt(seed=seed),
                max_new_tokens=60,
                return_dict_in_generate=True,
                output_scores=scores,
                custom_generate=custom,
                **arguments(next(turns)),
            )
            .sequences
            for custom in (None, Lookahead())
        ]
        assert torch.equal(*outputs)
        assert seen[0] == seen[1]
        assert stopped[0] == stopped[1]


def test_ids_that_a_processor_keeps_are_not_overwritten() -> None:
    kept: list[tuple[torch.Tensor, list[int]]] = []

    class Keeper(LogitsProcessor):
        def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
            kept.append((input_ids, input_ids[0].tolist()))
            return scores

    tiny().generate(prompt(), max_new_tokens=400, logits_processor=[Keeper()], custom_generate=Lookahead())
    assert all(ids[0].tolist() == then for ids, then in kept)


@pytest.mark.parametrize("settings", [{}, SAMPLING, {"eos_token_id": [11, 17]}], ids=str)
def test_streamers_hear_every_token_once(settings: dict[str, Any]) -> None:
    for seed in range(3):
        ears = Ear(), Ear()
        torch.manual_seed(seed)
        tiny().generate(prompt(seed=seed), max_new_tokens=40, streamer=ears[0], **settings)
        torch.manual_seed(seed)
        Lookahead().generate(tiny(), prompt(seed=seed), max_new_tokens=40, streamer=ears[1], **settings)
        assert ears[0].heard == ears[1].heard


def test_a_streamer_that_raises_ends_the_generation_and_leaves_the_cache_usable() -> None:
    class Hangup(BaseStreamer):
        def __init__(self) -> None:
            self.left = 20

        def put(self, value: torch.Tensor) -> None:
            self.left -= 1
            if not self.left:
                raise ConnectionError("client gone")

        def end(self) -> None:
            pass

    model, cache = tiny(), DynamicCache(config=tiny().config)
    lookahead = Lookahead()
    with pytest.raises(ConnectionError):
        lookahead.generate(model, prompt(), max_new_tokens=60, streamer=Hangup(), **{cache_name(): cache})
    known = model.generate(prompt(), max_new_tokens=19)
    vanilla = model.generate(known, max_new_tokens=10)
    assert cache.get_seq_length() < known.shape[1]
    assert torch.equal(model.generate(known, max_new_tokens=10, **{cache_name(): cache}), vanilla)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind in ("llama", "mistral", "gemma3")])
@pytest.mark.parametrize("settings", [{}, SAMPLING], ids=str)
def test_everything_returned_on_request(kind: str, settings: dict[str, Any]) -> None:
    wanted = {
        "return_dict_in_generate": True,
        "output_scores": True,
        "output_logits": True,
        "output_attentions": True,
        "output_hidden_states": True,
    }
    lookahead = Lookahead(cost="linear:0")
    vanilla, ours = both(tiny(kind, attention="eager"), prompt(), lookahead, **settings, **wanted)
    assert type(vanilla) is type(ours)
    assert torch.equal(vanilla.sequences, ours.sequences)
    for name in ("scores", "logits", "attentions", "hidden_states"):
        close(getattr(vanilla, name), getattr(ours, name), name)
    caches = [output[cache_name()] for output in (vanilla, ours)]
    assert [cache.get_seq_length() for cache in caches] == [ours.sequences.shape[1] - 1] * 2
    for left, right in zip(*(cache.layers for cache in caches), strict=True):
        close(left.keys, right.keys, "keys")
        close(left.values, right.values, "values")
    assert isinstance(ours.stats, Stats) and ours.stats is lookahead.stats
    assert lookahead.stats.accepted > 0 or settings


def close(left: Any, right: Any, name: str) -> None:
    """Compare nested tuples of tensors."""
    assert type(left) is type(right), name
    if isinstance(left, torch.Tensor):
        assert left.shape == right.shape, f"{name}: {left.shape} {right.shape}"
        torch.testing.assert_close(left, right, rtol=1e-4, atol=1e-4)  # some layers compute in float32 throughout
        return
    assert len(left) == len(right), name
    for one, other in zip(left, right, strict=True):
        close(one, other, name)


def test_what_was_not_asked_for_is_not_returned() -> None:
    vanilla, ours = both(tiny(), prompt(), return_dict_in_generate=True)
    assert ours.keys() == vanilla.keys()


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind in ("llama", "mistral")])
def test_a_cache_is_continued_and_handed_back_in_order(kind: str) -> None:
    model, ids = tiny(kind), prompt(50)
    first = DynamicCache(config=model.config), DynamicCache(config=model.config)
    results = []
    for cache, custom in zip(first, (None, Lookahead()), strict=True):
        kwargs: dict[str, Any] = {"max_new_tokens": 20, cache_name(): cache, "custom_generate": custom}
        known = model.generate(ids, **kwargs)
        assert cache.get_seq_length() == known.shape[1] - 1
        longer = torch.cat([known, prompt(13, seed=5)], dim=1)
        results.append(model.generate(longer, **kwargs))
        assert not any(getattr(layer, "record_past", False) for layer in cache.layers)
    assert torch.equal(*results)


@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind in ("gemma3", "mistral")])
def test_windows_in_a_cache_that_keeps_everything(kind: str, rows: int) -> None:
    model, cache, ours = tiny(kind), DynamicCache(), DynamicCache()
    ids = torch.cat([prompt(30, seed=row) for row in range(rows)])
    settings = {"max_new_tokens": 30, "attention_mask": torch.ones_like(ids)}
    vanilla = model.generate(ids, **settings, **{cache_name(): cache})
    lookahead = Lookahead(cost="linear:0", budget=9)
    assert torch.equal(model.generate(ids, custom_generate=lookahead, **settings, **{cache_name(): ours}), vanilla)
    assert lookahead.stats.drafted > 0 or "a cache of your own cannot follow" in str(lookahead.stats.note)
    for left, right in zip(cache.layers, ours.layers, strict=True):
        torch.testing.assert_close(left.keys, right.keys)


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_left_padding(kind: str) -> None:
    ids = torch.cat([torch.zeros(1, 7, dtype=torch.long), prompt()], dim=1)
    mask = torch.ones_like(ids)
    mask[:, :7] = 0
    lookahead = Lookahead(cost="linear:0")
    vanilla, ours = both(tiny(kind), ids, lookahead, attention_mask=mask)
    assert torch.equal(vanilla, ours)
    assert lookahead.stats.accepted > 0


def test_prompts_with_end_and_padding_tokens_in_them() -> None:
    for seed in range(4):
        ids = prompt(seed=seed)
        ids[0, ::5] = 2
        ids[0, ::7] = 0
        vanilla, ours = both(tiny(), ids, attention_mask=torch.ones_like(ids), eos_token_id=2, pad_token_id=0)
        assert torch.equal(vanilla, ours)


def test_no_prompt_at_all() -> None:
    model = tiny()
    vanilla = model.generate(max_new_tokens=20)
    assert torch.equal(vanilla, model.generate(max_new_tokens=20, custom_generate=Lookahead()))
    assert torch.equal(vanilla, Lookahead().generate(model, max_new_tokens=20))


def test_input_embeddings() -> None:
    model, ids = tiny(), prompt()
    embeddings = model.get_input_embeddings()(ids)
    vanilla = model.generate(inputs_embeds=embeddings, max_new_tokens=30)
    ours = model.generate(inputs_embeds=embeddings, max_new_tokens=30, custom_generate=Lookahead())
    assert torch.equal(vanilla, ours)


def test_a_generation_config_object() -> None:
    config = GenerationConfig(max_new_tokens=30, do_sample=True, temperature=0.5, pad_token_id=0)
    vanilla, ours = both(tiny(), prompt(), generation_config=config, max_new_tokens=30)
    assert torch.equal(vanilla, ours)


def test_one_object_serves_several_threads_at_once() -> None:
    lookahead, results = Lookahead(), dict[int, torch.Tensor]()
    model = tiny()

    def work(seed: int) -> None:
        results[seed] = model.generate(prompt(seed=seed), max_new_tokens=40, custom_generate=lookahead)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for seed in range(4):
        assert torch.equal(results[seed], model.generate(prompt(seed=seed), max_new_tokens=40))


def test_a_model_in_training_mode_is_decoded_plainly() -> None:
    model, lookahead = copy.deepcopy(tiny(seed=3)), Lookahead()
    model.train()
    for module in model.modules():
        if hasattr(module, "attention_dropout"):
            module.attention_dropout = 0.5
    vanilla, ours = both(model, prompt(), lookahead)
    assert torch.equal(vanilla, ours)
    assert "training mode" in lookahead.stats.summary()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_other_dtypes_run_and_float32_is_exact_here(dtype: torch.dtype) -> None:
    vanilla, ours = both(tiny(dtype=dtype), prompt())
    if dtype == torch.float32:
        assert torch.equal(vanilla, ours)
    assert ours.shape == vanilla.shape


def test_the_limit_of_learned_positions_is_not_passed() -> None:
    ids = prompt(480)
    vanilla, ours = both(tiny("gpt2"), ids, max_new_tokens=32)
    assert torch.equal(vanilla, ours)


def test_a_prediction_is_accepted_where_the_model_says_it_and_changes_nothing() -> None:
    model, ids = tiny(), prompt(seed=1)
    vanilla = model.generate(ids, max_new_tokens=30)
    answer = vanilla[0, ids.shape[1] :]
    blind, told = Lookahead(cost="linear:0"), Lookahead(prediction=answer, cost="linear:0")
    assert torch.equal(model.generate(ids, max_new_tokens=30, custom_generate=blind), vanilla)
    assert torch.equal(model.generate(ids, max_new_tokens=30, custom_generate=told), vanilla)
    assert told.stats.forwards < blind.stats.forwards
    assert told.stats.accepted_prediction_tokens > 20
    wrong = (answer + 1) % VOCABULARY
    assert torch.equal(told.generate(model, ids, max_new_tokens=30, prediction=wrong), vanilla)
    assert told.stats.rejected_prediction_tokens > 0
    with pytest.raises(ValueError, match="tokenizer"):
        model.generate(ids, max_new_tokens=30, custom_generate=Lookahead(prediction="text"))


def test_a_prediction_that_the_model_cannot_read_changes_nothing() -> None:
    model, ids = tiny(), prompt(seed=1)
    vanilla = model.generate(ids, max_new_tokens=30)
    wrong = [*vanilla[0, ids.shape[1] :][:4].tolist(), *[100_000] * 5]
    assert torch.equal(Lookahead().generate(model, ids, max_new_tokens=30, prediction=wrong), vanilla)
    assert torch.equal(Lookahead(vocabulary("byte_level")).generate(model, ids, max_new_tokens=30), vanilla)

"""`Lookahead.generate`, which keeps the arguments that `generate(custom_generate=...)` loses."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from transformers import GenerationConfig
from transformers.generation.stopping_criteria import StoppingCriteriaList
from transformers.generation.streamers import BaseStreamer

from lookahead import Lookahead
from tests.models import VOCABULARY, prompt, tiny
from tests.vocabularies import LETTERS, letters

TOKENIZER = letters()


def text(ids: torch.Tensor) -> str:
    return "".join(LETTERS[token] for token in ids[0].tolist())


def stop_string(seed: int) -> str:
    """Return three letters in a row, from the middle of what the model says."""
    said = text(tiny().generate(prompt(seed=seed), max_new_tokens=40))
    return said[-20:-17]


class Ear(BaseStreamer):
    """Writes down what it hears."""

    def __init__(self) -> None:
        self.heard: list[Any] = []

    def put(self, value: torch.Tensor) -> None:
        self.heard.append(value.tolist())

    def end(self) -> None:
        self.heard.append("end")


def test_the_tokenizer_of_these_tests_writes_letters() -> None:
    assert len(LETTERS) == VOCABULARY
    assert TOKENIZER("hello")["input_ids"] == [LETTERS.index(letter) for letter in "hello"]
    assert TOKENIZER.decode([0, 1, 2]) == "abc"


@pytest.mark.parametrize("given", ["to the object", "to the call"])
def test_stop_strings_as_an_argument(given: str) -> None:
    for seed in range(3):
        ids, stops = prompt(seed=seed), stop_string(seed)
        vanilla = tiny().generate(ids, max_new_tokens=40, stop_strings=stops, tokenizer=TOKENIZER)
        assert text(vanilla).endswith(stops) and vanilla.shape[1] < ids.shape[1] + 40
        if given == "to the object":
            ours = Lookahead(TOKENIZER).generate(tiny(), ids, max_new_tokens=40, stop_strings=stops)
        else:
            ours = Lookahead().generate(tiny(), ids, max_new_tokens=40, stop_strings=[stops], tokenizer=TOKENIZER)
        assert torch.equal(ours, vanilla)


def test_stop_strings_in_a_generation_config() -> None:
    ids, config = prompt(), GenerationConfig(max_new_tokens=40, stop_strings=[stop_string(0)], pad_token_id=0)
    vanilla = tiny().generate(ids, generation_config=config, tokenizer=TOKENIZER)
    assert vanilla.shape[1] < ids.shape[1] + 40
    assert torch.equal(Lookahead(TOKENIZER).generate(tiny(), ids, generation_config=config), vanilla)
    assert config.stop_strings == [stop_string(0)], "the caller's config stays as it is"


@pytest.mark.parametrize("other", [None, GenerationConfig(max_new_tokens=40, pad_token_id=0)], ids=["none", "another"])
def test_stop_strings_in_the_models_own_config(other: GenerationConfig | None) -> None:
    model, ids = copy.deepcopy(tiny()), prompt()
    model.generation_config.stop_strings = stop_string(0)
    model.generation_config.max_new_tokens = 40
    vanilla = model.generate(ids, generation_config=other, tokenizer=TOKENIZER)
    assert vanilla.shape[1] < ids.shape[1] + 40
    assert torch.equal(Lookahead(TOKENIZER).generate(model, ids, generation_config=other), vanilla)
    assert model.generation_config.stop_strings == stop_string(0)


def test_an_argument_overrules_the_configs() -> None:
    model, ids = copy.deepcopy(tiny()), prompt()
    model.generation_config.stop_strings = stop_string(0)
    for stops in (None, text(tiny().generate(ids, max_new_tokens=40))[-9:-6]):
        vanilla = model.generate(ids, max_new_tokens=40, stop_strings=stops, tokenizer=TOKENIZER)
        ours = Lookahead(TOKENIZER).generate(model, ids, max_new_tokens=40, stop_strings=stops)
        assert torch.equal(ours, vanilla)


def test_stop_strings_with_criteria_of_ones_own() -> None:
    ids, stops, calls = prompt(), stop_string(0), list[int]()

    def count(input_ids: torch.Tensor, scores: Any, **kwargs: Any) -> torch.Tensor:
        calls.append(input_ids.shape[1])
        return torch.tensor([False])

    ours = Lookahead(TOKENIZER).generate(tiny(), ids, max_new_tokens=40, stop_strings=stops, stopping_criteria=[count])
    vanilla = tiny().generate(ids, max_new_tokens=40, stop_strings=stops, tokenizer=TOKENIZER)
    assert torch.equal(ours, vanilla)
    assert calls == [*range(ids.shape[1] + 1, ours.shape[1] + 1)]


@pytest.mark.parametrize("where", ["argument", "config", "model"])
def test_stop_strings_without_a_tokenizer_are_refused(where: str) -> None:
    model, kwargs = copy.deepcopy(tiny()), dict[str, Any]()
    if where == "argument":
        kwargs["stop_strings"] = "x"
    elif where == "config":
        kwargs["generation_config"] = GenerationConfig(stop_strings="x", max_new_tokens=5)
    else:
        model.generation_config.stop_strings = "x"
    with pytest.raises(ValueError, match="stop_strings need the tokenizer: give it to Lookahead"):
        Lookahead().generate(model, prompt(), **kwargs)


def test_custom_generate_is_not_given_twice() -> None:
    with pytest.raises(ValueError, match="custom_generate is set by Lookahead.generate itself; leave it out"):
        Lookahead().generate(tiny(), prompt(), custom_generate=Lookahead())


def test_a_streamer_hears_the_prompt_every_token_and_the_end() -> None:
    ids, ear = prompt(), Ear()
    ours = Lookahead().generate(tiny(), ids, max_new_tokens=20, streamer=ear)
    assert ear.heard == [ids.tolist(), *([token] for token in ours[0, ids.shape[1] :].tolist()), "end"]


def test_a_streamer_given_by_direct_call_hears_every_token_and_the_end() -> None:
    ear, lookahead = Ear(), Lookahead()

    def with_streamer(*args: Any, **kwargs: Any) -> Any:
        return lookahead(*args, streamer=ear, **kwargs)

    ours = tiny().generate(prompt(), max_new_tokens=20, custom_generate=with_streamer)
    assert [row for row in ear.heard if row != "end"][-20:] == [[token] for token in ours[0, -20:].tolist()]
    assert ear.heard[-1] == "end"


@pytest.mark.parametrize("settings", [{}, {"do_sample": True, "temperature": 0.4}, {"eos_token_id": [11, 17]}], ids=str)
def test_output_is_that_of_generate(settings: dict[str, Any]) -> None:
    for seed in range(3):
        ids, outputs = prompt(seed=seed), []
        for generate in (tiny().generate, lambda *args, **kwargs: Lookahead().generate(tiny(), *args, **kwargs)):
            torch.manual_seed(seed)
            outputs.append(generate(ids, max_new_tokens=40, **settings))
        assert torch.equal(*outputs)


def test_ids_by_keyword_and_output_as_a_dict() -> None:
    ids, lookahead = prompt(), Lookahead()
    ours = lookahead.generate(tiny(), input_ids=ids, max_new_tokens=20, return_dict_in_generate=True)
    assert torch.equal(ours.sequences, tiny().generate(ids, max_new_tokens=20))
    assert ours.stats is lookahead.stats
    assert ours.stats.tokens == len(ours.stats.token_sources) == 20


def test_the_callers_arguments_stay_as_they_are() -> None:
    criteria: list[Any] = []
    kwargs = {"max_new_tokens": 20, "stop_strings": ["qqq"], "stopping_criteria": criteria}
    before = dict(kwargs)
    Lookahead(TOKENIZER).generate(tiny(), prompt(), **kwargs)
    assert kwargs == before
    assert criteria == []


def test_a_direct_call_may_pass_the_length_of_the_config_as_the_stock_methods_do() -> None:
    model, ids, outputs = tiny(), prompt(), []
    for decode in (type(model)._sample, Lookahead()):

        def at_55(input_ids: torch.Tensor, scores: Any, **kwargs: Any) -> torch.Tensor:
            return torch.tensor([input_ids.shape[1] >= 55])

        def method(model: Any, *args: Any, generation_config: Any, decode: Any = decode, **kwargs: Any) -> Any:
            generation_config.max_length = 20
            kwargs["stopping_criteria"] = StoppingCriteriaList([at_55])
            kwargs.pop("synced_gpus", None)
            return decode(model, *args, generation_config=generation_config, **kwargs)

        outputs.append(model.generate(ids, max_new_tokens=40, custom_generate=method))
    assert outputs[0].shape[1] == 55
    assert torch.equal(*outputs)

"""What phrases and schemas dictate is accepted where the model says it, and changes nothing where it does not."""

from __future__ import annotations

import json

import pytest
import torch

from benchmarks.forcing import Forced
from lookahead import Lookahead
from lookahead.stats import Stats
from tests.models import tiny
from tests.vocabularies import vocabulary

TOOL = {
    "name": "look_for_text",
    "description": "Look for a text.",
    "parameters": {
        "type": "object",
        "properties": {name: {"type": "string"} for name in ("some_folder", "wanted_text", "why_it_is_wanted")},
        "required": ["some_folder", "wanted_text", "why_it_is_wanted"],
    },
}
OFFER = f"Call a tool within <tool_call></tool_call>: {json.dumps(TOOL)}"
LICENCE = "Licensed under the Apache License, Version 2.0; you may not use this file except in compliance."


def decode(prompt: str, answer: str, **options: object) -> Stats:
    """Decode a forced answer with lookahead and without; return what happened with it."""
    tokenizer = vocabulary("byte_level")
    model, ids = tiny(vocabulary=512), torch.tensor([tokenizer(prompt, add_special_tokens=False)["input_ids"]])
    said = tokenizer(answer, add_special_tokens=False)["input_ids"]
    ahead = Lookahead(tokenizer, cost="linear:0.002", **options)

    def run(**settings: object) -> torch.Tensor:
        with Forced(model, ids.shape[1], said):
            return model.generate(ids, max_new_tokens=len(said), do_sample=False, **settings)

    assert run(custom_generate=ahead).equal(run())
    return ahead.stats


def test_a_phrase_that_the_model_says_is_accepted() -> None:
    stats = decode("Write it:", f"x = 1\n{LICENCE}\n", phrases=["never said by anyone, not even once", LICENCE])
    assert stats.accepted_by_source["phrase"] > 20
    assert 2 * stats.forwards < decode("Write it:", f"x = 1\n{LICENCE}\n").forwards


@pytest.mark.parametrize("answer", ["x = 1\ny = x + 2\n", "Licensed to nobody, under no terms at all.\n"])
def test_phrases_that_the_model_does_not_say_cost_no_forward(answer: str) -> None:
    given, without = (decode("Write it:", answer, phrases=phrases) for phrases in ([LICENCE], []))
    assert given.forwards <= without.forwards + 1
    assert ("phrase" in given.drafted_by_source) == answer.startswith("Licensed")


def call(**arguments: str) -> str:
    return f"<tool_call>\n{json.dumps({'name': 'look_for_text', 'arguments': arguments})}\n</tool_call>"


def test_the_keys_of_a_tool_are_accepted_in_the_order_of_its_schema() -> None:
    answer = call(some_folder="src", wanted_text="abc", why_it_is_wanted="no idea")
    stats = decode(OFFER, answer)
    without = decode(OFFER.replace('"properties"', '"propertiez"'), answer)
    assert stats.accepted_by_source["schema"] > 20 and stats.forwards < without.forwards - 5
    assert "schema" not in without.drafted_by_source


@pytest.mark.parametrize("answer", ["x = 1\ny = x + 2\n", '<tool_call>\n{"name": "look_for_text", "with": {"x": 1}}'])
def test_a_schema_that_the_model_does_not_follow_costs_no_forward(answer: str) -> None:
    given, without = (decode(offer, answer) for offer in (OFFER, OFFER.replace('"properties"', '"propertiez"')))
    assert given.forwards <= without.forwards + 1
    assert ("schema" in given.drafted_by_source) == answer.startswith("<")

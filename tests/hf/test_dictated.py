"""What phrases and schemas dictate is accepted where the model says it, and changes nothing where it does not."""

from __future__ import annotations

import pytest
import torch
from transformers import LogitsProcessorList

from benchmarks.forced import Force
from lookahead import Lookahead
from lookahead.stats import Stats
from tests.models import tiny
from tests.vocabularies import vocabulary

LICENCE = "Licensed under the Apache License, Version 2.0; you may not use this file except in compliance."


def decode(prompt: str, answer: str, **options: object) -> Stats:
    """Decode a forced answer with lookahead and without; return what happened with it."""
    tokenizer = vocabulary("byte_level")
    model, ids = tiny(vocabulary=512), torch.tensor([tokenizer(prompt, add_special_tokens=False)["input_ids"]])
    said = tokenizer(answer, add_special_tokens=False)["input_ids"]
    ahead = Lookahead(tokenizer, cost="linear:0.002", **options)

    def run(**settings: object) -> torch.Tensor:
        forced = LogitsProcessorList([Force(ids, [said])])
        return model.generate(ids, max_new_tokens=len(said), do_sample=False, logits_processor=forced, **settings)

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

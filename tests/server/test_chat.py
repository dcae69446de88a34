"""Chats through the real openai client: the answers are those of `generate`."""

from __future__ import annotations

import json
from typing import Any

import openai
import pytest
import torch

from tests.server.serving import NAME, model, prompt_of, tokenizer, vanilla
from tests.vocabularies import SAMPLE

MESSAGES: list[Any] = [
    {"role": "system", "content": "Write code."},
    {"role": "user", "content": f"Repeat this:\n{SAMPLE[:300]}"},
]


def test_a_greedy_answer_is_that_of_generate(client: openai.OpenAI) -> None:
    expected, tokens = vanilla(prompt_of(MESSAGES), max_new_tokens=60, do_sample=False)
    answer = client.chat.completions.create(model=NAME, messages=MESSAGES, max_tokens=60, temperature=0)
    assert answer.choices[0].message.content == expected
    assert answer.choices[0].finish_reason == ("stop" if tokens[-1] == tokenizer().eos_token_id else "length")
    assert answer.usage.completion_tokens == len(tokens)
    assert answer.usage.prompt_tokens == prompt_of(MESSAGES).shape[1]


@pytest.mark.parametrize("seed", [0, 7])
def test_a_sampled_answer_is_that_of_generate_with_the_seed(client: openai.OpenAI, seed: int) -> None:
    settings: dict[str, Any] = {"temperature": 0.8, "top_p": 0.9}
    expected, _ = vanilla(prompt_of(MESSAGES), seed, max_new_tokens=50, do_sample=True, **settings)
    given = {"model": NAME, "messages": MESSAGES, "max_completion_tokens": 50, "seed": seed, **settings}
    assert client.chat.completions.create(**given).choices[0].message.content == expected


def test_a_stream_says_the_same_in_parts(client: openai.OpenAI) -> None:
    expected, tokens = vanilla(prompt_of(MESSAGES), max_new_tokens=60, do_sample=False)
    stream = client.chat.completions.create(
        model=NAME,
        messages=MESSAGES,
        max_tokens=60,
        temperature=0,
        stream=True,
        stream_options={"include_usage": True},
    )
    chunks = list(stream)
    told = [chunk for chunk in chunks if chunk.choices]
    assert "".join(chunk.choices[0].delta.content or "" for chunk in told) == expected
    assert told[0].choices[0].delta.role == "assistant"
    assert told[-1].choices[0].finish_reason in ("stop", "length")
    assert [chunk.usage.completion_tokens for chunk in chunks if chunk.usage] == [len(tokens)]
    assert len({chunk.id for chunk in chunks}) == 1


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_ends_before_a_stop_sequence(client: openai.OpenAI, stream: bool) -> None:
    whole, tokens = vanilla(prompt_of(MESSAGES), max_new_tokens=60, do_sample=False)
    stop = whole[20:25]
    given = {"model": NAME, "messages": MESSAGES, "max_tokens": 60, "temperature": 0, "stop": [stop, "never"]}
    if stream:
        chunks = list(client.chat.completions.create(**given, stream=True))
        text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
        reason = chunks[-1].choices[0].finish_reason
    else:
        answer = client.chat.completions.create(**given)
        text, reason = answer.choices[0].message.content, answer.choices[0].finish_reason
        assert answer.usage.completion_tokens < len(tokens)
    assert (text, reason) == (whole[: whole.index(stop)], "stop")


def test_several_answers_have_seeds_of_their_own(client: openai.OpenAI) -> None:
    given = {"model": NAME, "messages": MESSAGES, "max_tokens": 20, "temperature": 1.0}
    answer = client.chat.completions.create(**given, n=3, seed=5)
    expected = [
        vanilla(prompt_of(MESSAGES), 5 + one, max_new_tokens=20, do_sample=True, temperature=1.0)[0] for one in range(3)
    ]
    assert [choice.message.content for choice in answer.choices] == expected
    assert answer.usage.prompt_tokens == prompt_of(MESSAGES).shape[1]
    chunks = list(client.chat.completions.create(**given, n=3, seed=5, stream=True))
    texts = ["", "", ""]
    for chunk in chunks:
        texts[chunk.choices[0].index] += chunk.choices[0].delta.content or ""
    assert texts == expected


def test_logprobs_are_the_models_own(client: openai.OpenAI) -> None:
    ids = prompt_of(MESSAGES)
    given = {"model": NAME, "messages": MESSAGES, "max_tokens": 12, "temperature": 0.5, "seed": 3}
    answer = client.chat.completions.create(**given, logprobs=True, top_logprobs=4)
    _, tokens = vanilla(ids, 3, max_new_tokens=12, do_sample=True, temperature=0.5)
    told = answer.choices[0].logprobs.content
    with torch.no_grad():
        logits = model()(torch.cat([ids, torch.tensor([tokens])], dim=1)).logits[0, ids.shape[1] - 1 : -1]
    expected = logits.float().log_softmax(-1)
    assert [one.token for one in told] == [tokenizer().decode([token]) for token in tokens]
    assert [one.logprob for one in told] == pytest.approx(
        [float(row[token]) for row, token in zip(expected, tokens, strict=True)], abs=1e-4
    )
    for row, one in zip(expected, told, strict=True):
        assert [top.logprob for top in one.top_logprobs] == pytest.approx(row.topk(4).values.tolist(), abs=1e-4)


def test_a_prediction_is_counted_and_changes_nothing(client: openai.OpenAI) -> None:
    expected, _ = vanilla(prompt_of(MESSAGES), max_new_tokens=60, do_sample=False)
    given = {"model": NAME, "messages": MESSAGES, "max_tokens": 60, "temperature": 0}
    parts = [{"type": "text", "text": expected}]
    for user, content in (("a text", expected), ("parts", parts)):  # what a user said before would be drafted, too
        answer = client.chat.completions.create(**given, user=user, prediction={"type": "content", "content": content})
        details = answer.usage.completion_tokens_details
        assert answer.choices[0].message.content == expected
        assert details.accepted_prediction_tokens > 10
        assert details.rejected_prediction_tokens >= 0


def test_the_next_turn_reads_only_what_is_new(client: openai.OpenAI) -> None:
    given = {"model": NAME, "max_tokens": 30, "temperature": 0, "user": "turns"}
    first = client.chat.completions.create(messages=MESSAGES, **given)
    answered = {"role": "assistant", "content": first.choices[0].message.content}
    following = [*MESSAGES, answered, {"role": "user", "content": "Again."}]
    second = client.chat.completions.create(messages=following, **given)
    expected, _ = vanilla(prompt_of(following), max_new_tokens=30, do_sample=False)
    assert second.choices[0].message.content == expected
    assert first.usage.prompt_tokens_details.cached_tokens == 0
    assert second.usage.prompt_tokens_details.cached_tokens >= first.usage.prompt_tokens - 1
    stranger = client.chat.completions.create(messages=following, **{**given, "user": "somebody else"})
    assert stranger.usage.prompt_tokens_details.cached_tokens == 0
    assert stranger.choices[0].message.content == expected


def test_biases_and_penalties_add_up(client: openai.OpenAI) -> None:
    one, other = (tokenizer()(word)["input_ids"][0] for word in ("self", "item"))
    bias = {str(one): 100, str(other): 99}
    given = {"model": NAME, "messages": MESSAGES, "max_tokens": 4, "temperature": 0}
    answer = client.chat.completions.create(**given, logit_bias={str(one): 100})
    assert answer.choices[0].message.content == tokenizer().decode([one] * 4)
    given |= {"max_tokens": 40, "logprobs": True}
    answer = client.chat.completions.create(**given, logit_bias=bias, frequency_penalty=2)
    found = [told.token for told in answer.choices[0].logprobs.content]
    assert set(found) == {"self", "item"} and 10 <= found.count("self") <= 30


def test_a_completion_goes_on_with_a_text(client: openai.OpenAI) -> None:
    ids = tokenizer()(SAMPLE[:200], return_tensors="pt")["input_ids"]
    expected, _ = vanilla(ids, max_new_tokens=25, do_sample=False)
    given = {"model": NAME, "max_tokens": 25, "temperature": 0}
    assert client.completions.create(prompt=SAMPLE[:200], **given).choices[0].text == expected
    assert client.completions.create(prompt=ids[0].tolist(), **given).choices[0].text == expected
    echoed = client.completions.create(prompt=SAMPLE[:200], echo=True, logprobs=2, **given).choices[0]
    assert echoed.text == SAMPLE[:200] + expected
    assert echoed.logprobs.text_offset[0] == 200 and len(echoed.logprobs.top_logprobs[0]) == 2
    both = client.completions.create(prompt=[SAMPLE[:200], SAMPLE[5:90]], n=2, **given)
    assert [choice.index for choice in both.choices] == [0, 1, 2, 3]
    assert [choice.text for choice in both.choices[:2]] == [expected] * 2
    streamed = client.completions.create(prompt=SAMPLE[:200], stream=True, **given)
    assert "".join(chunk.choices[0].text for chunk in streamed) == expected


def test_the_model_is_listed(client: openai.OpenAI) -> None:
    assert [one.id for one in client.models.list()] == [NAME]
    assert client.models.retrieve(NAME).id == NAME


def test_an_answer_in_json_follows_its_schema(client: openai.OpenAI) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    pytest.importorskip("xgrammar")
    schema = {
        "type": "object",
        "properties": {
            "tool": {"enum": ["read", "write"]},
            "lines": {"type": "array", "items": {"enum": [1, 22]}, "maxItems": 3},
        },
        "required": ["tool", "lines"],
        "additionalProperties": False,
    }
    answer = client.chat.completions.create(
        model=NAME,
        messages=MESSAGES,
        max_tokens=200,
        temperature=0,
        response_format={"type": "json_schema", "json_schema": {"name": "edit", "schema": schema, "strict": True}},
    )
    jsonschema.validate(json.loads(answer.choices[0].message.content), schema)
    assert answer.choices[0].finish_reason == "stop"

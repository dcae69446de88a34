"""Packages that call `generate` inside themselves, under `lookahead.enabled`: the real ones, with a tiny model."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from transformers import PreTrainedTokenizerBase, pipeline

import lookahead
from tests.models import prompt, tiny
from tests.vocabularies import letters

NEW = 40


@pytest.fixture
def model() -> Any:
    """A model of the test's own."""
    return copy.deepcopy(tiny())


@pytest.fixture
def tokenizer() -> PreTrainedTokenizerBase:
    """A letter for each token, and messages one after the other."""
    made = letters()
    made.add_special_tokens({"eos_token": "c", "pad_token": "a"})
    made.chat_template = "{% for message in messages %}{{ message['content'] }}{% endfor %}"
    return made


@pytest.fixture
def folder(model: Any, tokenizer: PreTrainedTokenizerBase, tmp_path: Path) -> str:
    """Both, saved."""
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    return str(tmp_path)


def text(seed: int = 0) -> str:
    return "".join(letters().convert_ids_to_tokens(prompt(seed=seed)[0].tolist()))


@contextmanager
def fewer_forwards(model: Any, tokenizer: Any) -> Iterator[None]:
    """Expect that what is generated inside takes fewer forwards than tokens."""
    with lookahead.enabled(model, tokenizer, cost="linear:0") as ahead:
        yield
    assert 0 < ahead.stats.forwards < ahead.stats.tokens


def left_to_generate(model: Any, reason: str, call: Callable[[], Any]) -> None:
    """Expect that a call gives what it gives without lookahead, with one warning."""
    vanilla = call()
    with lookahead.enabled(model) as ahead, pytest.warns(UserWarning, match=reason) as warned:
        assert call() == vanilla
        assert call() == vanilla
    assert len([one for one in warned if "lookahead is left out" in str(one.message)]) == 1
    assert ahead.stats.tokens == 0


# ---- transformers' pipeline ----


def test_a_pipeline(model: Any, tokenizer: Any) -> None:
    generator = pipeline("text-generation", model=model, tokenizer=tokenizer)

    def call(given: Any, **kwargs: Any) -> Any:
        return generator(given, max_new_tokens=NEW, do_sample=False, **kwargs)

    messages = [{"role": "user", "content": text()}]
    for given in (text(), messages, [text(seed) for seed in range(3)]):
        vanilla = call(given)
        with fewer_forwards(model, tokenizer):
            assert call(given) == vanilla
    stop = call(text(), return_full_text=False)[0]["generated_text"][20:23]
    vanilla = call(text(), stop_strings=[stop], tokenizer=tokenizer)
    with fewer_forwards(model, tokenizer):
        assert call(text(), stop_strings=[stop], tokenizer=tokenizer) == vanilla
    left_to_generate(model, "asks for beam search", lambda: call(messages, num_beams=2))


# ---- smolagents: generates in a thread, with a streamer and stopping criteria of its own ----


def test_smolagents(folder: str) -> None:
    from smolagents import ChatMessage, TransformersModel

    agent = TransformersModel(folder, device_map="cpu", max_new_tokens=NEW)
    messages = [ChatMessage("user", [{"type": "text", "text": text()}])]

    def whole(**kwargs: Any) -> Any:
        return agent.generate(messages, do_sample=False, **kwargs).content

    def streamed(**kwargs: Any) -> list[str]:
        return [part.content for part in agent.generate_stream(messages, do_sample=False, **kwargs)]

    stop = whole()[20:23]
    for call in (whole, streamed):
        for settings in ({}, {"stop_sequences": [stop]}):
            vanilla = call(**settings)
            with fewer_forwards(agent.model, agent.tokenizer):
                assert call(**settings) == vanilla
        assisted = {"prompt_lookup_num_tokens": 3}
        left_to_generate(agent.model, "asks for assisted decoding", lambda c=call, s=assisted: c(**s))


# ---- LangChain ----


def test_langchain(model: Any, tokenizer: Any) -> None:
    from langchain_huggingface import ChatHuggingFace, HuggingFacePipeline

    settings = {"max_new_tokens": NEW, "do_sample": False}
    llm = HuggingFacePipeline(pipeline=pipeline("text-generation", model=model, tokenizer=tokenizer, **settings))
    chat = ChatHuggingFace(llm=llm, tokenizer=tokenizer)
    calls: list[Callable[[], Any]] = [
        lambda: llm.invoke(text()),
        lambda: llm.batch([text(0), text(1)]),
        lambda: list(llm.stream(text())),
        lambda: chat.invoke([("user", text())]).content,
    ]
    for call in calls:
        vanilla = call()
        with fewer_forwards(model, tokenizer):
            assert call() == vanilla
    beams = {"num_beams": 2}
    left_to_generate(model, "asks for beam search", lambda: llm.invoke(text(), pipeline_kwargs=beams))


# ---- lm-eval ----


def test_lm_eval(model: Any, tokenizer: Any) -> None:
    pytest.importorskip("lm_eval", reason="pip install hf-lookahead[integrations]")
    from lm_eval.api.instance import Instance
    from lm_eval.models.huggingface import HFLM

    def answers(batch_size: int) -> Callable[[], list[str]]:
        settings = {"until": ["9"], "max_gen_toks": NEW, "do_sample": False}
        requests = [Instance("generate_until", {}, (text(seed), settings), seed) for seed in range(3)]
        harness = HFLM(pretrained=model, tokenizer=tokenizer, batch_size=batch_size)
        return lambda: harness.generate_until(requests, disable_tqdm=True)

    one = answers(1)
    vanilla = one()
    with fewer_forwards(model, tokenizer):
        assert one() == vanilla
    left_to_generate(model, "MultiTokenEOSCriteria may keep a state for each row", answers(3))


# ---- peft ----


@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated:FutureWarning")  # peft asks for it
def test_peft(model: Any) -> None:
    import peft

    config = peft.LoraConfig(task_type="CAUSAL_LM", target_modules=["q_proj", "v_proj"], init_lora_weights=False)
    plain = model.generate(prompt(), max_new_tokens=NEW).tolist()
    adapted = peft.get_peft_model(model, config)

    def call(**kwargs: Any) -> Any:
        return adapted.generate(prompt(), max_new_tokens=NEW, **kwargs).tolist()

    vanilla = call()
    assert vanilla != plain
    with fewer_forwards(adapted, None):
        assert call() == vanilla
    left_to_generate(adapted, "asks for beam search", lambda: call(num_beams=2))

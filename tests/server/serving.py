"""A tiny model that chats, behind a real server in a thread."""

from __future__ import annotations

import contextlib
import copy
import functools
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from lookahead.server.app import Service
from lookahead.server.limits import Limits
from lookahead.server.running import Server
from tests.models import tiny
from tests.vocabularies import vocabulary

NAME = "tiny"
HERMES = (
    "{% if tools %}tools as <tool_call>: {{ tools | tojson }}\n{% endif %}"
    "{% for message in messages %}<{{ message.role }}>{{ message.content }}"
    "{% for call in message.tool_calls or [] %}<tool_call>{{ call.function | tojson }}</tool_call>{% endfor %}\n"
    "{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"
)


@functools.cache
def tokenizer() -> Any:
    own = copy.deepcopy(vocabulary("byte_level"))
    own.chat_template = HERMES
    return own


@functools.cache
def model(kind: str = "llama") -> Any:
    """Return a model of the tokenizer's size of whose words ends come seldom, in float64: runs are equal."""
    own = copy.deepcopy(tiny(kind, vocabulary=len(tokenizer())))
    own.generation_config.eos_token_id = tokenizer().eos_token_id
    return own


def prompt_of(messages: list[dict[str, Any]], **kwargs: Any) -> torch.Tensor:
    """Return the ids of a chat, int64 [1, length]."""
    text = tokenizer().apply_chat_template(messages, add_generation_prompt=True, tokenize=False, **kwargs)
    ids: torch.Tensor = tokenizer()(text, add_special_tokens=False, return_tensors="pt")["input_ids"]
    return ids


def vanilla(ids: torch.Tensor, seed: int = 0, **kwargs: Any) -> tuple[str, list[int]]:
    """Return what `generate` answers, without the end token, and all its tokens."""
    torch.manual_seed(seed)
    out = model().generate(ids, attention_mask=torch.ones_like(ids), **kwargs)[0, ids.shape[1] :].tolist()
    return tokenizer().decode(out, skip_special_tokens=True), out


def saved(folder: Path) -> Path:
    """Write the tiny model that chats into a folder."""
    model().save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return folder


class Running:
    """A server in a thread."""

    def __init__(self, server: Server, service: Service) -> None:
        self.server, self.service = server, service
        self._thread = threading.Thread(target=server.run, daemon=True)

    def start(self) -> None:
        self._thread.start()
        wait_for(lambda: self.server.started)

    def join(self) -> None:
        self._thread.join(timeout=60)
        assert not self._thread.is_alive()

    @property
    def url(self) -> str:
        return self.server.url


@contextlib.contextmanager
def running(
    limits: Limits | None = None, key: str | None = None, grace: float = 5, target: Any = None
) -> Iterator[Running]:
    """Serve a model, by itself the tiny one, until the block is left."""
    service = Service.of(target or model(), tokenizer(), NAME, limits or Limits(), cost="linear:0.01")
    server = Running(Server(service, "127.0.0.1", 0, key, grace, log_level="warning"), service)
    server.start()
    try:
        yield server
    finally:
        server.server.finish()
        server.join()


def wait_for(condition: Any, seconds: float = 30) -> None:
    """Wait until something holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come true"
        time.sleep(0.005)

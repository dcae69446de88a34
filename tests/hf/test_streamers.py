"""The streamers of transformers hear the same pieces of text as without lookahead."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
from transformers import AsyncTextIteratorStreamer, TextIteratorStreamer, TextStreamer

from lookahead import Lookahead
from tests.models import tiny
from tests.vocabularies import SAMPLE, vocabulary

SETTINGS = [{}, {"do_sample": True, "temperature": 0.7}]
TOKENIZER = vocabulary("byte_level")


def speak(lookahead: Lookahead | None, streamer: Any, settings: dict[str, Any]) -> None:
    """Generate without or with lookahead, from one seed."""
    model = tiny(vocabulary=len(TOKENIZER))
    ids = TOKENIZER(SAMPLE, return_tensors="pt")["input_ids"]
    generate: Callable[..., Any] = model.generate
    if lookahead is not None:
        generate = lambda *args, **kwargs: lookahead.generate(model, *args, **kwargs)  # noqa: E731
    torch.manual_seed(0)
    generate(ids, streamer=streamer, max_new_tokens=60, **settings)


class Pieces(TextStreamer):
    """Writes down the pieces instead of printing them."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(TOKENIZER, **kwargs)
        self.pieces: list[tuple[str, bool]] = []

    def on_finalized_text(self, text: str, stream_end: bool = False) -> None:
        self.pieces.append((text, stream_end))


def both(listen: Callable[[Lookahead | None], Any]) -> tuple[Any, Any]:
    """Listen without and with lookahead, which really drafts."""
    lookahead = Lookahead(TOKENIZER, cost="linear:0")
    found = listen(None), listen(lookahead)
    assert lookahead.stats.accepted > 0
    return found


@pytest.mark.parametrize("skip_prompt", [False, True])
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_pieces_of_text(settings: dict[str, Any], skip_prompt: bool) -> None:
    def listen(lookahead: Lookahead | None) -> list[tuple[str, bool]]:
        streamer = Pieces(skip_prompt=skip_prompt)
        speak(lookahead, streamer, settings)
        return streamer.pieces

    vanilla, ours = both(listen)
    assert ours == vanilla and len(ours) > 2


def test_text_on_the_screen(capsys: pytest.CaptureFixture[str]) -> None:
    def listen(lookahead: Lookahead | None) -> str:
        speak(lookahead, TextStreamer(TOKENIZER), {})
        return capsys.readouterr().out

    vanilla, ours = both(listen)
    assert ours == vanilla and ours.startswith(SAMPLE[:40])


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_an_iterator_in_another_thread(settings: dict[str, Any]) -> None:
    def listen(lookahead: Lookahead | None) -> list[str]:
        streamer = TextIteratorStreamer(TOKENIZER, skip_prompt=True, timeout=60)
        thread = threading.Thread(target=speak, args=(lookahead, streamer, settings))
        thread.start()
        pieces = list(streamer)
        thread.join()
        return pieces

    vanilla, ours = both(listen)
    assert ours == vanilla and len(ours) > 2


@pytest.mark.skipif(sys.version_info < (3, 11), reason="that streamer needs asyncio.timeout")
def test_an_asynchronous_iterator() -> None:
    async def gather(lookahead: Lookahead | None) -> list[str]:
        streamer = AsyncTextIteratorStreamer(TOKENIZER, skip_prompt=True)
        speaking = asyncio.create_task(asyncio.to_thread(speak, lookahead, streamer, {}))
        pieces = [piece async for piece in streamer]
        await speaking
        return pieces

    vanilla, ours = both(lambda lookahead: asyncio.run(gather(lookahead)))
    assert ours == vanilla and len(ours) > 2

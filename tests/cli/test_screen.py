"""An answer is shown piece by piece as the tokenizer decodes it as a whole, and gives the terminal no orders."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from lookahead import Stats
from lookahead.cli.screen import Screen
from tests.vocabularies import KINDS, SAMPLE, vocabulary


def shown(tokenizer: Any, ids: list[int], console: Console | None = None, ahead: Any = None) -> Screen:
    """Stream tokens, the source of each being known before it is shown."""
    screen = Screen(tokenizer, console, ahead)
    screen.put(torch.tensor([[1, 2, 3]]))
    for number, one in enumerate(ids):
        if ahead is not None:
            ahead.stats.emit(("model", "prompt", "output")[number % 3])
        screen.put(torch.tensor([one]))
    screen.end()
    return screen


TEXTS = (SAMPLE, "naïve █ 雪❄️ and\n\n  text\n", "  two  spaces ", "\n\n")


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_pieces_are_the_whole(kind: str, text: str) -> None:
    tokenizer = vocabulary(kind)
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    assert shown(tokenizer, ids).text == tokenizer.decode(ids, skip_special_tokens=True)


@given(st.lists(st.integers(0, 255), max_size=40))
def test_bytes_that_are_no_characters_are_shown_in_the_end(values: list[int]) -> None:
    tokenizer = vocabulary("byte_level")
    alphabet = tokenizer.convert_tokens_to_ids(list(tokenizer.backend_tokenizer.pre_tokenizer.alphabet()))
    ids = [alphabet[value % len(alphabet)] for value in values]
    assert shown(tokenizer, ids).text == tokenizer.decode(ids, skip_special_tokens=True)


def test_a_terminal_sees_colours_and_hears_no_orders() -> None:
    tokenizer, out = vocabulary("byte_level"), io.StringIO()
    console = Console(file=out, force_terminal=True, color_system="standard", width=30)
    text = "red\x1b]0;title\x07 \x9b31m[bold]x[/bold] " + "long " * 12 + "\ttab\n"
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    screen = shown(tokenizer, ids, console, SimpleNamespace(stats=Stats()))
    assert screen.text == text
    for style in ("\x1b[1;31m", "\x1b[34m", "\x1b[32m"):
        assert style in out.getvalue()
    plain = out.getvalue()
    for style in ("\x1b[1;31m", "\x1b[34m", "\x1b[32m", "\x1b[0m"):
        plain = plain.replace(style, "")
    assert plain == text.replace("\x1b", "\u241b").replace("\x07", "\u2407").replace("\x9b", "\ufffd") + "\n"


def test_elsewhere_the_text_is_left_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    tokenizer = vocabulary("byte_level")
    ids = tokenizer("a\x1b[31m\nb", add_special_tokens=False)["input_ids"]
    shown(tokenizer, ids, Console(file=io.StringIO()))
    assert capsys.readouterr().out == "a\x1b[31m\nb"

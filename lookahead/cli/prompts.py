"""Prompts as they are given on the command line and in files."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

__all__ = ["Prompt", "encode", "joined", "read", "text_of"]

Prompt = str | list[dict[str, Any]]
"""A text, or the messages of a chat."""


def read(given: Sequence[str], file: Path | None) -> list[Prompt]:
    """Return the prompts of the command line, ``@FILE`` standing for a file's text, and those of a JSON Lines file.

    Raises
    ------
    ValueError
        For a file that cannot be read, a line that is no prompt, and where there is no prompt at all.
    """
    prompts: list[Prompt] = [text_of(Path(one[1:])) if one.startswith("@") else one for one in given]
    if file is not None:
        lines = enumerate(text_of(file).split("\n"), 1)
        prompts += [_parsed(line, f"line {number} of {file}") for number, line in lines if line.strip()]
    if not prompts:
        raise ValueError("there is no prompt; give --prompt TEXT, --prompt @FILE or --prompts FILE.jsonl")
    return prompts


def joined(prompt: str | None, files: Sequence[Path]) -> str:
    """Return one prompt: the texts of the files, then the prompt, with an empty line between them.

    A prompt of ``-`` stands for the standard input, as does no prompt at all where something comes from there.

    Raises
    ------
    ValueError
        For a file that cannot be read, and where there is no prompt.
    """
    parts = [text_of(file).strip("\n") for file in files]
    if prompt == "-" or (prompt is None and not parts and not sys.stdin.isatty()):
        parts.append(_standard_input())
    elif prompt is not None:
        parts.append(prompt)
    if not any(part.strip() for part in parts):
        raise ValueError("there is no prompt; give one as argument, with --file FILE, or through the standard input")
    return "\n\n".join(parts)


def encode(tokenizer: Any, prompt: Prompt, chat: bool | None, number: int) -> list[int]:
    """Return a prompt's ids.

    Parameters
    ----------
    tokenizer : PreTrainedTokenizerBase
        The model's tokenizer.
    prompt : str or list of dict
        A text or messages.
    chat : bool or None
        Write a text as a user's message by the tokenizer's chat template, or take it as it is; None does the first
        where there is a template.
    number : int
        The prompt's number, for errors.
    """
    if not prompt or (isinstance(prompt, str) and not prompt.strip()):
        raise ValueError(f"prompt {number} is empty; give it some text")
    has_template = bool(getattr(tokenizer, "chat_template", None))
    as_chat = not isinstance(prompt, str) or (has_template if chat is None else chat)
    if as_chat and not has_template:
        raise ValueError(f"the tokenizer has no chat template, which prompt {number} needs; give a text and --raw")
    if as_chat and chat is False:
        raise ValueError(f"prompt {number} is a list of messages, which --raw cannot write; leave out --raw")
    if not as_chat:
        ids: list[int] = tokenizer(prompt)["input_ids"]
        return ids
    messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
    text = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    return ids


def _standard_input() -> str:
    """Return what comes through the standard input."""
    try:
        return sys.stdin.read()
    except UnicodeDecodeError as error:
        raise ValueError(f"the standard input is not text in UTF-8 (byte {error.start}); give text") from error


def text_of(path: Path) -> str:
    """Return a file's text."""
    try:
        return path.expanduser().read_text(encoding="utf-8")
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror or error}; give a text file") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not text in UTF-8 (byte {error.start}); give a text file") from error


def _parsed(line: str, place: str) -> Prompt:
    """Return the prompt of a line: a JSON string, or an object with ``prompt`` or ``messages``."""
    try:
        value = json.loads(line)
    except json.JSONDecodeError as error:
        raise ValueError(f"{place} is not JSON ({error.msg}); a line is {_LINES}") from error
    if isinstance(value, dict):
        value = value.get("prompt", value.get("messages"))
    is_chat = isinstance(value, list) and all(isinstance(message, dict) for message in value)
    if not isinstance(value, str) and not is_chat:
        raise ValueError(f"{place} holds no prompt; a line is {_LINES}")
    prompt: Prompt = value
    return prompt


_LINES = '"text", {"prompt": "text"} or {"messages": [{"role": "user", "content": "text"}]}'

"""The main job as a prompt: a file, what to change in it, and the whole file as the answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

__all__ = ["FILE", "INSTRUCTION", "encode"]

_DATA = Path(__file__).parent / "data"
FILE = _DATA / "settings.env"
INSTRUCTION = (_DATA / "settings-change.md").read_text(encoding="utf-8")


def encode(tokenizer: Any, text: str, instruction: str) -> Any:
    """Return the ids and the mask of a chat that asks for the whole file; the answer's fence is opened already."""
    chat = [
        {"role": "user", "content": f"Here is a file:\n\n```\n{text}```"},
        {"role": "assistant", "content": "Which part has changed?"},
        {"role": "user", "content": f"{instruction}\nWrite the whole file."},
    ]
    written = tokenizer.apply_chat_template(chat, add_generation_prompt=True, tokenize=False) + "```\n"
    return tokenizer(written, add_special_tokens=False, return_tensors="pt")

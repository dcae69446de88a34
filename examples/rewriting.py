"""The task that the demo and its benchmark share: a model, a file, what to change, and the prompt that says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from transformers import AutoModelForCausalLM, AutoTokenizer

from examples import smollm2

__all__ = ["FILE", "INSTRUCTION", "load", "prompt"]

_DATA = Path(__file__).parent / "data"
FILE = _DATA / "settings.env"
INSTRUCTION = (_DATA / "settings-change.md").read_text(encoding="utf-8")


def load(name: str) -> tuple[Any, Any]:
    """Return a model and its tokenizer: ``smollm2``, a name on the Hugging Face hub, or a folder."""
    if name == "smollm2":
        return smollm2.load()
    return AutoModelForCausalLM.from_pretrained(name).eval(), AutoTokenizer.from_pretrained(name)


def prompt(tokenizer: Any, path: Path, instruction: str) -> Any:
    """Return the ids and the mask of a chat that asks for the whole file; the answer's fence is opened already."""
    chat = [
        {"role": "user", "content": f"Here is a file:\n\n```\n{path.read_text(encoding='utf-8')}```"},
        {"role": "assistant", "content": "Which part has changed?"},
        {"role": "user", "content": f"{instruction}\nWrite the whole file."},
    ]
    text = tokenizer.apply_chat_template(chat, add_generation_prompt=True, tokenize=False) + "```\n"
    return tokenizer(text, add_special_tokens=False, return_tensors="pt")

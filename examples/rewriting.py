"""The task that the demo and its benchmark share: a model, a file, what to change, and the prompt that says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from transformers import AutoModelForCausalLM, AutoTokenizer

from examples import smollm2
from lookahead.cli.rewriting import FILE, INSTRUCTION, encode

__all__ = ["FILE", "INSTRUCTION", "load", "prompt"]


def load(name: str) -> tuple[Any, Any]:
    """Return a model and its tokenizer: ``smollm2``, a name on the Hugging Face hub, or a folder."""
    if name == "smollm2":
        return smollm2.load()
    return AutoModelForCausalLM.from_pretrained(name).eval(), AutoTokenizer.from_pretrained(name)


def prompt(tokenizer: Any, path: Path, instruction: str) -> Any:
    """Return the ids and the mask of a chat that asks for the whole file; the answer's fence is opened already."""
    return encode(tokenizer, path.read_text(encoding="utf-8"), instruction)

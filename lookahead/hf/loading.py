"""A model and its tokenizer, by a name on the hub or from a folder."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils import logging

from . import smollm2

__all__ = ["DTYPES", "SMALL", "answer_length", "context_length", "load", "load_tokenizer", "room_behind"]

SMALL = "smollm2"  # the model that comes as a package

_LONG = 4096  # tokens of an answer of which nothing is said

DTYPES = ("auto", "float32", "bfloat16", "float16", "float64")


def load(name: str, dtype: str = "auto", device: str | None = None, trust_remote_code: bool = False) -> tuple[Any, Any]:
    """Return a causal language model in evaluation mode and its tokenizer, without progress bars.

    Parameters
    ----------
    name : str
        A name on the Hugging Face hub, a folder that ``save_pretrained`` has written, or `SMALL`.
    dtype : str
        One of `DTYPES`; ``"auto"`` takes the type in which the weights are stored.
    device : str, optional
        Such as ``"cpu"`` or ``"cuda:1"``; the accelerator when left out, where there is one.
    trust_remote_code : bool
        Run code that the model brings along.

    Raises
    ------
    ValueError
        Where there is no such model, dtype or device.
    ModuleNotFoundError
        Where the package of `SMALL` is not installed.
    """
    if dtype not in DTYPES:
        raise ValueError(f"dtype {dtype!r} is not known; allowed are {', '.join(DTYPES)}")
    hide: Any = logging.disable_progress_bar
    hide()
    place = _device(device)
    if name == SMALL:
        small, tokenizer = smollm2.load()
        return small.to(place, None if dtype == "auto" else getattr(torch, dtype)), tokenizer
    source = _source(name)
    with _loading(name, "a folder that save_pretrained has written"):
        tokenizer = AutoTokenizer.from_pretrained(source, trust_remote_code=trust_remote_code)
        model: Any = AutoModelForCausalLM.from_pretrained(
            source, dtype=dtype if dtype == "auto" else getattr(torch, dtype), trust_remote_code=trust_remote_code
        )
    return model.eval().to(place), tokenizer


def load_tokenizer(name: str, trust_remote_code: bool = False) -> Any:
    """Return a tokenizer by a name on the hub, from a folder, or that of `SMALL`.

    Raises
    ------
    ValueError
        Where there is none.
    ModuleNotFoundError
        Where the package of `SMALL` is not installed.
    """
    if name == SMALL:
        return smollm2.load_tokenizer()
    with _loading(name, "a folder where save_pretrained put a tokenizer"):
        return AutoTokenizer.from_pretrained(str(Path(name).expanduser()), trust_remote_code=trust_remote_code)


@contextlib.contextmanager
def _loading(name: str, allowed: str) -> Iterator[None]:
    """Tell what transformers says where it cannot load something, and what is allowed beside a name on the hub."""
    try:
        yield
    except (OSError, ValueError, ImportError) as error:
        said = " ".join(str(error).split())
        raise ValueError(
            f"{name} cannot be loaded; allowed is {allowed}, or a name on the Hugging Face hub, which must be within "
            f"reach. transformers says: {said}"
        ) from error


def context_length(model: Any) -> int | None:
    """Return how many tokens prompt and answer may have together; None where the model does not say."""
    length: int | None = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    return length


def answer_length(model: Any, prompt: int, wanted: int | None) -> int:
    """Return how many tokens an answer may have: those wanted, or as many as a model has positions for.

    Raises
    ------
    ValueError
        Where prompt and answer pass the model's positions.
    """
    room = room_behind(model, "the prompt", prompt, wanted or 1)
    if wanted is not None:
        return wanted
    return _LONG if room is None else min(room, _LONG)


def room_behind(model: Any, name: str, prompt: int, new: int) -> int | None:
    """Return how many positions a model has behind the tokens of a prompt, None where it sets no limit.

    Raises
    ------
    ValueError
        Where they are too few for the new tokens; the message gives the prompt's `name`.
    """
    positions = context_length(model)
    if positions is None:
        return None
    room = positions - prompt
    if room < new:
        what = f"allow {room} new tokens at most" if room > 0 else "shorten the prompt"
        raise ValueError(
            f"{name} has {prompt} tokens and {new} new ones may follow, but the model has {positions} positions; {what}"
        )
    return room


def _source(name: str) -> str:
    """Return what transformers loads; refuse a path that leads to no folder."""
    folder = Path(name).expanduser()
    if folder.is_dir():
        if not (folder / "config.json").is_file():
            raise ValueError(f"the folder {name} holds no config.json; give one that save_pretrained has written")
        return str(folder)
    if name.startswith((".", "/", "~")) or name.count("/") > 1 or not name:
        raise ValueError(
            f"there is no folder {name!r}; give a model's folder, its name on the Hugging Face hub, or {SMALL}"
        )
    return name


def _device(name: str | None) -> torch.device:
    """Return the device of a name."""
    if name is None:
        found = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
        return found or torch.device("cpu")
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        first = str(error).splitlines()[0]
        raise ValueError(f"device {name!r} cannot be used ({first}); try cpu, or leave it out") from error
    return device

"""What a trace has to know of the model and its tokenizer."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path
from typing import Any

from ..trace.file import Pieces
from ..trace.record import Trace, numbered
from ..trace.recorder import Recorder
from ..views.tokens import Tokens

__all__ = ["check_trace", "recorder_of"]


def check_trace(trace: Any) -> bool:
    """Return whether a trace is wanted.

    Raises
    ------
    ValueError
        For what is neither True nor False, such as the name of a file.
    """
    if not isinstance(trace, bool):
        raise ValueError(
            f"trace={trace!r} is not allowed; give True or False, and write what was recorded with "
            "ahead.trace.save('out.json')"
        )
    return trace


def recorder_of(model: Any, tokenizer: Any, note: str | None) -> Recorder:
    """Return a recorder with an empty trace that knows the model, the releases and the texts of tokens."""
    name = str(getattr(model.config, "_name_or_path", "") or type(model).__name__)
    about = {"model": Path(name).name if Path(name).is_dir() else name}
    about["weights"] = f"{str(model.dtype).removeprefix('torch.')} on {model.device}"
    for name in ("hf-lookahead", "transformers", "torch"):
        try:
            about[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return Recorder(Trace(pieces=_pieces_of(tokenizer), about=about, note=note))


def _pieces_of(tokenizer: Any) -> Pieces:
    """Return what gives the bytes of tokens; it keeps the tokenizer alive."""
    if tokenizer is None:
        return numbered
    tokens = Tokens.of(tokenizer)

    def pieces(ids: list[int], _: Any = tokenizer) -> list[bytes]:
        return tokens.pieces(ids)

    return pieces

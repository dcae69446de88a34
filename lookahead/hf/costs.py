"""What forwards cost, for each model on each device: shared within a process, kept on disk for the next one."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch

from ..draft.cost import PRIOR, MeasuredCost

__all__ = ["folder", "key_of", "known", "save"]

_CPU_PRIOR = 0.03  # forwards that a draft token costs on a few cores
_NEW = 64  # forwards that make the file worth writing anew
_costs: dict[str, MeasuredCost] = {}
_saved: dict[str, int] = {}


def folder() -> Path:
    """Return where measured costs are kept: ``$LOOKAHEAD_CACHE``, else ``~/.cache/lookahead``, in it ``costs``."""
    return Path(os.environ.get("LOOKAHEAD_CACHE") or Path.home() / ".cache" / "lookahead") / "costs"


def key_of(model: Any, rows: int = 1) -> str:
    """Return the name of a model's and a batch's shape on a device, as used for a file: no content is in it."""
    device = model.device
    named = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine()
    config = model.config.get_text_config()
    shape = {name: value for name, value in config.to_dict().items() if isinstance(value, int | str)}
    attention = getattr(config, "_attn_implementation", "")
    parts = [
        device.type,
        named,
        os.cpu_count(),
        torch.get_num_threads(),
        str(model.dtype),
        attention,
        sorted(shape.items()),
    ]
    return sha256(repr(parts).encode()).hexdigest()[:24] + (f"-{rows}" if rows > 1 else "")


def known(key: str, model: Any) -> MeasuredCost:
    """Return what is known of a model's costs: from this process, from the disk, or a prior for its device."""
    if key not in _costs:
        cost = MeasuredCost(_CPU_PRIOR if model.device.type == "cpu" else PRIOR)
        with contextlib.suppress(OSError, ValueError, AttributeError, TypeError):  # a file that is not ours, or none
            cost.restore(json.loads((folder() / f"{key}.json").read_text(encoding="utf-8")))
        _costs[key], _saved[key] = cost, 0
    return _costs[key]


def save() -> None:
    """Keep what was learnt, where it is worth it; a folder that cannot be written is no error."""
    for key, cost in list(_costs.items()):
        if cost.heard - _saved[key] >= _NEW:
            _saved[key] = cost.heard
            _write(key, cost)


def _write(key: str, cost: MeasuredCost) -> None:
    """Write one file anew."""
    with contextlib.suppress(OSError):
        folder().mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=folder(), delete=False, encoding="utf-8") as file:
            json.dump(cost.state(), file)
        os.replace(file.name, folder() / f"{key}.json")

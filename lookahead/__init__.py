"""lookahead: model-free speculative decoding for Hugging Face `generate`.

Names are loaded when they are first used, so that the drafter runs without torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .draft.drafter import Drafter
    from .hf.candidate_generator import LookaheadCandidateGenerator
    from .hf.check import check
    from .hf.enable import disable, enable, enabled
    from .hf.loop import Lookahead
    from .options import Options
    from .session import Session
    from .stats import Stats
    from .trace.record import Trace
    from .tree import Accepted, Draft

__all__ = [
    "Accepted",
    "Draft",
    "Drafter",
    "Lookahead",
    "LookaheadCandidateGenerator",
    "Options",
    "Session",
    "Stats",
    "Trace",
    "check",
    "disable",
    "enable",
    "enabled",
]

_ROOMS = {
    "Accepted": "tree",
    "Draft": "tree",
    "Drafter": "draft.drafter",
    "Lookahead": "hf.loop",
    "LookaheadCandidateGenerator": "hf.candidate_generator",
    "Options": "options",
    "Session": "session",
    "Stats": "stats",
    "Trace": "trace.record",
    "check": "hf.check",
    "disable": "hf.enable",
    "enable": "hf.enable",
    "enabled": "hf.enable",
}


def __getattr__(name: str) -> Any:
    """Load a public name from its room (PEP 562)."""
    if name not in _ROOMS:
        raise AttributeError(f"module 'lookahead' has no attribute {name!r}; it has {', '.join(__all__)}")
    value = getattr(importlib.import_module(f".{_ROOMS[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return __all__

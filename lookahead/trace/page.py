"""A trace as one page: the data and what draws it, in a single file that fetches nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .record import Trace

__all__ = ["page"]


def page(trace: Trace) -> str:
    """Return the page."""
    raise NotImplementedError

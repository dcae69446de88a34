"""Processors and stopping criteria of which each row of a batch has its own, whatever state they keep."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from transformers import LogitsProcessor
from transformers.generation.logits_process import LogitsProcessorList
from transformers.generation.stopping_criteria import StoppingCriteria, StoppingCriteriaList

__all__ = ["RowCriteria", "RowProcessors", "criteria_of_row"]


class RowProcessors(LogitsProcessor):  # type: ignore[misc, no-untyped-call, unused-ignore]
    """Processors of each row; they are asked for that row alone.

    Parameters
    ----------
    rows : sequence of list
        The processors of each row.
    """

    row_wise = True

    def __init__(self, rows: Sequence[list[Any]]) -> None:
        self._rows = [LogitsProcessorList(row) for row in rows]

    def of_row(self, row: int) -> Any:
        """Return what processes the scores of a row."""
        return self._rows[row]

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Refuse to process a batch as a whole."""
        raise NotImplementedError("rows have processors of their own; ask of_row for them")


class RowCriteria(StoppingCriteria):  # type: ignore[misc, no-untyped-call, unused-ignore]
    """A criterion of each row, which is asked for that row alone, and who takes the rows' caches as they end.

    Parameters
    ----------
    rows : sequence of StoppingCriteria
        The criterion of each row.
    on_leave : callable
        ``on_leave(row, cache)`` is told of each row that has ended; ``cache()`` makes a cache of that row alone, which
        holds all of its tokens but the last.
    """

    row_wise = True

    def __init__(self, rows: Sequence[StoppingCriteria], on_leave: Callable[[int, Callable[[], Any]], None]) -> None:
        self._rows, self.leave = rows, on_leave

    def of_row(self, row: int) -> StoppingCriteria:
        """Return the criterion of a row."""
        return self._rows[row]

    def __call__(self, input_ids: torch.Tensor, scores: Any, **kwargs: Any) -> torch.Tensor:
        """Refuse to judge a batch as a whole."""
        raise NotImplementedError("rows have criteria of their own; ask of_row for them")


def criteria_of_row(criteria: Sequence[Any], row: int) -> Any:
    """Return the stopping criteria for one row."""
    return StoppingCriteriaList(one.of_row(row) if isinstance(one, RowCriteria) else one for one in criteria)

"""Several processes that compute one model together (tensor parallel) must verify the same drafts."""

from __future__ import annotations

from typing import Any

import torch

from ..tree import Draft
from . import names

__all__ = ["Ranks"]


class Ranks:
    """The processes of one model; most models have one.

    Logits are the same in all of them, so they accept the same tokens of the same draft. Drafts are not: how much is
    drafted follows from measured times. So the first process's drafts count.
    """

    def __init__(self, model: Any) -> None:
        self._group = names.tensor_parallel_group(model)

    def share(self, drafts: list[Draft]) -> list[Draft]:
        """Return the first process's drafts, one for each row, in every process."""
        if self._group is None:
            return drafts
        said = [[(draft.tokens, draft.parents, draft.probs, draft.sources) for draft in drafts]]
        first = torch.distributed.get_global_rank(self._group, 0)
        torch.distributed.broadcast_object_list(said, src=first, group=self._group)
        return [Draft(*fields) for fields in said[0]]

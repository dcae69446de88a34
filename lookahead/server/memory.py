"""What is remembered of each user: the object that decodes, with what it has learnt."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from ..hf.loop import Lookahead

__all__ = ["Memory"]


class Memory:
    """One `Lookahead` for each of the users served last.

    Parameters
    ----------
    tokenizer : PreTrainedTokenizerBase
    users : int
        Users kept, the least recently served given up first.
    **options
        The fields of `Options`.
    """

    def __init__(self, tokenizer: Any, users: int, **options: Any) -> None:
        self._tokenizer, self._users, self._options = tokenizer, users, options
        self._lookaheads: OrderedDict[str, Lookahead] = OrderedDict()

    def of(self, owner: str) -> Lookahead:
        """Return the object of a user."""
        if owner not in self._lookaheads:
            self._lookaheads[owner] = self._new()
        self._lookaheads.move_to_end(owner)
        while len(self._lookaheads) > self._users:
            self._lookaheads.popitem(last=False)
        return self._lookaheads[owner]

    def _new(self) -> Lookahead:
        """Return the object of a new user."""
        return Lookahead(self._tokenizer, **self._options)

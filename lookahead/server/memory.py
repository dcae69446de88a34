"""What is remembered of each user: the object that decodes, with what it has learnt."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from ..hf.loop import Lookahead

__all__ = ["Memory"]


class Memory:
    """One `Lookahead` for each of the users served last: the one place where the server asks for it.

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
        self._of_all = Lookahead(tokenizer, **options)
        self._lookaheads: OrderedDict[str, Lookahead] = OrderedDict()

    def of(self, *users: str) -> Lookahead:
        """Return the object of a user; several users have one that remembers nobody's words."""
        if len(set(users)) > 1:
            return self._of_all
        user = users[0]
        if user not in self._lookaheads:
            self._lookaheads[user] = self._new()
        self._lookaheads.move_to_end(user)
        while len(self._lookaheads) > self._users:
            self._lookaheads.popitem(last=False)
        return self._lookaheads[user]

    def _new(self) -> Lookahead:
        """Return the object of a new user."""
        return Lookahead(self._tokenizer, **self._options)

"""What is remembered of each user: the one place where the server asks for what decodes a user's answers."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from ..hf.loop import Lookahead
from ..session import Session

__all__ = ["Memory"]

_SHARE = 4  # the part of all bytes that one user may have: a fourth
_LEAST = 2**20  # bytes


class Memory:
    """A session for each of the users served last; what one has said never reaches another's drafts.

    Parameters
    ----------
    tokenizer : PreTrainedTokenizerBase
    users : int
        Users kept, the least recently served given up first.
    max_bytes : int
        Most bytes of what is remembered of all of them, likewise.
    **options
        The fields of `Options`.
    """

    def __init__(self, tokenizer: Any, users: int, max_bytes: int, **options: Any) -> None:
        self._tokenizer, self._options = tokenizer, options
        self._users, self._max_bytes = users, max_bytes
        self._of_batches = Lookahead(tokenizer, **{**options, "recycling": False})
        self._sessions: OrderedDict[str, tuple[Session, Lookahead]] = OrderedDict()

    def of(self, *users: str) -> Lookahead:
        """Return what decodes an answer of a user, or a batch of answers, one for each of the users named."""
        found = [self._of(user) for user in users]
        return found[0] if len(set(users)) == 1 else self._of_batches.of_rows(found)

    @property
    def nbytes(self) -> int:
        """Bytes of what is remembered."""
        return sum(session.nbytes for session, _ in self._sessions.values())

    def _of(self, user: str) -> Lookahead:
        """Return the object of one user, and give up what is too much."""
        if user not in self._sessions:
            session = Session(self._tokenizer, max(_LEAST, self._max_bytes // _SHARE), **self._options)
            self._sessions[user] = session, session.lookahead()
        self._sessions.move_to_end(user)
        while len(self._sessions) > self._users or (len(self._sessions) > 1 and self.nbytes > self._max_bytes):
            self._sessions.popitem(last=False)
        return self._sessions[user][1]

"""Places to copy from, collected and ranked."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..index.corpus import Corpus

__all__ = ["ranked"]

_LIMIT = 16
_PER_TOKEN = 4
_AHEAD = 64
_CERTAIN = 32


def ranked(corpus: Corpus, pointer: int) -> NDArray[np.void]:
    """Return places to copy from, CANDIDATE [at most 17], the best guess first.

    A longer match wins, and among equals the latest place. But a copy tends to go on close behind where it was: the
    best place within 64 tokens behind the copy pointer comes before all others of its match length, which gave 1 %
    more tokens per forward on 160 edits (wider windows, and a bonus on its length, gave no more).

    Parameters
    ----------
    corpus : Corpus
        Everything said so far.
    pointer : int
        Position behind the last token that was copied and accepted, -1 when nothing was.
    """
    rows = corpus.candidates(_LIMIT, _PER_TOKEN)
    if pointer < corpus.first or (len(rows) and rows["match_length"][0] >= _CERTAIN):
        return rows
    place, length = corpus.nearest(pointer, 0, _AHEAD)
    if place < 0:
        return rows
    near = np.array([(place, length, 1)], rows.dtype)
    behind = int(np.searchsorted(-rows["match_length"], -length))
    return np.concatenate([rows[:behind], near, rows[behind:]])

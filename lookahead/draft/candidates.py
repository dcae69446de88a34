"""Places to copy from, collected and ranked."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..index.corpus import Corpus
from .calibration import Calibration
from .foreign import Foreign, Offer
from .growth_kernels import PLACE

__all__ = ["Candidates", "Hint", "ranked"]

Hint: TypeAlias = tuple[int, int, str]  # a place that comes next by some rule, the match length it is worth, its kind

_LIMIT = 16
_PER_TOKEN = 4
_AHEAD = 64
_CERTAIN = 32
_EXCERPT = 256  # tokens that may be copied of another text at once
_FEW = 4  # a shorter match in another text is none


def _nothing() -> NDArray[np.int32]:
    return np.empty(0, np.int32)


@dataclass(frozen=True, eq=False)
class Candidates:
    """Places to copy from, the best guess first.

    Attributes
    ----------
    places : PLACE [n]
        Positions in the corpus; from its end on they count through `excerpts`.
    excerpts : int32 [m]
        What stands at the places in other texts, each with a border (-1) behind it.
    offers : tuple of (Foreign, Offer)
        Where each excerpt is from.
    starts : tuple of int
        The position at which each excerpt begins.
    """

    places: NDArray[np.void]
    excerpts: NDArray[np.int32] = field(default_factory=_nothing)
    offers: tuple[tuple[Foreign, Offer], ...] = ()
    starts: tuple[int, ...] = ()

    def foreign(self, position: int) -> tuple[Foreign, int]:
        """Return whose excerpt holds the token at a position, and the token's position there."""
        one = bisect_right(self.starts, position) - 1
        text, offer = self.offers[one]
        return text, offer.position + position - self.starts[one]


def ranked(
    corpus: Corpus,
    hints: list[Hint],
    near: list[tuple[int, int]],
    calibration: Calibration,
    foreign: list[Foreign],
) -> Candidates:
    """Return places to copy from, the best guess first.

    A longer match wins, and among equals the latest place. But a copy tends to go on close behind where it was: the
    best place within 64 tokens behind the copy pointer comes before all others of its match length, which gave 1 %
    more tokens per forward on 160 edits (wider windows, and a bonus on its length, gave no more).

    Parameters
    ----------
    corpus : Corpus
        Everything said so far.
    hints : list of (position, match length, kind)
        Places that come next by some rule, the match length that such a guess is worth, and the name of its kind.
    near : list of (position, tokens before it)
        Where to look for the end of the text, the likeliest place first.
    calibration : Calibration
        Tells the kinds apart: the source of each place, or what a hint names.
    foreign : list of Foreign
        Other texts; they are asked where the sequence's own has no long match. A place in them has to match twice as
        long as the best one there: as long was worth 2 % less where the prompt holds what is copied. A prediction comes
        before them.
    """
    rows, first, kind = corpus.candidates(_LIMIT, _PER_TOKEN), corpus.first, calibration.kind
    known = rows.tolist()
    longest = known[0][1] if known else 0
    found, looked, offers = list[tuple[int, int, int]](), list[tuple[int, int]](), list[tuple[Foreign, Offer]]()
    if longest < _CERTAIN:
        found = [(place, length, kind(name)) for place, length, name in hints if place >= first]
        looked = corpus.nearest_each([row for row in near if row[0] >= first], _AHEAD)
    sources = corpus.sources([row[0] for row in (*looked, *known)])
    if longest < _CERTAIN and foreign and "prediction" not in (*sources, *corpus.sources([row[0] for row in found])):
        offers = [(one, offer) for one in foreign for offer in one.offers(max(2 * longest, _FEW), _EXCERPT)]
    kinds = [kind(source) for source in sources]
    found += [(*place, one) for place, one in zip(looked, kinds, strict=False)]
    kinds = kinds[len(looked) :]
    if not found and not offers:
        rows["count"] = kinds
        return Candidates(rows.view(PLACE))  # of the same layout
    found += [(place, length, one) for (place, length, _), one in zip(known, kinds, strict=True)]
    starts = tuple(accumulate((len(offer.excerpt) + 1 for _, offer in offers), initial=len(corpus)))[:-1]
    found += [(start, offer.match_length, kind(one.source)) for start, (one, offer) in zip(starts, offers, strict=True)]
    found.sort(key=_by_length)
    return Candidates(np.array(found, PLACE), _excerpts(offers), tuple(offers), starts)


def _by_length(row: tuple[int, int, int]) -> int:
    """Order by falling match length."""
    return -row[1]


def _excerpts(offers: list[tuple[Foreign, Offer]]) -> NDArray[np.int32]:
    """Join the excerpts, each with a border behind it."""
    border = np.full(1, -1, np.int32)
    return np.concatenate([part for _, offer in offers for part in (offer.excerpt, border)] or [border[:0]])

"""Places to copy from, collected and ranked."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from ..index.corpus import Corpus
from .calibration import Calibration
from .foreign import Foreign, Offer
from .growth_kernels import PLACE

__all__ = ["Candidates", "ranked"]

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
    offers : list of (Foreign, Offer)
        Where each excerpt is from, and
    starts : list of int
        where it begins.
    """

    places: NDArray[np.void]
    excerpts: NDArray[np.int32] = field(default_factory=_nothing)
    offers: tuple[tuple[Foreign, Offer], ...] = ()
    starts: tuple[int, ...] = ()

    def foreign(self, place: int) -> tuple[Foreign, int]:
        """Return whose excerpt holds the token at `place`, counted from the excerpts' begin, and its position there."""
        one = bisect_right(self.starts, place) - 1
        text, offer = self.offers[one]
        return text, offer.position + place - self.starts[one]


def ranked(
    corpus: Corpus,
    hints: list[tuple[int, int]],
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
    hints : list of (position, match length)
        Places that come next by some rule, and the match length that such a guess is worth.
    near : list of (position, tokens before it)
        Where to look for the end of the text, the likeliest place first.
    calibration : Calibration
        Tells the kinds apart: the source of each place, or "rule" for what a hint says.
    foreign : list of Foreign
        Other texts; they are asked where the sequence's own has no long match. A place in them has to match twice as
        long as the best one there: as long was worth 2 % less where the prompt holds what is copied.
    """
    rows, first = corpus.candidates(_LIMIT, _PER_TOKEN), corpus.first
    longest = int(rows["match_length"][0]) if len(rows) else 0
    found, offers = list[tuple[int, int, int]](), list[tuple[Foreign, Offer]]()
    if longest < _CERTAIN:
        rule = calibration.kind("rule")
        found = [(place, length, rule) for place, length in hints if place >= first]
        looked = [corpus.nearest(place, behind, _AHEAD) for place, behind in near if place >= first]
        looked = [(place, length) for place, length in looked if length]
        sources = corpus.sources([place for place, _ in looked])
        found += [(*place, calibration.kind(source)) for place, source in zip(looked, sources, strict=True)]
        offers = [(one, offer) for one in foreign for offer in one.offers(max(2 * longest, _FEW), _EXCERPT)]
    kinds = [calibration.kind(source) for source in corpus.sources(rows["position"].tolist())]
    if not found and not offers:
        rows["count"] = kinds
        return Candidates(rows.view(PLACE))  # of the same layout
    found += [(place, length, kind) for (place, length, _), kind in zip(rows.tolist(), kinds, strict=True)]
    starts = tuple(accumulate((len(offer.excerpt) + 1 for _, offer in offers), initial=0))[:-1]
    found += [
        (len(corpus) + start, offer.match_length, calibration.kind(one.source))
        for start, (one, offer) in zip(starts, offers, strict=True)
    ]
    places = np.array(sorted(found, key=lambda row: -row[1]), PLACE)
    if not offers:
        return Candidates(places)
    border = np.full(1, -1, np.int32)
    excerpts = np.concatenate([part for _, offer in offers for part in (offer.excerpt, border)])
    return Candidates(places, excerpts, tuple(offers), starts)

"""Kernels on the text alone: what stands before a position, around it and after it."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from .._jit import kernel

Number: TypeAlias = int | np.int64
Ids: TypeAlias = NDArray[np.int32]

SCAN_CAP = 32  # longest match that `nearest` tells apart


@kernel
def common_suffix(text: Ids, position: Number, end: Number, limit: Number) -> Number:
    """Count the tokens, at most `limit`, that stand both right before `position` and right before `end`."""
    length = np.int64(0)
    while length < limit and length < position and text[position - 1 - length] >= 0:
        if text[position - 1 - length] != text[end - 1 - length]:
            break
        length += 1
    return length


@kernel
def nearest(text: Ids, end: Number, position: Number, begin: Number, stop: Number) -> tuple[Number, Number]:
    """Place in [begin, stop) with the longest common suffix with text[:end], nearest to `position`: (place, length)."""
    found: Number = np.int64(-1)
    longest: Number = np.int64(0)
    if end == 0:
        return found, longest
    last = text[end - 1]
    for place in range(max(begin, 1), min(stop, end)):
        if text[place - 1] == last and text[place] >= 0:
            length = common_suffix(text, place, end, np.int64(SCAN_CAP))
            closer = found >= 0 and place + found < 2 * position  # places rise, so this is: closer than `found`
            if length > longest or (length == longest and closer):
                found = np.int64(place)
                longest = length
    return found, longest


@kernel
def nearest_each(text: Ids, end: Number, wanted: NDArray[np.int64], ahead: Number, found: NDArray[np.int64]) -> None:
    """Fill rows of `found` with place and length: `nearest` to each (position, tokens before it), -1 and 0 for none."""
    for one in range(len(wanted)):
        position, behind = wanted[one]
        place, length = nearest(text, end, position, position - behind, position + ahead + 1)
        found[one, 0], found[one, 1] = place, length


@kernel
def continuation(text: Ids, end: Number, position: Number, out: Ids) -> Number:
    """Copy tokens from `position` on, past the end the copy's own (Ziv and Lempel 1977), up to a border."""
    for i in range(out.size):
        token = text[position + i] if position + i < end else out[i - (end - position)]
        if token < 0:
            return i
        out[i] = token
    return out.size

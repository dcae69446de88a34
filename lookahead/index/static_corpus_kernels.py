"""Kernels of the static corpus: binary search and the places around what it finds.

`tokens` is the stream, borders (-1) and all. `order` holds the places of its tokens, sorted by what stands before them,
read backwards. `said` is the end of another text, the last token first. A file may be damaged where nobody has looked
yet: every place that is read from it is checked before it is used.
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from .._jit import kernel

Number: TypeAlias = int | np.int64
Ids: TypeAlias = NDArray[np.int32]
Numbers: TypeAlias = NDArray[np.int64]
Table: TypeAlias = NDArray[np.void]

LEVEL_CAP = 64  # places looked at for one match length
VISIT_CAP = 128  # places looked at in one query

# Fields of the scratch vector (int64) of `suggest`.
ROWS = 0  # rows written
VISITS = 1  # places that may still be looked at
PER_TOKEN = 2
GROUPS = 3  # distinct next tokens of the length at hand
BEGIN = 4  # the ranks of the length at hand: from BEGIN to LOW, and from HIGH to END
LOW = 5
HIGH = 6
END = 7
PLACES = 8  # the places looked at
MEMBERS = PLACES + LEVEL_CAP  # the group of each
NEXT = MEMBERS + LEVEL_CAP  # the next token of each group
COUNTS = NEXT + LEVEL_CAP  # and how often it came
SEEN = COUNTS + LEVEL_CAP  # the next token of each row


@kernel
def place_at(order: Ids, rank: Number, size: Number) -> Number:
    """Place of a rank; 0, which nothing stands before, for one outside the stream."""
    position = np.int64(order[rank])
    return position if 0 <= position < size else np.int64(0)


@kernel
def shared(tokens: Ids, said: Ids, position: Number, known: Number) -> Number:
    """Count the tokens before `position` that equal the end of what was said; the `known` last ones do."""
    length = np.int64(known)
    while length < said.size and length < position and tokens[position - 1 - length] == said[length]:
        length += 1
    return length


@kernel
def precedes(tokens: Ids, said: Ids, position: Number, length: Number) -> bool:
    """Whether a place that shares `length` tokens, and no more, comes before what was said."""
    if length >= said.size:
        return False
    return bool(length >= position or tokens[position - 1 - length] < said[length])


@kernel
def search(tokens: Ids, order: Ids, starts: Ids, said: Ids) -> tuple[Number, Number]:
    """Rank that what was said would have, and the length of its longest match, which ends there or just before.

    Manber and Myers 1993, section 2.2: what both ends of the interval share need not be compared again.
    """
    low: Number = np.int64(0)
    high: Number = np.int64(order.size)
    at_low: Number = np.int64(0)
    at_high: Number = np.int64(0)
    if said.size == 0 or (starts.size and said[0] >= starts.size - 1):
        return low, at_low
    if starts.size and 0 <= starts[said[0]] <= starts[said[0] + 1] <= order.size:
        low, high = np.int64(starts[said[0]]), np.int64(starts[said[0] + 1])
    while low < high:
        middle = (low + high) >> 1
        position = place_at(order, middle, tokens.size)
        length = shared(tokens, said, position, at_low if at_low < at_high else at_high)
        if precedes(tokens, said, position, length):
            low, at_low = middle + 1, length
        else:
            high, at_high = middle, length
    return low, max(at_low, at_high)


@kernel
def reach(tokens: Ids, order: Ids, said: Ids, rank: Number, step: Number, length: Number) -> Number:
    """Count the ranks from `rank` on, upwards (step 1) or downwards (-1), whose places share at least `length`."""
    room = order.size - rank if step > 0 else rank + 1
    least: Number = np.int64(0)  # so many do
    most: Number = np.int64(1)  # of so many, the last one is looked at next
    end = said[:length]
    while most <= room and shared(tokens, end, place_at(order, rank + step * (most - 1), tokens.size), 0) == length:
        least, most = most, 2 * most
    if most > room:
        most = room + 1
    while most - least > 1:
        middle = (least + most) >> 1
        if shared(tokens, end, place_at(order, rank + step * (middle - 1), tokens.size), 0) == length:
            least = middle
        else:
            most = middle
    return least


@kernel
def tally(tokens: Ids, order: Ids, scratch: Numbers) -> Number:
    """Group the places of a length by their next token, leaving out tokens of earlier rows; return how many were read.

    Where there are more places than may be looked at, those are evenly spread.
    """
    left = np.int64(scratch[LOW] - scratch[BEGIN])
    many = np.int64(left + scratch[END] - scratch[HIGH])
    taken = min(many, np.int64(LEVEL_CAP), np.int64(scratch[VISITS]))
    scratch[GROUPS] = 0
    for i in range(taken):
        offset = i * many // taken
        rank = scratch[BEGIN] + offset if offset < left else scratch[HIGH] + offset - left
        position = place_at(order, rank, tokens.size)
        token = np.int64(tokens[position])
        scratch[PLACES + i] = position
        scratch[MEMBERS + i] = -1
        if token < 0 or is_listed(scratch, SEEN, scratch[ROWS], token) >= 0:
            continue
        group = is_listed(scratch, NEXT, scratch[GROUPS], token)
        if group < 0:
            group = scratch[GROUPS]
            scratch[NEXT + group] = token
            scratch[COUNTS + group] = 0
            scratch[GROUPS] += 1
        scratch[COUNTS + group] += 1
        scratch[MEMBERS + i] = group
    scratch[VISITS] -= taken
    return taken


@kernel
def is_listed(scratch: Numbers, begin: Number, count: Number, token: Number) -> Number:
    """Return where among `count` tokens from `begin` on one stands, -1 for nowhere."""
    for i in range(count):
        if scratch[begin + i] == token:
            return np.int64(i)
    return np.int64(-1)


@kernel
def list_groups(rows: Table, scratch: Numbers, taken: Number, length: Number) -> None:
    """Add rows for the groups of a length, by falling count."""
    for _ in range(scratch[GROUPS]):
        best = np.int64(0)
        for group in range(1, scratch[GROUPS]):
            if scratch[COUNTS + group] > scratch[COUNTS + best]:
                best = np.int64(group)
        count, kept = scratch[COUNTS + best], np.int64(0)
        scratch[COUNTS + best] = 0
        for i in range(taken):
            at = scratch[ROWS]
            if scratch[MEMBERS + i] != best or kept == scratch[PER_TOKEN] or at == rows.size:
                continue
            rows[at]["position"] = scratch[PLACES + i]
            rows[at]["match_length"] = length
            rows[at]["count"] = count
            scratch[SEEN + at] = scratch[NEXT + best]
            scratch[ROWS] += 1
            kept += 1


@kernel
def suggest(tokens: Ids, order: Ids, said: Ids, rank: Number, length: Number, rows: Table, per_token: Number) -> Number:
    """Fill `rows` from the longest match to shorter ones, as `search` gave it, and return how many rows there are."""
    scratch = np.empty(SEEN + rows.size, np.int64)
    scratch[ROWS] = 0
    scratch[VISITS] = VISIT_CAP
    scratch[PER_TOKEN] = per_token
    low, high = np.int64(rank), np.int64(rank)
    while length > 0 and scratch[ROWS] < rows.size and scratch[VISITS] > 0:
        scratch[LOW], scratch[HIGH] = low, high
        low -= reach(tokens, order, said, low - 1, np.int64(-1), length)
        high += reach(tokens, order, said, high, np.int64(1), length)
        scratch[BEGIN], scratch[END] = low, high
        list_groups(rows, scratch, tally(tokens, order, scratch), np.int64(length))
        below = shared(tokens, said, place_at(order, low - 1, tokens.size), 0) if low > 0 else np.int64(0)
        above = shared(tokens, said, place_at(order, high, tokens.size), 0) if high < order.size else np.int64(0)
        length = min(max(below, above), length - 1)
    return np.int64(scratch[ROWS])

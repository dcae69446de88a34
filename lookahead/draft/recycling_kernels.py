"""The kernel that keeps each token's likeliest successors."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._jit import kernel

SUCCESSOR = np.dtype([("token", np.int32), ("share", np.float32)])
WEIGHT = 0.5  # of what came last


@kernel
def blend(rows: NDArray[np.void], tokens: NDArray[np.int32], found: NDArray[np.void]) -> None:
    """Blend `found`, SUCCESSOR [n, kept], into the rows of `tokens`, and keep the likeliest, in order."""
    kept = rows.shape[1]
    both = np.empty(2 * kept, rows.dtype)
    for one in range(len(tokens)):
        row, count = rows[tokens[one]], 0
        both["share"][:] = 0.0
        is_new = row[0]["share"] == 0
        for slot in range(kept):
            if row[slot]["share"] > 0:
                both[count]["token"], both[count]["share"] = row[slot]["token"], row[slot]["share"] * (1 - WEIGHT)
                count += 1
        old = count
        for slot in range(kept):
            share, place = found[one, slot]["share"] * (1.0 if is_new else WEIGHT), count
            for other in range(old):
                if both[other]["token"] == found[one, slot]["token"]:
                    place = other
                    share += both[other]["share"]
            both[place]["token"], both[place]["share"] = found[one, slot]["token"], share
            count = max(count, place + 1)
        for slot in range(kept):
            best = slot
            for other in range(slot, count):
                if both[other]["share"] > both[best]["share"]:
                    best = other
            token, share = both[best]["token"], both[best]["share"]
            both[best]["token"], both[best]["share"] = both[slot]["token"], both[slot]["share"]
            row[slot]["token"], row[slot]["share"] = token, share

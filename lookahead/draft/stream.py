"""What was said, as bytes."""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate

__all__ = ["Stream"]


class Stream:
    """The bytes of an answer, and the place in the corpus of the token that each comes from."""

    def __init__(self) -> None:
        self.text = bytearray()
        self._offsets: list[int] = []
        self._positions: list[int] = []

    def add(self, pieces: list[bytes], position: int) -> None:
        """Add tokens that stand in the corpus from `position` on."""
        begins = [*accumulate(map(len, pieces), initial=len(self.text))]
        self._offsets += begins[:-1]
        self._positions += range(position, position + len(pieces))
        self.text += b"".join(pieces)

    def position(self, offset: int) -> int:
        """Return the position of the first token that begins at `offset` bytes or behind it, -1 if there is none."""
        at = bisect_left(self._offsets, offset)
        return self._positions[at] if at < len(self._positions) else -1

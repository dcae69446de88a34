"""The token ids known so far, growing in place."""

from __future__ import annotations

import torch

from ..tree import Draft

__all__ = ["Sequence", "unpadded"]


class Sequence:
    """Token ids of one row: the prompt and what was emitted, with room for a draft behind them.

    Appended tokens wait on the host until somebody reads `ids`, so a step costs one copy to the device, not one per
    token. `ids` is a view, int64 [1, length], that later growth does not change: a known token is never overwritten.
    """

    def __init__(self, prompt: torch.Tensor) -> None:
        self._written = prompt.shape[1]
        self._buffer = torch.empty(1, self._written + 256, dtype=torch.long, device=prompt.device)
        self._buffer[:, : self._written] = prompt
        self._waiting: list[int] = []

    def __len__(self) -> int:
        """Return the number of known tokens."""
        return self._written + len(self._waiting)

    @property
    def ids(self) -> torch.Tensor:
        """The known tokens, int64 [1, length]."""
        if self._waiting:
            self._write(self._waiting)
            self._written += len(self._waiting)
            self._waiting = []
        return self._buffer[:, : self._written]

    def append(self, token: int) -> None:
        """Add one token."""
        self._waiting.append(token)

    def drafted(self, draft: Draft) -> torch.Tensor:
        """Return the known tokens and behind them the draft's, int64 [1, length + n], valid until the next change."""
        self._write(self._waiting + draft.tokens.tolist())
        self._written += len(self._waiting)
        self._waiting = []
        return self._buffer[:, : self._written + len(draft)]

    def _write(self, tokens: list[int]) -> None:
        """Put tokens behind the written ones; the buffer doubles, so growing costs the same at any length."""
        end = self._written + len(tokens)
        if end > self._buffer.shape[1]:
            grown = self._buffer.new_empty(1, 2 * end)
            grown[:, : self._written] = self._buffer[:, : self._written]
            self._buffer = grown
        self._buffer[0, self._written : end] = torch.tensor(tokens, dtype=self._buffer.dtype)


def unpadded(input_ids: torch.Tensor, attention_mask: torch.Tensor | None) -> torch.Tensor:
    """Return a prompt's ids, of int64 [1, length], without padding: int64 [tokens] on the host."""
    ids = input_ids[0]
    if attention_mask is not None and attention_mask.shape == input_ids.shape:
        ids = ids[attention_mask[0].bool()]
    return ids.cpu()

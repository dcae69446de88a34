"""Near-ties in low precision: when a choice has to be made again by a forward over one token."""

from __future__ import annotations

import torch

__all__ = ["Doubt"]

_ULPS = 4  # of the largest logit: the noise before any was measured
_FADES = 0.998  # of what was measured, with every comparison


class Doubt:
    """Knows how far a forward's width moves logits, and doubts maxima that lie closer together than that.

    Attributes
    ----------
    noise : float
        How far a logit was seen to move between a forward over several tokens and one over a single token, the latest
        comparisons counting most; 0 before the first.
    asked : int
        Positions that were decided by a forward over one token.
    decides : bool
        Whether the logits to come are plain decoding's, to the last bit: of one token, behind a cache that was fed one
        token at a time. They are not doubted, and settle what was put off.
    """

    def __init__(self) -> None:
        self.noise = 0.0
        self.asked = 0
        self.decides = True
        self._doubted: torch.Tensor | None = None

    def rows(self, logits: torch.Tensor, computed_in: torch.dtype | None = None) -> list[bool]:
        """Tell of each row, float [n, vocabulary], whether its two largest logits could change places.

        `computed_in` is the type that they had before processors saw them, their own when left out.
        """
        best = logits.float().topk(min(2, logits.shape[-1]), dim=-1).values
        step = (
            _ULPS
            * torch.finfo(computed_in or logits.dtype).eps
            * best.abs().masked_fill(best.isinf(), 0.0).amax(dim=-1)
        )
        doubted: list[bool] = (best[:, 0] - best[:, -1] <= torch.clamp(step, min=2 * self.noise)).tolist()
        return doubted

    def put_off(self, logits: torch.Tensor) -> None:
        """Keep the logits of a choice that is put off, float [vocabulary]."""
        self._doubted, self.asked = logits.float().clone(), self.asked + 1

    @property
    def pending(self) -> bool:
        """Whether a choice was put off, so that the next forward has to be over the last token alone."""
        return self._doubted is not None

    def settle(self, logits: torch.Tensor) -> None:
        """Hear the logits that decide, float [vocabulary], and learn how far the others were from them."""
        if self._doubted is not None:
            moved = (self._doubted - logits.float()).abs()
            self.noise = max(_FADES * self.noise, float(moved[moved.isfinite()].max()))
        self._doubted = None

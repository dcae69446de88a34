"""What each token of draft trees may attend to, and where it stands in the text."""

from __future__ import annotations

import torch

from ..tree import Draft

__all__ = ["position_offsets", "tree_mask", "within_window"]


def tree_mask(drafts: list[Draft], past: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return the attention mask for one forward over the last known tokens and whole draft trees.

    Every token sees the past, the last known token and its own ancestors (SpecInfer, arXiv 2305.09781, section 4).

    Parameters
    ----------
    drafts : list of Draft
        One for each row of the batch; the longest has n tokens.
    past : bool [rows, p]
        Which cached positions may be seen (False for padding), on the device that the mask shall be on.
    dtype : torch.dtype
        ``torch.bool`` gives True where attention is allowed; a float type gives 0 there and its minimum elsewhere.

    Returns
    -------
    Tensor [rows, 1, n + 1, p + n + 1]
        Token 0 is the last known one, token i + 1 is node i; what fills up a shorter draft sees the past and itself.
    """
    count, width = max(len(draft) for draft in drafts) + 1, past.shape[1]
    trees = torch.eye(count, dtype=torch.bool).repeat(len(drafts), 1, 1)
    for tree, draft in zip(trees, drafts, strict=True):
        size = len(draft) + 1
        tree[1:size, 0] = True
        tree[1:size, 1:size] = torch.from_numpy(draft.ancestors)
    seen = torch.empty(len(drafts), 1, count, width + count, dtype=torch.bool, device=past.device)
    seen[..., :width] = past[:, None, None]
    seen[:, 0, :, width:] = trees.to(past.device)
    if dtype == torch.bool:
        return seen
    hidden = torch.full((), torch.finfo(dtype).min, dtype=dtype, device=past.device)
    return torch.where(seen, torch.zeros((), dtype=dtype, device=past.device), hidden)


def within_window(mask: torch.Tensor, drafts: list[Draft], past: torch.Tensor, window: int) -> torch.Tensor:
    """Return a mask of `tree_mask` in which a token sees only the last `window` ones of its path, itself among them.

    Slots of the past that may not be seen do not count.
    """
    ranks = past.cumsum(dim=1)
    queries = ranks[:, -1:] + position_offsets(drafts).to(past.device) + 1
    distances = queries[:, :, None] - torch.cat([ranks, queries], dim=1)[:, None]
    hidden = False if mask.dtype == torch.bool else torch.finfo(mask.dtype).min
    return mask.masked_fill((distances >= window)[:, None], hidden)


def position_offsets(drafts: list[Draft]) -> torch.Tensor:
    """Return each token's distance from the last known one, int64 [rows, n + 1]: 0, then the depth of every node."""
    offsets = torch.zeros(len(drafts), max(len(draft) for draft in drafts) + 1, dtype=torch.long)
    for row, draft in zip(offsets, drafts, strict=True):
        row[1 : len(draft) + 1] = torch.from_numpy(draft.depths)
    return offsets

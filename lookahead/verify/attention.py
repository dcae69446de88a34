"""What each token of a draft tree may attend to, and where it stands in the text."""

from __future__ import annotations

import torch

from ..tree import Draft

__all__ = ["position_offsets", "tree_mask"]


def tree_mask(draft: Draft, past: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return the attention mask for one forward over the last known token and a whole draft tree.

    Every row sees the past, the last known token and its own ancestors (SpecInfer, arXiv 2305.09781, section 4).

    Parameters
    ----------
    draft : Draft
        n proposed tokens.
    past : bool [p]
        Which cached positions may be seen (False for padding), on the device that the mask shall be on.
    dtype : torch.dtype
        ``torch.bool`` gives True where attention is allowed; a float type gives 0 there and its minimum elsewhere.

    Returns
    -------
    Tensor [1, 1, n + 1, p + n + 1]
        Row 0 is the last known token, row i + 1 is node i.
    """
    rows, width = len(draft) + 1, len(past)
    tree = torch.ones(rows, rows, dtype=torch.bool)
    tree[0, 1:] = False
    tree[1:, 1:] = torch.from_numpy(draft.ancestors)
    seen = torch.empty(1, 1, rows, width + rows, dtype=torch.bool, device=past.device)
    seen[..., :width] = past
    seen[..., width:] = tree.to(past.device)
    if dtype == torch.bool:
        return seen
    hidden = torch.full((), torch.finfo(dtype).min, dtype=dtype, device=past.device)
    return torch.where(seen, torch.zeros((), dtype=dtype, device=past.device), hidden)


def position_offsets(draft: Draft) -> torch.Tensor:
    """Return each row's distance from the last known token, int64 [n + 1]: 0, then the depth of every node."""
    return torch.cat([torch.zeros(1, dtype=torch.long), torch.from_numpy(draft.depths).long()])

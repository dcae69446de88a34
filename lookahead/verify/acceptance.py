"""The rule at one node: which token the target emits there.

Let p be the target's distribution and x a token that the draft proposes. Modified rejection sampling (Leviathan et al.,
arXiv 2211.17192; Chen et al., arXiv 2302.01318) accepts x with probability min(1, p(x) / q(x)) and otherwise draws from
the residual (p - q)+. A copied token is certain of itself: q is a point mass, so x is accepted with p(x), else the
token comes from p without x. Drawing ONE token from p and keeping it is exactly that, for one child and for many: a
child is accepted with its own p, and if the drawn token is no child it is distributed as p without the children. Since
the draw is the one that plain decoding makes, a seed gives the tokens that it would have given.

Drafts that come with their own q (a smaller model's) take the general rule; their siblings, which differ, were drawn
without replacement, and are offered one after the other (recursive rejection sampling, Yang et al., arXiv 2402.14160).
"""

from __future__ import annotations

from typing import Any

import torch
from numpy.typing import NDArray

__all__ = ["accept_drawn", "choose", "likeliest"]

_BLOCKS = 512


def choose(scores: torch.Tensor, do_sample: bool) -> torch.Tensor:
    """Choose the next token as plain decoding does.

    Parameters
    ----------
    scores : float32 [1, vocabulary]
        Processed logits.
    do_sample : bool
        Draw once from softmax(scores) with torch's global generator; otherwise take the first maximum.

    Returns
    -------
    int64 [1]
    """
    if not do_sample:
        return torch.argmax(scores, dim=-1)
    return torch.multinomial(torch.softmax(scores, dim=-1), num_samples=1).squeeze(1)


def accept_drawn(scores: torch.Tensor, tokens: list[int], drawn_from: torch.Tensor) -> int:
    """Return the next token: one of those that were drawn, or one that makes up for their being refused.

    Whatever was offered, the token is distributed as softmax(scores).

    Parameters
    ----------
    scores : float32 [1, vocabulary]
        Processed logits.
    tokens : list of int
        What was drawn from `drawn_from`, each without those before it.
    drawn_from : float [vocabulary]
        Their distribution.
    """
    p = torch.softmax(scores[0], dim=-1)
    q = torch.zeros_like(p)  # another model may know fewer tokens, or more, none of which was offered
    known = min(len(p), len(drawn_from))
    q[:known] = drawn_from[:known]
    for token in tokens:
        if float(torch.rand((), device=p.device)) * float(q[token]) < float(p[token]):
            return token
        rest = torch.clamp(p - q, min=0)
        if float(rest.sum()) == 0:  # p is q: only rounding refuses then
            return token
        p = rest / rest.sum()
        q[token] = 0
        q /= q.sum()
    return int(torch.multinomial(p, num_samples=1))


def likeliest(logits: torch.Tensor, count: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the likeliest tokens, int64 [n, count], and their probabilities, float32 [n, count], the likeliest first.

    `logits` are float [n, vocabulary]; a vocabulary smaller than `count` gives fewer.
    """
    logits, count = logits.float(), min(count, logits.shape[-1])
    width = logits.shape[-1] // _BLOCKS
    if width < count or count > _BLOCKS:
        values, tokens = logits.topk(count, dim=-1)
    else:  # the largest stand in the blocks with the largest maxima, or in the rest: a fraction of what topk looks at
        blocks = logits[:, : width * _BLOCKS].reshape(len(logits), _BLOCKS, width)
        best = blocks.amax(dim=-1).topk(count, dim=-1).indices
        within = torch.arange(width, device=logits.device)
        places = torch.cat([(best[..., None] * width + within).flatten(1), _rest(logits, width)], dim=1)
        values, order = logits.gather(1, places).topk(count, dim=-1)
        tokens = places.gather(1, order)
    shares = (values - logits.logsumexp(dim=-1, keepdim=True)).exp()
    return tokens.cpu().numpy(), shares.cpu().numpy()


def _rest(logits: torch.Tensor, width: int) -> torch.Tensor:
    """Return the places behind all blocks, int64 [n, rest]."""
    rest = torch.arange(width * _BLOCKS, logits.shape[-1], device=logits.device)
    return rest.expand(len(logits), -1)

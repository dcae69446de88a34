"""Can one forward of this model verify a draft, a tree, ragged rows? Found out by trying, not by a list of names."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from transformers import DynamicCache, EncoderDecoderCache, StaticCache
from transformers.modeling_outputs import BaseModelOutput

from ..tree import Draft
from ..verify.sequence import Sequence
from . import names
from .cache import hides_windows
from .forward import Target
from .ragged import RaggedTarget

__all__ = ["hides_free_slots", "takes_chains", "takes_ragged_batches", "takes_trees"]

_REFUSALS = (RuntimeError, ValueError, TypeError, LookupError, AttributeError, AssertionError)
_Mask = torch.dtype | None
_known: weakref.WeakKeyDictionary[Any, dict[tuple[Any, str, torch.dtype], Any]] = weakref.WeakKeyDictionary()


def takes_trees(model: Any, cache: Any) -> _Mask:
    """Return the type of the mask by which the model verifies a branching draft in one forward, None if it cannot.

    It can if its logits over the tree are those that it gives each branch alone.

    Costs three forwards over at most five tokens (five in half precision), once per model, attention implementation and
    dtype. Alibi models, relative position biases and recurrent layers fail the comparison, flash attention takes no
    such mask.
    """
    if names.decoder_cache(cache) is not cache or getattr(cache, "offloading", False):
        return None
    if names.counts_slots(model) or not names.takes_positions(model):
        return None
    if not all(names.is_plain_layer(layer) for layer in cache.layers) or hides_windows(model, cache):
        return None
    mask: _Mask = _found_out(model, _mask_that_agrees)
    return mask


def takes_ragged_batches(model: Any) -> bool:
    """Tell whether rows of a batch may go on by different numbers of tokens, with dead slots between.

    They may if the logits are those that each row gives alone. Costs four forwards over at most eight tokens, once per
    model, attention implementation and dtype. Biases by slot, recurrent layers and evicting caches fail.
    """
    return not names.counts_slots(model) and bool(_found_out(model, _ragged_logits_agree))


def takes_chains(model: Any, attentions: bool = False) -> bool:
    """Tell whether several tokens may be fed to the model at once, behind others, and taken back.

    They may if the logits are those of plain decoding. Costs fifteen forwards over at most 22 tokens, once per model,
    attention implementation and dtype. Mamba and Jamba, which forget their state there, fail; where the
    difference may drown in rounding, or shows only after more tokens, models are known by name, too.

    Parameters
    ----------
    model : PreTrainedModel
    attentions : bool
        Whether the model is asked for its attentions, which can change how they are computed.
    """
    if names.is_known_to_differ(model):
        return False
    return bool(_found_out(model, _chain_logits_agree_with_attentions if attentions else _chain_logits_agree))


def hides_free_slots(model: Any) -> bool:
    """Tell whether the model masks the slots of a static cache that nothing was written to yet.

    Where it does not, what refused tokens left there would be seen. Costs three forwards over at most 13 tokens, once
    per model, attention implementation and dtype.
    """
    return bool(_found_out(model, _static_logits_agree))


def _found_out(model: Any, ask: Callable[[Any], Any]) -> Any:
    """Return what a comparison says of the model, made once; None for a model that refuses it with an error."""
    if model.training:
        return None
    answers = _known.setdefault(model, {})
    key = (ask, str(model.config.get_text_config()._attn_implementation), model.dtype)
    if key not in answers:
        try:
            with torch.no_grad():
                answers[key] = ask(model)
        except _REFUSALS:
            answers[key] = None
    return answers[key]


def _ragged_logits_agree(model: Any) -> bool:
    """Compare two rows, one of which accepts a draft of two tokens and the other nothing, with each alone."""
    size = model.get_input_embeddings().weight.shape[0]
    first = ((torch.arange(6, device=model.device) + size // 2) % size).tolist()
    second = [first[1], first[4], first[2], first[0]]
    alone = [model(input_ids=torch.tensor([row], device=model.device)).logits[0, -1].float() for row in (first, second)]
    kwargs: dict[str, Any] = {
        names.cache_name(): DynamicCache(config=model.config.get_text_config()),
        "use_cache": True,
    }
    if names.takes_positions(model):
        kwargs["position_ids"] = torch.arange(2, device=model.device).expand(2, -1)
    target = RaggedTarget(model, model.generation_config, kwargs)
    target.prefill(torch.tensor([first[:2], second[:2]], device=model.device))
    target.forward([first[2], second[2]], [Draft.chain(first[3:5]), Draft.chain(first[:1])])
    target.keep([[0, 1], []])
    found = target.forward([first[5], second[3]], [Draft.empty(), Draft.empty()])
    allowed = (1e-4 if model.dtype.itemsize >= 4 else 5e-2) * max(float(logits.abs().max()) for logits in alone)
    return all(float((one[0] - other).abs().max()) <= allowed for one, other in zip(found, alone, strict=True))


def _chain_logits_agree(model: Any, **wanted: bool) -> bool:
    """Compare a refused draft, what was accepted of it, and a draft behind that, with the tokens one by one.

    In half precision the yardstick is what these differ by from a forward over all.
    """
    size = model.get_input_embeddings().weight.shape[0]
    ids = ((torch.arange(22, device=model.device) * 7 + size // 2) % size)[None]
    kwargs: dict[str, Any] = {"use_cache": True, **wanted}
    if model.config.is_encoder_decoder:
        kwargs["encoder_outputs"] = _encoded(model)
        alone = model(decoder_input_ids=ids, encoder_outputs=kwargs["encoder_outputs"]).logits[0].float()
    else:
        alone = model(input_ids=ids).logits[0].float()
    given = {**kwargs, **_fresh_cache(model)}
    if names.takes_positions(model):
        given["position_ids"] = torch.arange(12, device=model.device)[None]
    target, sequence = Target(model, model.generation_config, given), Sequence(ids[:, :12])
    target.prefill(sequence)
    known = ids[0].tolist()
    sequence.append(known[12])
    target.forward(sequence, Draft.chain([known[13], known[14], known[0], known[1]]))
    target.keep([0, 1])
    for token in known[13:16]:
        sequence.append(token)
    found = target.forward(sequence, Draft.chain(known[16:21])).float()
    plain, allowed = _stepwise(model, ids, kwargs), 2e-5 * float(alone.abs().max())
    if model.dtype.itemsize < 4:
        allowed += 3 * float((plain - alone[12:]).abs().max())
    return float((found - plain[3:9]).abs().max()) <= allowed


def _chain_logits_agree_with_attentions(model: Any) -> bool:
    """Compare them while attentions are asked for."""
    return _chain_logits_agree(model, output_attentions=True)


def _static_logits_agree(model: Any) -> bool:
    """Compare a token behind others in a larger static cache with a forward over all."""
    size = model.get_input_embeddings().weight.shape[0]
    ids = ((torch.arange(13, device=model.device) * 7 + size // 2) % size)[None]
    kwargs: dict[str, Any] = {"use_cache": True}
    name = "decoder_input_ids" if model.config.is_encoder_decoder else "input_ids"
    if model.config.is_encoder_decoder:
        kwargs["encoder_outputs"] = _encoded(model)
    alone = model(**{name: ids}, **kwargs).logits[0, -1].float()
    given = {**kwargs, **_fresh_cache(model, slots=32)}
    model(**{name: ids[:, :12]}, **given)
    found = model(**{name: ids[:, 12:]}, **given).logits[0, -1].float()
    allowed = (1e-4 if model.dtype.itemsize >= 4 else 5e-2) * float(alone.abs().max())
    return float((found - alone).abs().max()) <= allowed


def _encoded(model: Any) -> BaseModelOutput:
    """Return what an encoder may have made of six somethings."""
    size = model.get_encoder().config.hidden_size
    states = torch.arange(6 * size, device=model.device, dtype=torch.float32).sin().to(model.dtype)
    return BaseModelOutput(last_hidden_state=states.view(1, 6, size))


def _fresh_cache(model: Any, slots: int | None = None) -> dict[str, Any]:
    """Return an empty cache under its name, a static one where it is to have slots."""
    config = model.config.get_text_config(decoder=True)
    cache: Any = DynamicCache(config=config) if slots is None else StaticCache(config=config, max_cache_len=slots)
    if model.config.is_encoder_decoder:
        cache = EncoderDecoderCache(cache, DynamicCache())
    return {names.cache_name(): cache}


def _stepwise(model: Any, ids: torch.Tensor, kwargs: dict[str, Any]) -> torch.Tensor:
    """Return the logits behind all but the first 12 ids, fed one after the other."""
    given = {**kwargs, **_fresh_cache(model)}
    name = "decoder_input_ids" if model.config.is_encoder_decoder else "input_ids"
    model(**{name: ids[:, :12]}, **given)
    steps = [model(**{name: ids[:, at : at + 1]}, **given) for at in range(12, ids.shape[1])]
    return torch.cat([step.logits[0].float() for step in steps])


def _mask_that_agrees(model: Any) -> _Mask:
    """Return the type of the mask with which a tree's logits are the branches' own."""
    mask = names.mask_dtype(model)
    return mask if mask is not None and _logits_agree(model, mask) else None


def _logits_agree(model: Any, mask: torch.dtype) -> bool:
    """Compare a tree's logits with the branches' own.

    In half precision the yardstick is what a chain through the cache differs by.
    """
    size = model.get_input_embeddings().weight.shape[0]
    ids = (torch.arange(6, device=model.device) + size // 2) % size
    branches = torch.stack([ids[[0, 1, 2, 3, 4]], ids[[0, 1, 2, 5, 5]]])
    alone = model(input_ids=branches, return_dict=True).logits.float()
    first, third, second = ids[3:].tolist()
    tree = Draft(
        tokens=np.array([first, second, third], dtype=np.int32),
        parents=np.array([-1, -1, 0], dtype=np.int32),
        probs=np.ones(3, dtype=np.float32),
        sources=("probe",) * 3,
    )
    allowed = 1e-4 * float(alone.abs().max())
    if model.dtype.itemsize < 4:
        chain = _verified(model, ids, Draft.chain([first, third]), mask)
        allowed += 3 * float((chain - alone[0, 2:5]).abs().max())
    error = _verified(model, ids, tree, mask) - torch.stack([alone[0, 2], alone[0, 3], alone[1, 3], alone[0, 4]])
    return float(error.abs().max()) <= allowed


def _verified(model: Any, ids: torch.Tensor, draft: Draft, mask: torch.dtype) -> torch.Tensor:
    """Return the logits behind the third of `ids` and behind each node of a draft, two tokens being cached."""
    kwargs = {
        names.cache_name(): DynamicCache(config=model.config.get_text_config()),
        "position_ids": torch.arange(2, device=ids.device)[None],
        "attention_mask": None,
        "use_cache": True,
    }
    target, sequence = Target(model, model.generation_config, kwargs), Sequence(ids[None, :2])
    target.prefill(sequence)
    target.tree_mask = mask
    sequence.append(int(ids[2]))
    return target.forward(sequence, draft).float()

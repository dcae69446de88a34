"""What transformers calls things, release by release: the one place that knows private or changing names.

Checked on 5.3 to 5.24. `tests/hf/test_names.py` fails when the installed release lacks one of them.
"""

from __future__ import annotations

import contextlib
import copy
import inspect
import re
from collections.abc import Mapping
from typing import Any

import torch
from transformers import GenerationMixin, PreTrainedModel, masking_utils
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer
from transformers.generation import candidate_generator as stock_drafters
from transformers.generation import logits_process
from transformers.generation.configuration_utils import GenerationMode
from transformers.generation.stopping_criteria import (
    EosTokenCriteria,
    MaxLengthCriteria,
    MaxTimeCriteria,
    StoppingCriteriaList,
    StopStringCriteria,
)
from transformers.generation.utils import GENERATION_MODES_MAPPING

__all__ = [
    "NO_TOKEN",
    "OWN_HEADS",
    "PLAIN_LOOP",
    "PLAIN_MODES",
    "activate_past_recording",
    "cache_name",
    "candidate_generator",
    "counts_slots",
    "deactivate_past_recording",
    "decoder_cache",
    "decoding",
    "decoding_call",
    "generating",
    "has_end",
    "has_own_loop",
    "has_unsynced_peers",
    "is_blind",
    "is_callers",
    "is_known_to_differ",
    "is_plain_layer",
    "is_row_wise",
    "is_windowed_layer",
    "mask_dtype",
    "mask_name",
    "other_loops",
    "pad_token",
    "placeholders",
    "plain_stops",
    "prefill",
    "prepare_inputs",
    "reads_states",
    "sees_a_batch",
    "takes_cache",
    "takes_maxima",
    "takes_positions",
    "tensor_parallel_group",
    "update_kwargs",
    "windows",
    "windows_by_mask",
    "without_placeholders",
]


def _processors(*found: str) -> set[Any]:
    """Return the processors of these names that the release has."""
    return {getattr(logits_process, name) for name in found if hasattr(logits_process, name)}


_BLIND = _processors(  # these do not look at the ids
    "EpsilonLogitsWarper",
    "EtaLogitsWarper",
    "InfNanRemoveLogitsProcessor",
    "LogitNormalization",
    "MinPLogitsWarper",
    "SuppressTokensLogitsProcessor",
    "TemperatureLogitsWarper",
    "TopHLogitsWarper",
    "TopKLogitsWarper",
    "TopPLogitsWarper",
    "TypicalLogitsWarper",
)
_ROW_WISE = _BLIND | _processors(  # what these return for a row follows from its ids and scores alone
    "ExponentialDecayLengthPenalty",
    "ForcedBOSTokenLogitsProcessor",
    "ForcedEOSTokenLogitsProcessor",
    "MinLengthLogitsProcessor",
    "MinNewTokensLengthLogitsProcessor",
    "NoBadWordsLogitsProcessor",
    "NoRepeatNGramLogitsProcessor",
    "SequenceBiasLogitsProcessor",
    "SuppressTokensAtBeginLogitsProcessor",
    "WatermarkLogitsProcessor",
)
_ROW_WISE |= {EosTokenCriteria, MaxLengthCriteria, MaxTimeCriteria, StopStringCriteria}
NO_TOKEN = 2**31 - 1
OWN_HEADS = "mtp"  # the fallback that stands for a target's own heads of multi-token prediction
_SHARING = ("Gemma4Assistant", "Gemma4UnifiedAssistant")  # assistants that read the keys and values of the target
_DIFFER = {  # the first forget their state; Moshi sees beyond its window
    *("FalconMambaMixer", "JambaMambaMixer", "MambaMixer", "RecurrentGemmaRglru", "ZambaMambaMixer"),
    "MoshiModel",
}
_PLACEHOLDER = re.compile(r"(image|video|audio)_token_(id|index)")
_MARKS_CACHES = "_is_user_defined" in inspect.getsource(GenerationMixin)
_KNOW_ROWS = ("EncoderNoRepeatNGram", "EncoderRepetitionPenalty", "PrefixConstrained", "RepetitionPenalty")
_SEE_A_BATCH = _processors(*(f"{kind}LogitsProcessor" for kind in _KNOW_ROWS))

PLAIN_MODES = (GenerationMode.GREEDY_SEARCH, GenerationMode.SAMPLE)
PLAIN_LOOP = GENERATION_MODES_MAPPING[GenerationMode.SAMPLE]  # the method behind both


def cache_name() -> str:
    """Return the keyword under which models take and return their cache: ``cache`` since 5.20-odd.

    The release is asked, not the model, whose own `prepare_inputs_for_generation` may take anything.
    """
    taken = inspect.signature(GenerationMixin.prepare_inputs_for_generation).parameters
    return "cache" if "cache" in taken else "past_key_values"


def mask_name(model: Any) -> str:
    """Return the keyword of the 2D mask over the ids that are decoded."""
    return "decoder_attention_mask" if model.config.is_encoder_decoder else "attention_mask"


def other_loops() -> list[str]:
    """Return the methods that decode in other modes (beams, assisted); modes that left the package have none."""
    return sorted({loop for loop in GENERATION_MODES_MAPPING.values() if "/" not in loop} - {PLAIN_LOOP})


def has_own_loop(model: Any) -> bool:
    """Tell whether a model's class replaces the plain loop (speech models that write several codebooks at once)."""
    own = getattr(type(model), PLAIN_LOOP)
    return inspect.unwrap(own) is not inspect.unwrap(getattr(GenerationMixin, PLAIN_LOOP))


def stock_loop(model: Any) -> Any:
    """Return the model's plain loop, also where `enable` has put another before it."""
    return inspect.unwrap(getattr(type(model), PLAIN_LOOP)).__get__(model)


def generating(model: Any) -> Any:
    """Return the model whose `generate` runs, taken out of torch.compile and peft; None where there is none."""
    while model is not None and not isinstance(model, GenerationMixin):
        inside = getattr(model, "get_base_model", None)
        model = inside() if inside else getattr(model, "_orig_mod", None)
    return model


def placeholders(model: Any) -> set[int]:
    """Return the tokens that stand for a part of an image, a video or a sound in a prompt."""
    config = model.config.to_dict()
    return {value for name, value in config.items() if _PLACEHOLDER.fullmatch(name) and isinstance(value, int)}


def without_placeholders(model: Any, ids: torch.Tensor) -> torch.Tensor:
    """Return ids with a number that is no token where a part of an image, a video or a sound stands."""
    found = placeholders(model)
    if not found:
        return ids
    return ids.masked_fill(torch.isin(ids, torch.tensor(sorted(found), device=ids.device)), NO_TOKEN)


def prefill(model: Any, ids: torch.Tensor, generation_config: Any, model_kwargs: dict[str, Any]) -> Any:
    """Run the prompt through the model as `generate` would (continued caches, embeddings, chunks)."""
    return model._prefill(ids, generation_config, model_kwargs, is_first_iteration=not generation_config.is_assistant)


def prepare_inputs(
    model: Any, ids: torch.Tensor, length: int, model_kwargs: dict[str, Any], rows: int | None = None
) -> dict[str, Any]:
    """Return the model's inputs for its last `length` tokens, which bring the logits behind the last `rows` of them."""
    inputs: dict[str, Any] = model.prepare_inputs_for_generation(ids, next_sequence_length=length, **model_kwargs)
    if "logits_to_keep" in inputs:  # set here, since some models set it again while preparing
        inputs["logits_to_keep"] = length if rows is None else rows
    return inputs


def update_kwargs(model: Any, outputs: Any, model_kwargs: dict[str, Any], tokens: int) -> dict[str, Any]:
    """Return `model_kwargs` with mask and positions grown by `tokens`; the given dict stays as it is."""
    grown: dict[str, Any] = model._update_model_kwargs_for_generation(
        outputs, dict(model_kwargs), is_encoder_decoder=model.config.is_encoder_decoder, num_new_tokens=tokens
    )
    return grown


def decoding(model: Any) -> contextlib.AbstractContextManager[Any]:
    """Return the context in which `generate` runs its decoding steps (mixture-of-experts kernels)."""
    optimized: contextlib.AbstractContextManager[Any] = model._optimize_model_for_decode()
    return optimized


def decoder_cache(cache: Any) -> Any:
    """Return the part of a cache that grows while decoding: of an encoder-decoder model the decoder's own."""
    return getattr(cache, "self_attention_cache", cache)


def decoding_call(model: Any, model_kwargs: dict[str, Any], generation_config: Any) -> Any:
    """Return what `generate` calls for its decoding steps: the model, compiled where it would be."""
    if model._valid_auto_compile_criteria(model_kwargs, generation_config):
        return model.get_compiled_call(generation_config.compile_config)
    return model


def is_plain_layer(layer: Any) -> bool:
    """Tell whether a cache layer holds all keys and values [batch, heads, length, head] and nothing more."""
    return type(layer) is DynamicLayer


def windows(cache: Any) -> list[int | None] | None:
    """Return the sliding window of each of the cache's layers with attention, None for one that sees everything.

    None for a static cache, all slots of which are looked at.
    """
    layers = decoder_cache(cache).layers
    if any(hasattr(layer, "max_cache_len") for layer in layers):
        return None
    return [getattr(layer, "sliding_window", None) for layer in layers if hasattr(layer, "keys")]


def windows_by_mask(model: Any) -> dict[str | None, int | None] | None:
    """Return the sliding window of each mask that the model takes, by its name; {None: window} where it takes one mask.

    A window of None sees everything. None for kinds of layers that are not known here.
    """
    config = model.config.get_text_config()
    window, kinds = getattr(config, "sliding_window", None), getattr(config, "layer_types", None)
    if kinds is None:
        return {None: window}
    known = {"full_attention": None, "sliding_attention": window}
    return {kind: known[kind] for kind in kinds} if set(kinds) <= set(known) else None


def is_windowed_layer(layer: Any) -> bool:
    """Tell whether a cache layer holds the keys and values of a sliding window."""
    return type(layer) is DynamicSlidingWindowLayer


def activate_past_recording(cache: Any) -> None:
    """Make sliding windows keep what a rollback needs; their `crop` has to follow every forward."""
    if hasattr(cache, "activate_past_recording"):
        cache.activate_past_recording()


def deactivate_past_recording(cache: Any) -> None:
    """Hand a cache back as plain decoding leaves it."""
    for layer in decoder_cache(cache).layers:
        if hasattr(layer, "record_past"):
            layer.record_past = False


def plain_stops(criteria: Any, generation_config: Any) -> tuple[frozenset[int], int] | None:
    """Return (end tokens, length limit) when these two are all that stops the generation, else None."""
    if type(criteria) is not StoppingCriteriaList:
        return None
    if any(type(criterion) not in (EosTokenCriteria, MaxLengthCriteria) for criterion in criteria):
        return None
    ends = [c.eos_token_id.flatten().tolist() for c in criteria if isinstance(c, EosTokenCriteria)]
    lengths = [c.max_length for c in criteria if isinstance(c, MaxLengthCriteria)]
    return frozenset(token for tokens in ends for token in tokens), min([generation_config.max_length, *lengths])


def mask_dtype(model: Any) -> torch.dtype | None:
    """Return the type of the dense 4D mask that the model's attention takes, or None when it takes no such mask.

    Asks the implementation's own mask builder: sdpa builds booleans, eager floats, flash attention keeps the 2D mask
    and flex attention builds blocks.
    """
    config = model.config.get_text_config()
    embeds = torch.empty(1, 2, 0, dtype=model.dtype, device=model.device)
    given: Mapping[str, Any] = {
        "config": config,
        "inputs_embeds": embeds,
        "input_embeds": embeds,
        "attention_mask": torch.tensor([[0, 1]], device=model.device),
        "cache_position": torch.arange(2, device=model.device),
        "past_key_values": None,
        "cache": None,
    }
    accepted = inspect.signature(masking_utils.create_causal_mask).parameters
    mask = masking_utils.create_causal_mask(**{name: value for name, value in given.items() if name in accepted})
    return mask.dtype if isinstance(mask, torch.Tensor) and mask.ndim == 4 else None


def counts_slots(model: Any) -> bool:
    """Tell whether a model's windows count the slots of its cache, whatever mask and positions it is given."""
    return "local" in getattr(model.config, "attention_layers", ())  # GPT-Neo


def is_known_to_differ(model: Any) -> bool:
    """Tell whether a model has layers that compute something else when they are fed several tokens behind others."""
    return any(type(module).__name__ in _DIFFER for module in model.modules())


def takes_cache(model: Any) -> bool:
    """Tell whether the model's forward takes a cache."""
    return bool({"cache", "past_key_values", "cache_params"} & set(inspect.signature(model.forward).parameters))


def has_unsynced_peers(model: Any) -> bool:
    """Tell whether other processes wait for this one's every forward (FSDP, DeepSpeed ZeRO 3)."""
    from transformers.integrations.deepspeed import is_deepspeed_zero3_enabled
    from transformers.integrations.fsdp import is_fsdp_managed_module

    distributed = torch.distributed
    if not (distributed.is_available() and distributed.is_initialized() and distributed.get_world_size() > 1):
        return False
    shards: Any = is_deepspeed_zero3_enabled
    return bool(shards() or is_fsdp_managed_module(model))


def candidate_generator(assistant: Any, tokenizer: Any, call: dict[str, Any]) -> Any:
    """Return the stock drafter for an assistant model, a pair (model, tokenizer) of another tokenizer, or OWN_HEADS."""
    model, own = assistant if isinstance(assistant, tuple) else (assistant, None)
    target, arguments = call["model"], {name: value for name, value in call.items() if name != "model"}
    selected = copy.copy(call["generation_config"])
    if assistant == OWN_HEADS:
        model, selected.use_mtp = None, True
        if "MTPCandidateGenerator" not in vars(stock_drafters):
            raise ValueError(f"fallback={assistant!r} needs a transformers whose generate takes use_mtp=True")
    elif _is_block_drafter(model):
        selected.speculation_type = "dflash"
    return target._get_candidate_generator(
        **{**arguments, "generation_config": selected},
        inputs_tensor=call["input_ids"],
        assistant_model=model,
        target_tokenizer=None if own is None else tokenizer,
        assistant_tokenizer=own,
    )


def _is_block_drafter(assistant: Any) -> bool:
    """Tell whether an assistant drafts a block at once from the target's layers (DFlash)."""
    return hasattr(assistant.config, "target_layer_ids")


def reads_states(fallback: Any) -> bool:
    """Tell whether a fallback, a generator or what makes one, drafts from the target's hidden states."""
    if isinstance(fallback, PreTrainedModel):
        return _is_block_drafter(fallback) or type(fallback).__name__.startswith(_SHARING)
    return fallback == OWN_HEADS or bool(getattr(fallback, "requires_model_outputs", False))


def takes_maxima(generator: Any) -> bool:
    """Tell whether a stock drafter proposes its likeliest tokens even when sampling, although it returns logits."""
    return type(generator).__name__ == "SinglePositionMultiTokenCandidateGenerator"


def tensor_parallel_group(model: Any) -> Any:
    """Return the group of processes that hold parts of the model's layers; None for a model in one process."""
    mesh = getattr(model, "_device_mesh", None)
    if mesh is None or (getattr(model, "tp_size", None) or 1) < 2:
        return None
    return mesh["tp"].get_group() if "tp" in (mesh.mesh_dim_names or ()) else mesh.get_group()


def is_row_wise(one: Any) -> bool:
    """Tell whether a processor or criterion may be asked for one row of a batch alone."""
    return type(one) in _ROW_WISE or getattr(one, "row_wise", False) is True


def is_blind(processor: Any) -> bool:
    """Tell whether a processor's scores follow from the logits alone."""
    return type(processor) in _BLIND


def sees_a_batch(one: Any) -> bool:
    """Tell whether a processor without state knows a row by its number in the batch."""
    return type(one) in _SEE_A_BATCH


def has_end(criteria: Any) -> bool:
    """Tell whether rows that have ended are filled up with padding, as `generate` decides."""
    return any(hasattr(criterion, "eos_token_id") for criterion in criteria)


def is_callers(cache: Any) -> bool:
    """Tell whether the caller may go on with a cache; where the release does not say, it may be."""
    return bool(getattr(cache, "_is_user_defined", not _MARKS_CACHES))


def pad_token(generation_config: Any) -> int:
    """Return the token that fills up rows that have ended."""
    resolved = getattr(generation_config, "_pad_token_tensor", None)
    token = generation_config.pad_token_id if resolved is None else int(resolved)
    return 0 if token is None else token


def takes_positions(model: Any) -> bool:
    """Tell whether the model is told where its tokens stand."""
    return "position_ids" in inspect.signature(model.forward).parameters

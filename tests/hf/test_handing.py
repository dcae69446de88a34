"""Drafters that read the target's states: heads of multi-token prediction, DFlash, assistants that share its cache."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any, ClassVar, cast

import pytest
import torch
import transformers
from transformers.generation import candidate_generator as stock
from transformers.modeling_outputs import BaseModelOutput

from lookahead import Lookahead
from lookahead.hf import fallback, names
from lookahead.hf.handing import Handing
from tests.models import SMALL, VOCABULARY, prompt, tiny

OPTIONS: dict[str, Any] = {"cost": "linear:0.001", "recycling": False}
IDS = torch.randint(3, VOCABULARY, (1, 20), generator=torch.Generator().manual_seed(5))
KINDS = [
    pytest.param("1 head", marks=pytest.mark.skipif(not hasattr(stock, "MTPCandidateGenerator"), reason="newer")),
    pytest.param("3 heads", marks=pytest.mark.skipif(not hasattr(stock, "MTPCandidateGenerator"), reason="newer")),
    pytest.param(
        "dflash", marks=pytest.mark.skipif(not hasattr(stock, "DFlashTokenCandidateGenerator"), reason="newer")
    ),
    pytest.param(
        "shared cache",
        marks=pytest.mark.skipif(not hasattr(stock, "SinglePositionMultiTokenCandidateGenerator"), reason="newer"),
    ),
]


def ready(model: Any) -> Any:
    model.generation_config.eos_token_id = None
    model.generation_config.pad_token_id = 0
    return model.eval()


@functools.cache
def target(kind: str) -> Any:
    """Return a model that says mostly what follows from its last token alone, which other models can guess."""
    torch.manual_seed(0)
    if kind == "shared cache":
        layers = {"layer_types": ["sliding_attention", "full_attention"], "sliding_window": 24}
        sizes = {"head_dim": 8, "global_head_dim": 8, "hidden_size_per_layer_input": 0, "num_kv_shared_layers": 0}
        config = transformers.Gemma4TextConfig(**{**SMALL, **layers, **sizes})
        return ready(transformers.Gemma4ForCausalLM(config))
    if kind == "dflash":
        return tiny(dtype=torch.float32)
    experts = {"n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16, "n_group": 1}
    heads = {"num_mtp_layers": int(kind[0]), "topk_group": 1, "first_k_dense_replace": 1, "head_dim": 8}
    model = ready(transformers.Glm4MoeForCausalLM(transformers.Glm4MoeConfig(**{**SMALL, **experts, **heads})))
    for name, weights in model.named_parameters():
        if "down_proj" in name or "o_proj" in name:
            weights.data.mul_(0.1)
    return model


@functools.cache
def heads(kind: str) -> Any:
    """Return the heads that a checkpoint would hold: they say what follows from the last token."""
    from transformers.modeling_layers import MtpModel

    torch.manual_seed(1)
    made = MtpModel(target(kind), int(kind[0]))
    for name, weights in made.named_parameters():
        if weights.ndim > 1 and "embed" not in name and "head" not in name:
            torch.nn.init.normal_(weights, std=0.03)
        if "eh_proj" in name:
            weights.data.copy_(torch.eye(32, 64))
    for name, values in made.named_buffers():
        if "correction_bias" in name:
            values.zero_()
    return made.eval()


@functools.cache
def drafter(kind: str) -> Any:
    """Return what is given as the fallback, and as the assistant of stock decoding."""
    torch.manual_seed(1)
    if kind == "dflash":
        sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "head_dim": 8, "block_size": 4}
        more = {"num_attention_heads": 4, "num_key_value_heads": 2, "mask_token_id": 60, "target_layer_ids": [0, 1]}
        config = transformers.MuseGlimmerAssistantConfig(**sizes, **more, sliding_window=24)
        assistant = transformers.MuseGlimmerAssistantModel(config).eval()
        for weights in assistant.parameters():
            torch.nn.init.normal_(weights, std=0.3)
        return assistant
    if kind == "shared cache":
        text = copy.deepcopy(target(kind).config)
        text.num_kv_shared_layers, text.vocab_size_per_layer_input, text.enable_moe_block = 2, 0, False
        config = transformers.Gemma4AssistantConfig(text_config=text, backbone_hidden_size=32)
        model = ready(transformers.Gemma4AssistantForCausalLM(config))
        model.generation_config.num_assistant_tokens = 4
        return model
    return "mtp"


@pytest.fixture(autouse=True)
def no_checkpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have heads come from here rather than out of a checkpoint."""
    from transformers import modeling_layers

    if hasattr(modeling_layers, "MtpModel"):
        kinds = {1: "1 head", 3: "3 heads"}
        made = lambda model, **_: heads(kinds[model.config.num_mtp_layers])  # noqa: E731
        monkeypatch.setattr(modeling_layers.MtpModel, "from_pretrained", made)


def stocks(kind: str) -> dict[str, Any]:
    """Return what has stock decoding draft in the same way."""
    if kind == "dflash":
        return {"assistant_model": drafter(kind), "speculation_type": "dflash"}
    return {"assistant_model": drafter(kind)} if kind == "shared cache" else {"use_mtp": True}


def drafts(monkeypatch: pytest.MonkeyPatch, decode: Callable[[], Any]) -> tuple[Any, list[list[int]]]:
    """Return what a call returns and the drafts that stock generators made in it."""
    found: list[list[int]] = []
    with monkeypatch.context() as patched:
        for name in ("MTP", "DFlashToken", "SinglePositionMultiToken"):
            generator = getattr(stock, f"{name}CandidateGenerator")
            told = generator.get_candidates

            def get_candidates(self: Any, ids: torch.Tensor, *args: Any, told: Any = told, **kwargs: Any) -> Any:
                candidates, logits = told(self, ids, *args, **kwargs)
                found.append(candidates[0, ids.shape[1] :].tolist())
                return candidates, logits

            patched.setattr(generator, "get_candidates", get_candidates)
        return decode(), [draft for draft in found if draft]


@pytest.mark.parametrize("kind", KINDS)
def test_the_drafts_are_those_of_stock_decoding(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fallback, "_ENOUGH", float("inf"))  # always asked
    model, ahead = target(kind), Lookahead(fallback=drafter(kind), **OPTIONS)
    stocks_ids, stocks_drafts = drafts(monkeypatch, lambda: model.generate(IDS, max_new_tokens=40, **stocks(kind)))
    ours, our_drafts = drafts(monkeypatch, lambda: model.generate(IDS, max_new_tokens=40, custom_generate=ahead))
    assert torch.equal(stocks_ids, ours)
    assert our_drafts == stocks_drafts[: len(our_drafts)]
    assert len(our_drafts) >= len(stocks_drafts) - 1  # stock decoding drafts beyond the length limit, too
    assert len({token for draft in our_drafts for token in draft}) > 2, "always the same: nothing is shown"


@pytest.mark.parametrize("kind", KINDS)
def test_greedy_output_is_vanillas(kind: str) -> None:
    model, ahead = target(kind), Lookahead(fallback=drafter(kind), **OPTIONS)
    drafted = accepted = 0
    for seed in range(4):
        ids = IDS if seed == 0 else prompt(seed=seed)
        vanilla = model.generate(ids, max_new_tokens=40)
        assert torch.equal(vanilla, model.generate(ids, max_new_tokens=40, custom_generate=ahead))
        drafted += ahead.stats.drafted_by_source["fallback"]
        accepted += ahead.stats.accepted_by_source["fallback"]
    assert drafted > 0
    assert accepted > 0 or "head" not in kind


@pytest.mark.parametrize("kind", KINDS)
def test_prompts_shorter_than_a_draft(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fallback, "_ENOUGH", float("inf"))
    model = target(kind)
    for length in (1, 2, 3):
        ahead = Lookahead(fallback=drafter(kind), **OPTIONS)
        vanilla = model.generate(IDS[:, :length], max_new_tokens=20)
        assert torch.equal(vanilla, model.generate(IDS[:, :length], max_new_tokens=20, custom_generate=ahead))
        assert ahead.stats.drafted_by_source["fallback"] > 0


@pytest.mark.parametrize("kind", KINDS)
def test_hidden_states_for_the_caller_too(kind: str) -> None:
    model, wanted = target(kind), {"return_dict_in_generate": True, "output_hidden_states": True}
    vanilla = model.generate(IDS, max_new_tokens=30, **wanted)
    ahead = Lookahead(fallback=drafter(kind), **OPTIONS)
    ours = model.generate(IDS, max_new_tokens=30, custom_generate=ahead, **wanted)
    assert torch.equal(vanilla.sequences, ours.sequences)
    assert ahead.stats.drafted_by_source["fallback"] > 0
    for theirs, own in zip(vanilla.hidden_states, ours.hidden_states, strict=True):
        assert len(theirs) == len(own)
        assert all(torch.allclose(one, other, atol=1e-4) for one, other in zip(theirs, own, strict=True))


@pytest.mark.parametrize("kind", KINDS[:1] + KINDS[2:])
def test_sampling(kind: str) -> None:
    """Chi-square over the second and third token; where the likeliest is proposed, a seed gives vanilla's tokens."""
    model, ahead = target(kind), Lookahead(fallback=drafter(kind), **OPTIONS)
    settings: dict[str, Any] = {"max_new_tokens": 3, "do_sample": True, "top_k": 3, "temperature": 3.0}
    found: list[dict[tuple[int, ...], int]] = [{}, {}]
    drafted, rounds, outputs = 0, 60 if kind == "shared cache" else 200, []
    for counts, custom in zip(found, (None, ahead), strict=True):
        torch.manual_seed(0)
        for _ in range(rounds):
            ids = model.generate(IDS, custom_generate=custom, **settings)
            key = tuple(ids[0, -2:].tolist())
            counts[key] = counts.get(key, 0) + 1
            drafted += ahead.stats.drafted_by_source["fallback"] if custom else 0
            outputs.append(ids)
    assert drafted > 20
    if kind == "shared cache":
        assert torch.equal(torch.cat(outputs[:rounds]), torch.cat(outputs[rounds:]))
    pairs = [(found[0].get(key, 0), found[1].get(key, 0)) for key in set(found[0]) | set(found[1])]
    statistic = sum((one - other) ** 2 / (one + other) for one, other in pairs)
    freedom = len(pairs) - 1
    assert statistic < freedom + 4 * (2 * freedom) ** 0.5


@pytest.mark.parametrize("kind", KINDS)
def test_a_continued_cache(kind: str) -> None:
    """What was said before the call was not seen; the output is vanilla's, whoever can draft then."""
    model, cache = target(kind), names.cache_name()
    ahead, found = Lookahead(fallback=drafter(kind), **OPTIONS), []
    for custom in (None, ahead):
        one = model.generate(IDS, max_new_tokens=5, return_dict_in_generate=True, custom_generate=custom)
        two = model.generate(one.sequences, max_new_tokens=20, custom_generate=custom, **{cache: one[cache]})
        found.append(two)
    assert torch.equal(*found)


def test_states_of_a_tree_are_handed_over_in_the_order_of_the_text() -> None:
    class Generator:
        model_kwargs_overrides: ClassVar[dict[str, Any]] = {"output_hidden_states": -1}

    def outputs(first: int, fed: int) -> BaseModelOutput:
        states = torch.arange(first, first + fed, dtype=torch.float32).view(1, fed, 1)
        made: Any = BaseModelOutput(hidden_states=cast(Any, (None, states)))
        made["shared_kv_states"] = {"full_attention": (torch.arange(first + fed).view(1, 1, -1, 1),) * 2}
        return made

    handing = Handing(Generator())
    assert handing.wanted({}) == {"output_hidden_states": -1}
    assert handing.wanted({"output_hidden_states": True}) == {"output_hidden_states": True}
    handing.prompt(outputs(0, 5))
    handing.step(outputs(5, 6), before=1, rows=[0, 2, 3])
    assert handing.is_complete(9) and handing.give({})["n_last_matches"] == 7
    handing.step(outputs(11, 4), before=0, rows=[0, 3])
    given = handing.give({"position_ids": 1})
    assert given["model_kwargs"] == {"attention_mask": None, "position_ids": 1}
    assert given["model_outputs"].hidden_states[1].flatten().tolist() == [11, 14]
    assert given["model_outputs"].shared_kv_states["full_attention"][1].flatten().tolist() == [*range(12), 14]
    assert given["n_last_matches"] == 1 and not given["is_first_iteration"]


def test_heads_that_are_not_there() -> None:
    with pytest.raises(ValueError, match="num_mtp_layers|use_mtp"):
        tiny().generate(IDS, max_new_tokens=5, custom_generate=Lookahead(fallback="mtp", **OPTIONS))

"""Whatever a drafter proposes, in whatever call: it can cost time, but changes nothing and breaks nothing."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import DynamicCache

from lookahead import Lookahead
from lookahead.hf.names import cache_name
from tests.liars import LIES, lying
from tests.models import KINDS, VOCABULARY, prompt, tiny
from tests.test_equality import Ear, Observer, Witness, close
from tests.vocabularies import letters

WANTED = ("output_scores", "output_logits", "output_attentions", "output_hidden_states")

_LISTS = st.lists(st.sampled_from(sorted(LIES)), min_size=1, max_size=4)
_SAMPLING = st.one_of(
    st.just({}),
    st.fixed_dictionaries(
        {"do_sample": st.just(True), "temperature": st.sampled_from([0.1, 0.6, 1.5])},
        optional={"top_k": st.sampled_from([0, 4]), "top_p": st.just(0.8), "min_p": st.just(0.05)},
    ),
)
_PROCESSORS = {
    "repetition_penalty": st.sampled_from([0.8, 1.3]),
    "no_repeat_ngram_size": st.integers(2, 4),
    "bad_words_ids": st.just([[5], [7, 9]]),
    "suppress_tokens": st.just([3, 4, 5]),
    "begin_suppress_tokens": st.just([6, 7]),
    "sequence_bias": st.just({(8,): 3.0}),
    "min_new_tokens": st.integers(1, 6),
    "forced_eos_token_id": st.just(2),
}
_OPTIONS = st.fixed_dictionaries(
    {"cost": st.sampled_from([None, "linear:0", "linear:0.05"])},
    optional={"tree": st.booleans(), "recycling": st.booleans(), "budget": st.integers(0, 40)},
)


def padded(lengths: list[int], seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Give prompts of these lengths, padded on the left, and their mask."""
    ids = torch.zeros(len(lengths), max(lengths), dtype=torch.long)
    mask = torch.zeros_like(ids)
    for row, length in enumerate(lengths):
        ids[row, -length:], mask[row, -length:] = prompt(length, seed=seed + row)[0], 1
    return ids, mask


# ---- Each lie ----


@pytest.mark.parametrize(
    ("kind", "tree"), [("llama", False), *((kind, True) for kind in KINDS if kind not in ("qwen2", "qwen3", "olmo2"))]
)
@pytest.mark.parametrize("name", LIES)
def test_every_lie(name: str, kind: str, tree: bool) -> None:
    model, ids, lookahead = tiny(kind), prompt(), Lookahead(tree=tree, cost="linear:0", budget=20)
    vanilla = model.generate(ids, max_new_tokens=20)
    with lying([name], vanilla.tolist(), VOCABULARY) as told:
        ours = model.generate(ids, max_new_tokens=20, custom_generate=lookahead)
    assert torch.equal(ours, vanilla)
    assert lookahead.stats.tokens == 20 and lookahead.stats.drafted <= sum(told)
    assert lookahead.stats.accepted > 0 or not name.startswith("truth")


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind in ("llama", "gemma3")])
@pytest.mark.parametrize("name", LIES)
def test_every_lie_in_a_batch(name: str, kind: str) -> None:
    model, lookahead = tiny(kind), Lookahead(cost="linear:0", budget=20)
    ids, mask = padded([30, 17, 24], seed=1)
    vanilla = model.generate(ids, attention_mask=mask, max_new_tokens=20)
    answers = [row[pad:].tolist() for row, pad in zip(vanilla, (0, 13, 6), strict=True)]
    with lying([name], answers, VOCABULARY) as told:
        ours = model.generate(ids, attention_mask=mask, max_new_tokens=20, custom_generate=lookahead)
    assert torch.equal(ours, vanilla)
    assert lookahead.stats.tokens == 60 and lookahead.stats.drafted <= sum(told)
    assert lookahead.stats.accepted > 0 or not name.startswith("truth")


# ---- Several lies, in calls of every shape ----


class Call:
    """One call of `generate` on one prompt, and everything that can be seen of it."""

    def __init__(self, kind: str, asked: dict[str, Any], shape: dict[str, Any]) -> None:
        eager = "output_attentions" in shape["wanted"]
        self.model = tiny(kind, attention="eager" if eager else "sdpa")
        self.asked, self.shape, self.padding = asked, shape, shape["padding"]
        self.ids = torch.cat([torch.zeros(1, self.padding, dtype=torch.long), prompt(**shape["prompt"])], dim=1)
        self.cache: DynamicCache | None = None
        self.ear, self.processed, self.stopped = Ear(), list[Any](), list[Any]()

    def run(self, lookahead: Lookahead | None) -> tuple[Any, torch.Tensor]:
        """Return what `generate` gives, and in which state it leaves the random generator."""
        kwargs: dict[str, Any] = dict(self.asked)
        if self.shape["continued"]:
            self._say_something_first()
            kwargs[cache_name()] = self.cache
        if self.shape["witness"]:
            kwargs["logits_processor"] = [Witness(self.processed)]
        if self.shape["observer"]:
            kwargs["stopping_criteria"] = [Observer(self.stopped)]
        if self.shape["ear"]:
            kwargs["streamer"] = self.ear
        if self.shape["wanted"]:
            kwargs |= {"return_dict_in_generate": True, **dict.fromkeys(self.shape["wanted"], True)}
        mask = torch.ones_like(self.ids)
        mask[:, : self.padding] = 0
        torch.manual_seed(self.shape["prompt"]["seed"])
        generate = self.model.generate if lookahead is None else lookahead.generate
        model = () if lookahead is None else (self.model,)
        return generate(*model, self.ids, attention_mask=mask, **kwargs), torch.get_rng_state()

    def _say_something_first(self) -> None:
        self.cache = DynamicCache(config=self.model.config)
        mask = torch.ones_like(self.ids)
        mask[:, : self.padding] = 0
        known = self.model.generate(self.ids, attention_mask=mask, max_new_tokens=5, **{cache_name(): self.cache})
        self.ids = torch.cat([known, prompt(7, seed=9)], dim=1)

    def see(self, output: Any) -> tuple[Any, ...]:
        """Return what has to be equal to the last bit."""
        sequences = output.sequences if self.shape["wanted"] else output
        length = None if self.cache is None else self.cache.get_seq_length()
        return sequences.tolist(), self.processed, self.stopped, self.ear.heard, length


_SHAPES = st.fixed_dictionaries(
    {
        "prompt": st.fixed_dictionaries(
            {"length": st.integers(2, 50), "period": st.integers(1, 13), "seed": st.integers(0, 999)}
        ),
        "padding": st.sampled_from([0, 0, 1, 9]),
        "continued": st.booleans(),
        "witness": st.booleans(),
        "observer": st.booleans(),
        "ear": st.booleans(),
        "wanted": st.sets(st.sampled_from(WANTED)),
    }
)


@settings(max_examples=settings().max_examples // 2)
@given(
    st.sampled_from(KINDS),
    _LISTS,
    _SAMPLING,
    st.fixed_dictionaries({"max_new_tokens": st.integers(1, 24)}, optional=_PROCESSORS),
    st.lists(st.integers(3, VOCABULARY - 1), max_size=2),
    _SHAPES,
    _OPTIONS,
    st.booleans(),
)
def test_any_lie_in_any_call(
    kind: str,
    lies: list[str],
    sampling: dict[str, Any],
    processors: dict[str, Any],
    ends: list[int],
    shape: dict[str, Any],
    options: dict[str, Any],
    with_text: bool,
) -> None:
    if kind == "bloom" or "output_attentions" in shape["wanted"]:
        shape["padding"] = 0  # eager attention gives vanilla NaN there in float64
    processors["min_new_tokens"] = min(processors.get("min_new_tokens", 0), processors["max_new_tokens"])
    asked = {**sampling, **processors, "eos_token_id": ends or None}
    ours, vanilla = Call(kind, asked, shape), Call(kind, asked, shape)
    expected, state = vanilla.run(None)
    answer = (expected.sequences if shape["wanted"] else expected)[0, shape["padding"] :].tolist()
    with lying(lies, [answer], VOCABULARY, shape["prompt"]["seed"]):
        found, our_state = ours.run(Lookahead(letters() if with_text else None, **options))
    assert ours.see(found) == vanilla.see(expected)
    assert torch.equal(our_state, state)
    for name in shape["wanted"]:
        close(getattr(expected, name.removeprefix("output_")), getattr(found, name.removeprefix("output_")), name)
    if shape["continued"]:
        longer = torch.cat([torch.tensor([ours.see(found)[0][0]]), prompt(5, seed=3)], dim=1)
        mask = (torch.arange(longer.shape[1]) >= shape["padding"])[None].long()
        on = [
            one.model.generate(longer, attention_mask=mask, max_new_tokens=4, **{cache_name(): one.cache})
            for one in (vanilla, ours)
        ]
        assert torch.equal(*on), "the cache was not handed back in order"


@settings(max_examples=settings().max_examples // 2)
@given(
    st.sampled_from(KINDS),
    _LISTS,
    st.lists(st.integers(2, 40), min_size=2, max_size=4),
    st.integers(0, 999),
    st.fixed_dictionaries(
        {"max_new_tokens": st.integers(1, 24)},
        optional={name: _PROCESSORS[name] for name in ("repetition_penalty", "suppress_tokens", "bad_words_ids")},
    ),
    st.lists(st.integers(3, VOCABULARY - 1), max_size=3),
    st.sampled_from([{}, {"do_sample": True, "top_k": 1}, {"do_sample": True, "top_k": 1, "num_return_sequences": 2}]),
    _OPTIONS,
)
def test_any_lie_in_any_batch(
    kind: str,
    lies: list[str],
    lengths: list[int],
    seed: int,
    asked: dict[str, Any],
    ends: list[int],
    certain: dict[str, Any],
    options: dict[str, Any],
) -> None:
    ids, mask = padded(lengths if kind != "bloom" else [lengths[0]] * len(lengths), seed)
    given: dict[str, Any] = {"attention_mask": mask, "eos_token_id": ends or None, **asked, **certain}
    vanilla = tiny(kind).generate(ids, **given)
    copies = given.get("num_return_sequences", 1)
    pads = (mask == 0).sum(dim=1).repeat_interleave(copies).tolist()
    answers = [row[pad:].tolist() for row, pad in zip(vanilla, pads, strict=True)]
    with lying(lies, answers, VOCABULARY, seed):
        ours = tiny(kind).generate(ids, custom_generate=Lookahead(**options), **given)
    assert torch.equal(ours, vanilla)

"""The check of a model's outputs: equal ones, near-ties of the arithmetic, and every kind of bug put in on purpose."""

from __future__ import annotations

import copy
import functools
import math
from typing import Any

import pytest
import torch

from lookahead.hf.cache import keep_rows
from lookahead.hf.check import check
from lookahead.hf.finding import BUG, EQUAL, NEAR_TIE, Finding
from lookahead.hf.rule import Rule, generator_state
from lookahead.verify.acceptance import choose
from lookahead.verify.attention import position_offsets, tree_mask
from lookahead.verify.walk import Verifier
from tests.models import KINDS, VOCABULARY, prompt, tiny
from tests.vocabularies import letters

SAMPLING = {"do_sample": True, "temperature": 0.5}
DRAFTS = {"cost": "linear:0"}


@functools.cache
def undecided() -> Any:
    """Return a model in bfloat16 with a twin for each token, whose logits differ from its own by a rounding or two."""
    model = copy.deepcopy(tiny(dtype=torch.bfloat16, seed=5))
    weights = model.get_output_embeddings().weight.data
    twins = weights[:-1:2].float()
    steps = torch.randint(-1, 2, twins.shape, generator=torch.Generator().manual_seed(0))
    weights[1::2] = (twins * (1 + torch.finfo(torch.bfloat16).eps * steps)).bfloat16()
    return model


class Rounding(torch.nn.Module):
    """A head whose logits depend on how many rows it computes at once, as on hardware, only more so."""

    def __init__(self, head: torch.nn.Module) -> None:
        super().__init__()
        self.head = head

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        logits = self.head(states)
        return logits + 0.1 * torch.sin(1e4 * logits * states.shape[1])


@functools.cache
def rough(kind: str = "llama") -> Any:
    """Return a model whose arithmetic depends on the width of a forward."""
    model = copy.deepcopy(tiny(kind, dtype=torch.float32, seed=5))
    model.set_output_embeddings(Rounding(model.get_output_embeddings()))
    return model


def findings(model: Any, count: int = 4, seed: int = 3, **settings: Any) -> list[Finding]:
    prompts = [prompt(seed=number)[0].tolist() for number in range(count)]
    return check(model, letters(), prompts, seed=seed, options=DRAFTS, **{"max_new_tokens": 40, **settings})


@pytest.mark.parametrize("settings", [{}, SAMPLING], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_equal_outputs(kind: str, settings: dict[str, Any]) -> None:
    found = findings(tiny(kind), 2, **settings)
    assert [one.verdict for one in found] == [EQUAL] * 2
    assert sum(one.accepted for one in found) > 0
    assert all(one.tokens == 40 and one.position is None for one in found)


def expect_near_ties(found: list[Finding]) -> None:
    found = [one for one in found if one.verdict != EQUAL]
    assert found, "no output differs, so nothing is shown"
    assert {one.verdict for one in found} == {NEAR_TIE}
    for one in found:
        assert one.vanilla and one.lookahead and one.vanilla != one.lookahead
        assert one.noise is not None and one.deviation is not None and one.deviation <= 3 * one.noise
        assert one.margin <= one.noise if one.margin is not None else "filter" in one.reason
        assert one.readings[0].chosen == one.vanilla and one.readings[1].chosen == one.lookahead


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("llama", {}),
        ("llama", SAMPLING),
        ("llama", {**SAMPLING, "top_p": 0.8}),
        ("llama", {"repetition_penalty": 1.1}),
        ("gpt2", {}),
        *([("mistral", SAMPLING)] if "mistral" in KINDS else []),
    ],
)
def test_near_ties_are_told_as_such(kind: str, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lookahead.hf.plain.takes_chains", lambda *_: True)  # else so rough a model is decoded plainly
    expect_near_ties(findings(rough(kind), 3, **settings))


def test_near_ties_in_bfloat16() -> None:
    expect_near_ties(findings(undecided(), 6))


def test_what_is_told_of_a_near_tie_is_what_generate_saw() -> None:
    model = undecided()
    found = next(one for one in findings(model, 6) if one.verdict == NEAR_TIE)
    output = model.generate(
        prompt(seed=found.prompt), max_new_tokens=40, return_dict_in_generate=True, output_logits=True
    )
    assert found.position is not None and found.vanilla and found.lookahead
    logits, told = output.logits[found.position][0], found.readings[0]
    assert output.sequences[0, 40 + found.position] == found.vanilla.id
    assert (told.vanilla, told.lookahead) == (logits[found.vanilla.id], logits[found.lookahead.id])
    first, second = logits.topk(2).values.tolist()
    assert told.margin == first - second
    assert found.context.endswith(letters().decode(output.sequences[0, 40 : 40 + found.position]))


def corrupt(cache: Any, fed: int, rows: list[list[int]]) -> None:
    """Keep rows, and spoil a key where a token was rejected."""
    keep_rows(cache, fed, rows)
    if fed > len(rows[0]):
        cache.layers[0].keys[..., -1, :] *= 1.5


def keep_first(cache: Any, fed: int, rows: list[list[int]]) -> None:
    """Keep as many rows as asked for, but the first ones."""
    keep_rows(cache, fed, [list(range(len(rows[0])))])


def stretched(drafts: Any) -> torch.Tensor:
    """Return offsets that are wrong from the fourth token on."""
    offsets = position_offsets(drafts)
    return offsets + (torch.arange(offsets.shape[-1]) > 2)


maxima, emit = Verifier._maxima, Verifier._emit


def take_second(logits: torch.Tensor) -> list[int]:
    """Return maxima, but for the third row what comes second."""
    return [int(logits[2].topk(2).indices[1]) if row == 2 else token for row, token in enumerate(maxima(logits))]


def end_early(self: Verifier, token: int, source: str | None) -> bool:
    """Emit a token, and end 20 tokens behind the prompt."""
    return emit(self, token, source) or len(self.sequence) == 60


BUGS = {
    "corrupt cache": ("lookahead.hf.cache.keep_rows", corrupt, "further from clean ones"),
    "wrong slots kept": ("lookahead.hf.cache.keep_rows", keep_first, "further from clean ones"),
    "wrong positions": ("lookahead.hf.forward.position_offsets", stretched, "further from clean ones"),
    "wrong token accepted": ("lookahead.verify.walk.Verifier._maxima", staticmethod(take_second), "its own forward"),
    "ended early": ("lookahead.verify.walk.Verifier._emit", end_early, "ends where the other goes on"),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", BUGS)
def test_bugs_are_told_as_such(name: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    target, bug, reason = BUGS[name]
    model = tiny(dtype=dtype)
    before = {one.prompt for one in findings(model, 3) if one.verdict != EQUAL}
    monkeypatch.setattr(target, bug)
    found = [one for one in findings(model, 3) if one.verdict != EQUAL and one.prompt not in before]
    assert found, "no output differs, so nothing is shown"
    assert {one.verdict for one in found} == {BUG}
    assert {reason in one.reason for one in found} == {True}, [one.reason for one in found]


def test_a_mask_that_shows_too_much_is_a_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    def leaking(drafts: Any, seen: torch.Tensor, kind: torch.dtype) -> torch.Tensor:
        mask, rows = tree_mask(drafts, seen, kind), len(drafts[0]) + 1
        mask[..., -rows:] |= torch.ones(rows, rows, dtype=torch.bool).tril()
        return mask

    model = tiny(dtype=torch.float32)
    assert {one.verdict for one in findings(model)} == {EQUAL}
    monkeypatch.setattr("lookahead.hf.forward.tree_mask", leaking)
    found = [one for one in findings(model) if one.verdict != EQUAL]
    assert found and {one.verdict for one in found} == {BUG}
    assert all("not over the tokens" in one.reason and one.deviation == math.inf for one in found)


def test_one_random_number_too_many_is_a_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = list[int]()

    def draw(scores: torch.Tensor, do_sample: bool) -> torch.Tensor:
        drawn.append(int(choose(scores, do_sample)))
        if len(drawn) == 5:
            torch.rand(1)
        return torch.tensor(drawn[-1:])

    monkeypatch.setattr("lookahead.verify.walk.choose", draw)
    (found,) = findings(tiny(), 1, **SAMPLING)
    assert (found.verdict, found.position is not None and found.position >= 5) == (BUG, True)
    assert "random numbers" in found.reason


def test_a_draw_is_the_maximum_of_its_heights() -> None:
    generator = torch.Generator().manual_seed(1)
    for seed in range(200):
        logits = torch.randn(VOCABULARY, generator=generator)
        torch.manual_seed(seed)
        rule = Rule(lambda ids, scores: scores / 0.7, torch.zeros(1, 3), 0.7, generator_state(logits.device))
        drawn = int(choose(logits[None] / 0.7, do_sample=True))
        torch.manual_seed(seed + 1)
        state = torch.get_rng_state()
        assert rule.choose(logits) == int(rule.heights(logits).argmax()) == drawn
        assert torch.equal(torch.get_rng_state(), state), "the generator is left as it was"


def test_a_finding_is_told_as_soon_as_it_is_made() -> None:
    told = list[Finding]()
    prompts = [prompt(seed=number)[0].tolist() for number in range(2)]
    assert check(tiny(), None, prompts, max_new_tokens=5, on_finding=told.append) == told
    assert [one.prompt for one in told] == [0, 1]


def test_texts_and_stop_strings_are_taken() -> None:
    model, answer = tiny(), tiny().generate(prompt(seed=1), max_new_tokens=30)[0, 40:]
    text = letters().decode(prompt(seed=1)[0])
    stop = letters().decode(answer[10:13])
    (found,) = check(model, letters(), [text], max_new_tokens=30, stop_strings=[stop])
    assert (found.verdict, found.tokens < 30) == (EQUAL, True)


@pytest.mark.parametrize(
    ("prompts", "settings", "message"),
    [
        ([[]], {}, "prompt 1 is empty"),
        (["abc", ""], {}, "prompt 2 is empty"),
        ("abc", {}, "got one text for prompts; .* put it into a list"),
        ([[[3, 4, 5]]], {}, r"prompt 1 has shape \[1, 3\]; allowed is one row"),
        ([[5] * 500], {"max_new_tokens": 13}, "512 positions; allow 12 new tokens at most"),
        ([[5] * 512], {"max_new_tokens": 1}, "512 positions; shorten the prompt"),
        ([[5]], {"streamer": object()}, "streamer is set by the check itself"),
        ([[5]], {"logits_processor": [object()]}, "logits_processor may say something else"),
        ([[5]], {"max_time": 1.0}, "max_time may say"),
        ([[5]], {"guidance_scale": 1.5}, "guidance_scale may say"),
    ],
)
def test_refusals(prompts: list[Any], settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check(tiny(), letters(), prompts, **settings)


def test_a_text_without_a_tokenizer_is_refused() -> None:
    with pytest.raises(ValueError, match="needs the tokenizer"):
        check(tiny(), None, ["abc"])

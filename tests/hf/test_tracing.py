"""`Lookahead(trace=True)` records what really happened, and changes nothing."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import pytest
import torch

from lookahead import Lookahead, enabled
from lookahead.trace.record import Trace
from tests.models import KINDS, prompt, tiny
from tests.vocabularies import SAMPLE, letters, vocabulary

OPTIONS: dict[str, Any] = {"cost": "linear:0.001"}
MODES: dict[str, dict[str, Any]] = {
    "greedy": {},
    "sampling": {"do_sample": True, "temperature": 0.6},
    "processors": {"repetition_penalty": 1.1, "no_repeat_ngram_size": 9},
}


def recorded(ahead: Lookahead) -> Trace:
    assert ahead.trace is not None
    return ahead.trace


def outputs(trace: Trace) -> list[list[int]]:
    return [[token for step in trace.row(row) for token in step.tokens] for row in range(len(trace.prompts))]


def agrees(trace: Trace, ahead: Lookahead) -> bool:
    """Tell whether a trace adds up to the call's figures."""
    stats = ahead.stats
    draft, verify, rest = trace.seconds
    assert (trace.forwards, trace.tokens) == (stats.forwards, stats.tokens)
    assert sum(len(step.draft) for step in trace.steps) == stats.drafted
    assert sum(len(step.path) for step in trace.steps) == stats.accepted
    figures = {source: counts for source, counts in trace.by_source().items() if source != "model"}
    assert {source: drafted for source, (drafted, _) in figures.items()} == dict(stats.drafted_by_source)
    assert {source: taken for source, (_, taken) in figures.items() if taken} == dict(stats.accepted_by_source)
    assert (draft, verify) == pytest.approx((stats.draft_seconds, stats.verify_seconds))
    assert 0 <= rest <= stats.total_seconds
    return True


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS)
def test_steps_add_up_to_the_output_which_stays_the_same(kind: str, mode: str) -> None:
    model, ids, ahead = tiny(kind), prompt(), Lookahead(trace=True, **OPTIONS)
    found = []
    for custom in (None, ahead):
        torch.manual_seed(0)
        found.append(model.generate(ids, max_new_tokens=60, custom_generate=custom, **MODES[mode]))
    trace = recorded(ahead)
    assert torch.equal(*found) and ahead.stats.accepted > 0
    assert trace.prompts == ids.tolist() and outputs(trace) == [found[0][0, 40:].tolist()]
    assert agrees(trace, ahead)
    sources = [one.source for step in trace.steps for one in step.emitted()]
    assert sources == ahead.stats.token_sources
    assert [step.forward for step in trace.steps] == list(range(1, ahead.stats.forwards + 1))


def test_rows_of_a_batch_have_steps_of_their_own() -> None:
    model, ids, ahead = tiny(), torch.cat([prompt(seed=seed) for seed in range(3)]), Lookahead(trace=True, **OPTIONS)
    mask = torch.ones_like(ids)
    ids[1, :9], mask[1, :9] = 0, 0
    free = model.generate(ids, attention_mask=mask, max_new_tokens=60)
    ends = [int(free[0, 50])]
    vanilla = model.generate(ids, attention_mask=mask, max_new_tokens=60, eos_token_id=ends)
    ours = model.generate(ids, attention_mask=mask, max_new_tokens=60, eos_token_id=ends, custom_generate=ahead)
    trace = recorded(ahead)
    assert torch.equal(vanilla, ours)
    assert trace.prompts == [ids[0].tolist(), ids[1, 9:].tolist(), ids[2].tolist()]
    for row, said in zip(ours[:, 40:].tolist(), outputs(trace), strict=True):
        assert row[: len(said)] == said and set(row[len(said) :]) <= {0}
    assert len({len(said) for said in outputs(trace)}) > 1
    assert agrees(trace, ahead)


@pytest.mark.parametrize("seed", range(4))
def test_places_and_lengths_are_those_of_the_copies(seed: int) -> None:
    ahead = Lookahead(trace=True, **OPTIONS)
    tiny().generate(prompt(seed=seed), max_new_tokens=80, custom_generate=ahead)
    trace, checked = recorded(ahead), 0
    (known,) = trace.prompts
    said = outputs(trace)[0]
    before = [0, *accumulate(len(step.tokens) for step in trace.steps)]
    for step, done in zip(trace.steps, before, strict=False):
        text, depths, draft = known + said[:done], step.draft.depths.tolist(), step.draft
        for node, (source, token) in enumerate(zip(draft.sources, draft.tokens.tolist(), strict=True)):
            place, length, more = int(step.places[node]), int(step.lengths[node]), depths[node] - 1
            if source == "recycled":
                assert (place, length) == (-1, -1)
                continue
            place += 0 if source == "prompt" else len(known)
            assert text[place] == token
            starts = [start for start in range(len(text)) if start + more % (len(text) - start) == place]
            assert any(matching(text, start) == length - more for start in starts)
            checked += 1
    assert checked > 50


def matching(text: list[int], place: int) -> int:
    """Count the tokens before a place that equal the end of the text."""
    count = 0
    while count < place and text[place - 1 - count] == text[-1 - count]:
        count += 1
    return count


def test_a_prediction_and_views_are_named_as_sources() -> None:
    tokenizer, ahead = letters(), Lookahead(letters(), trace=True, **OPTIONS)
    model, ids = tiny(), prompt()
    said = model.generate(ids, max_new_tokens=60)[0, 40:]
    ahead = Lookahead(tokenizer, trace=True, **OPTIONS)
    model.generate(ids, max_new_tokens=60, custom_generate=ahead, prediction=tokenizer.decode(said))
    trace = recorded(ahead)
    found = [one for step in trace.steps for one in step.emitted() if one.source == "prediction"]
    assert len(found) > 20
    assert all(said[one.place] == one.token for one in found if one.place >= 0)


def test_texts_come_from_the_tokenizer_or_are_numbers() -> None:
    tokenizer = vocabulary("byte_level")
    ahead = Lookahead(tokenizer, trace=True)
    ids = tokenizer(SAMPLE, return_tensors="pt")["input_ids"]
    out = tiny(vocabulary=len(tokenizer)).generate(ids, max_new_tokens=30, custom_generate=ahead)[0, ids.shape[1] :]
    trace = recorded(ahead)
    assert "".join(trace.texts(trace.prompts[0])) == SAMPLE
    assert "".join(trace.texts(outputs(trace)[0])) == tokenizer.decode(out, clean_up_tokenization_spaces=False)
    assert "transformers" in trace.about and trace.about["model"] == "LlamaForCausalLM"
    bare = Lookahead(trace=True)
    tiny().generate(prompt(), max_new_tokens=3, custom_generate=bare)
    assert recorded(bare).texts([5, 17]) == ["⟨5⟩", "⟨17⟩"]


def test_what_is_decoded_plainly_has_one_token_a_step_and_the_reason() -> None:
    model, ahead = tiny(), Lookahead(trace=True)
    model.train()
    try:
        out = model.generate(prompt(), max_new_tokens=9, custom_generate=ahead)
    finally:
        model.eval()
    trace = recorded(ahead)
    assert outputs(trace) == [out[0, 40:].tolist()] and trace.note == ahead.stats.note is not None
    assert agrees(trace, ahead)


@pytest.mark.parametrize("mode", [{"exact": True}, {"fallback": "assistant"}], ids=lambda mode: next(iter(mode)))
def test_exact_decoding_and_a_fallback_are_recorded_too(mode: dict[str, Any]) -> None:
    assistant = {"fallback": tiny(seed=1, dtype=torch.float32)} if "fallback" in mode else mode
    model, ahead = tiny(dtype=torch.bfloat16), Lookahead(trace=True, **OPTIONS, **assistant)
    out = model.generate(prompt(), max_new_tokens=60, custom_generate=ahead)
    assert outputs(recorded(ahead)) == [out[0, 40:].tolist()]
    assert agrees(recorded(ahead), ahead)


def test_without_being_asked_nothing_is_recorded() -> None:
    ahead = Lookahead()
    tiny().generate(prompt(), max_new_tokens=5, custom_generate=ahead)
    assert ahead.trace is None


def test_an_enabled_model_records_each_call_anew() -> None:
    model = tiny()
    with enabled(model, trace=True) as ahead:
        model.generate(prompt(), max_new_tokens=5)
        first = ahead.trace
        model.generate(prompt(seed=1), max_new_tokens=7)
        assert recorded(ahead).tokens == 7 and first is not ahead.trace


class Interrupts:
    def __init__(self) -> None:
        self.left = 30

    def put(self, value: torch.Tensor) -> None:
        self.left -= 1
        if not self.left:
            raise KeyboardInterrupt

    def end(self) -> None: ...


def test_an_interrupted_call_leaves_the_steps_so_far() -> None:
    model, ahead = tiny(), Lookahead(trace=True, **OPTIONS)
    whole = model.generate(prompt(), max_new_tokens=60)[0, 40:].tolist()
    with pytest.raises(KeyboardInterrupt):
        ahead.generate(model, prompt(), max_new_tokens=60, streamer=Interrupts())
    (said,) = outputs(recorded(ahead))
    assert 0 < len(said) < 30 and said == whole[: len(said)]


@pytest.mark.parametrize("given", ["out.json", 1, None])
def test_what_is_neither_true_nor_false_is_refused(given: Any) -> None:
    with pytest.raises(ValueError, match=r"trace=.* is not allowed; give True or False"):
        Lookahead(trace=given)


def test_by_the_time_a_streamer_is_shown_a_token_its_source_is_known() -> None:
    ahead, heard = Lookahead(trace=True, **OPTIONS), []

    class Listens:
        def put(self, value: torch.Tensor) -> None:
            if value.shape != (1, 40):
                heard.append((int(value), len(ahead.stats.token_sources), ahead.stats.token_sources[-1]))

        def end(self) -> None: ...

    ahead.generate(tiny(), prompt(), max_new_tokens=40, streamer=Listens())
    emitted = [one for step in recorded(ahead).steps for one in step.emitted()]
    assert heard == [(one.token, number, one.source) for number, one in enumerate(emitted, 1)]

"""Code that calls `generate` inside itself gets the same output, errors and stream as without lookahead."""

from __future__ import annotations

import copy
import io
import pickle
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import pytest
import torch
import transformers
from transformers import GenerationConfig, LogitsProcessor
from transformers.generation.streamers import BaseStreamer

import lookahead
from lookahead import Drafter, Lookahead, Stats
from tests.models import KINDS, VOCABULARY, prompt, tiny
from tests.vocabularies import letters

IDS = prompt()
SAMPLING = {"do_sample": True, "temperature": 0.3}


@pytest.fixture
def model() -> Any:
    """A model of the test's own."""
    return copy.deepcopy(tiny())


def once(reason: str) -> AbstractContextManager[Any]:
    """Expect a warning with a reason."""
    return pytest.warns(UserWarning, match=f"lookahead is left out of this call of generate: .*{reason}")


def generated(model: Any, *args: Any, seed: int = 0, **kwargs: Any) -> Any:
    torch.manual_seed(seed)
    return model.generate(*args, **{"max_new_tokens": 40, **kwargs})


# ---- Calls that are decoded with lookahead ----


@pytest.mark.parametrize("settings", [{}, SAMPLING, {"repetition_penalty": 1.1}], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_the_output_is_the_same_and_takes_fewer_forwards(kind: str, settings: dict[str, Any]) -> None:
    vanilla = generated(tiny(kind), IDS, **settings)
    with lookahead.enabled(tiny(kind), cost="linear:0") as ahead:
        assert torch.equal(generated(tiny(kind), IDS, **settings), vanilla)
    assert ahead.stats.tokens == 40
    assert ahead.stats.accepted > 0 and ahead.stats.forwards < 40


def test_arguments_by_position(model: Any) -> None:
    config = GenerationConfig(max_new_tokens=30, do_sample=True, temperature=0.5, pad_token_id=0)
    torch.manual_seed(0)
    vanilla = model.generate(IDS, config)
    with lookahead.enabled(model) as ahead:
        torch.manual_seed(0)
        assert torch.equal(model.generate(IDS, config), vanilla)
    assert ahead.stats.tokens == 30


def test_stop_strings_with_the_tokenizer_of_the_call(model: Any) -> None:
    tokenizer = letters()
    text = tokenizer.decode(generated(model, IDS)[0, IDS.shape[1] :])
    settings = {"stop_strings": [text[17:20]], "tokenizer": tokenizer}
    vanilla = generated(model, IDS, **settings)
    with lookahead.enabled(model, cost="linear:0") as ahead:
        assert torch.equal(generated(model, IDS, **settings), vanilla)
    assert 0 < ahead.stats.tokens == vanilla.shape[1] - IDS.shape[1] < 40


class Ear(BaseStreamer):
    """Writes down what it hears."""

    def __init__(self) -> None:
        self.heard: list[Any] = []

    def put(self, value: torch.Tensor) -> None:
        self.heard.append((tuple(value.shape), value.dtype, value.tolist()))

    def end(self) -> None:
        self.heard.append("end")


def test_a_streamer(model: Any) -> None:
    ears = Ear(), Ear()
    generated(model, IDS, streamer=ears[0])
    with lookahead.enabled(model, cost="linear:0") as ahead:
        generated(model, IDS, streamer=ears[1])
    assert ears[0].heard == ears[1].heard
    assert ahead.stats.accepted > 0


def test_a_batch(model: Any) -> None:
    ids = torch.cat([prompt(seed=seed) for seed in range(3)])
    vanilla = generated(model, ids)
    with lookahead.enabled(model, cost="linear:0") as ahead:
        assert torch.equal(generated(model, ids), vanilla)
    assert ahead.stats.tokens == 120 and ahead.stats.forwards < 40


def test_everything_returned_on_request(model: Any) -> None:
    wanted = {"return_dict_in_generate": True, "output_hidden_states": True, "output_scores": True}
    vanilla = generated(model, IDS, **wanted)
    with lookahead.enabled(model) as ahead:
        ours = generated(model, IDS, **wanted)
    assert torch.equal(ours.sequences, vanilla.sequences)
    assert len(ours.hidden_states) == len(vanilla.hidden_states) == len(ours.scores) == 40
    assert isinstance(ours.stats, Stats) and ours.stats is ahead.stats


def test_a_prediction(model: Any) -> None:
    vanilla = generated(model, IDS)
    with lookahead.enabled(model, prediction=vanilla[0, IDS.shape[1] :], cost="linear:0") as ahead:
        assert torch.equal(generated(model, IDS), vanilla)
    assert ahead.stats.accepted_prediction_tokens > 0


def test_an_object_made_before_goes_on_with_what_it_learnt(model: Any) -> None:
    ahead = Lookahead(cost="linear:0")
    with lookahead.enabled(model, ahead) as used:
        generated(model, IDS)
    assert used is ahead and ahead.stats.tokens == 40


def blip2() -> Any:
    """Return a model whose generate calls that of a language model inside it."""
    vision = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    text = {"model_type": "opt", "vocab_size": VOCABULARY, "hidden_size": 32, "ffn_dim": 48, "word_embed_proj_dim": 32}
    sizes = {"num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 256, "init_std": 0.3}
    ends = {"eos_token_id": 2, "pad_token_id": 1, "bos_token_id": 2}
    config = transformers.Blip2Config(
        vision_config={**vision, "image_size": 28, "patch_size": 14},
        qformer_config={**vision, "encoder_hidden_size": 16, "vocab_size": VOCABULARY, "cross_attention_frequency": 1},
        text_config={**text, **sizes, **ends},
        num_query_tokens=4,
        image_token_index=60,
    )
    torch.manual_seed(0)
    model = transformers.Blip2ForConditionalGeneration(config).eval()
    model.language_model.generation_config.eos_token_id = None
    return model


def test_a_model_whose_generate_calls_that_of_a_model_inside() -> None:
    model = blip2()
    ids = torch.cat([torch.full((1, 4), 60), IDS % 50 + 3], dim=1)
    image = {"pixel_values": torch.randn(1, 3, 28, 28, generator=torch.Generator().manual_seed(0))}
    vanilla = generated(model, input_ids=ids, **image)
    with lookahead.enabled(model, cost="linear:0.001") as ahead:
        assert torch.equal(generated(model, input_ids=ids, **image), vanilla)
    assert ahead.stats.tokens == 40 and ahead.stats.accepted > 0
    lookahead.enable(model)
    lookahead.disable(model)
    kinds = transformers.Blip2ForConditionalGeneration, transformers.OPTForCausalLM
    assert (type(model), type(model.language_model)) == kinds


# ---- Calls that are not ----


class Counter(LogitsProcessor):
    """Changes no score; counts its calls."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return scores


def t5() -> Any:
    config = transformers.T5Config(
        vocab_size=VOCABULARY, d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2, decoder_start_token_id=0
    )
    return transformers.T5ForConditionalGeneration(config).eval()


def mamba() -> Any:
    config = transformers.MambaConfig(
        vocab_size=VOCABULARY, hidden_size=16, state_size=4, num_hidden_layers=1, pad_token_id=0, eos_token_id=2
    )
    return transformers.MambaForCausalLM(config).eval()


def first_tokens(model: Any, input_ids: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
    return input_ids[:, :3]


@pytest.mark.parametrize(
    ("made", "settings", "reason"),
    [
        (tiny, {"num_beams": 2}, "asks for beam search"),
        (tiny, {"num_beams": 2, **SAMPLING}, "asks for beam search"),
        (tiny, {"prompt_lookup_num_tokens": 3}, "asks for assisted decoding"),
        (tiny, {"assistant_model": tiny(seed=1)}, "asks for assisted decoding"),
        (tiny, {"custom_generate": first_tokens}, "brings a custom_generate of its own"),
        (tiny, {"use_cache": False}, r"needs a cache, but got none \(use_cache=False\)"),
        (tiny, {"synced_gpus": True}, "synced_gpus .* is not supported"),
        (tiny, {"num_return_sequences": 2, **SAMPLING, "logits_processor": [Counter()]}, "Counter may keep a state"),
        (t5, {"num_return_sequences": 2, **SAMPLING}, "T5.*decoded without drafts in a batch"),
        (mamba, {}, "MambaForCausalLM (gives other logits|keeps its state)"),
    ],
    ids=lambda value: ",".join(value) or "none" if isinstance(value, dict) else None,
)
def test_what_is_not_supported_is_left_to_generate(
    made: Callable[[], Any], settings: dict[str, Any], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.distributed, "all_reduce", lambda flag, op: None)  # the only process there is
    model = copy.deepcopy(made())
    vanilla = generated(model, IDS, **settings)
    with lookahead.enabled(model) as ahead:
        before = ahead.stats
        with once(reason) as warned:
            for _ in range(2):
                assert torch.equal(generated(model, IDS, **settings), vanilla)
        assert len([one for one in warned if "lookahead" in str(one.message)]) == 1
        assert ahead.stats is before


def test_what_an_encoder_read_is_copied_from(monkeypatch: pytest.MonkeyPatch) -> None:
    model, begin, read = t5(), Drafter.begin, list[list[int]]()
    vanilla = generated(model, IDS)

    def spied(self: Drafter, prompt: torch.Tensor, prediction: Any = None) -> None:
        read.append(prompt.tolist())
        begin(self, prompt, prediction)

    monkeypatch.setattr(Drafter, "begin", spied)
    assert torch.equal(generated(model, IDS, custom_generate=Lookahead()), vanilla)
    with lookahead.enabled(model):
        assert torch.equal(generated(model, IDS), vanilla)
    assert read == [[*IDS[0].tolist(), 0]] * 2  # and the decoder's start


def test_what_was_encoded_before_needs_no_text() -> None:
    model = t5()
    encoded = model.get_encoder()(IDS)
    vanilla = model.generate(encoder_outputs=encoded, max_new_tokens=12)
    assert torch.equal(model.generate(encoder_outputs=encoded, max_new_tokens=12, custom_generate=Lookahead()), vanilla)


def test_each_reason_is_told_once_for_each_enabling(model: Any) -> None:
    for _ in range(2):
        with lookahead.enabled(model), once("needs a cache"), once("asks for beam search"):
            generated(model, IDS, use_cache=False)
            generated(model, IDS, num_beams=2)


def test_a_streamer_hears_the_prompt_once_when_generate_decodes(model: Any) -> None:
    ears = Ear(), Ear()
    generated(model, IDS, streamer=ears[0], use_cache=False)
    with lookahead.enabled(model), once("needs a cache"):
        generated(model, IDS, streamer=ears[1], use_cache=False)
    assert ears[0].heard == ears[1].heard


def error(call: Callable[[], Any]) -> tuple[type, str, bool]:
    """Return what kind of error a call raises, its text, and whether it stands alone."""
    with pytest.raises(Exception) as raised:
        call()
    return raised.type, str(raised.value), raised.value.__context__ is None


@pytest.mark.parametrize(
    "settings",
    [
        {"num_beams": 2, "streamer": Ear()},
        {"num_return_sequences": 2},
        {"stop_strings": ["x"]},  # without a tokenizer
        {"unknown": 1},
        {"temperature": -1.0, "do_sample": True},
        {"max_new_tokens": 0},
        {"penalty_alpha": 0.5, "top_k": 4},
        {"prompt_lookup_num_tokens": 3, "num_return_sequences": 2, "do_sample": True},
    ],
    ids=lambda settings: ",".join(settings),
)
def test_errors_are_those_of_generate(model: Any, settings: dict[str, Any]) -> None:
    vanilla = error(lambda: generated(model, IDS, **settings))
    with lookahead.enabled(model, letters()):
        assert error(lambda: generated(model, IDS, **settings)) == vanilla


class Broken(LogitsProcessor):
    """Raises at its fifth call, as a caller's code may do."""

    def __init__(self, raised: Exception) -> None:
        self.calls, self.raised = 0, raised

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        if self.calls == 5:
            raise self.raised
        return scores


def nested_refusal() -> Exception:
    """Return what a processor raises that itself generates with lookahead, and is refused."""
    with pytest.raises(ValueError) as refusal:
        generated(tiny(), IDS, num_beams=2, custom_generate=Lookahead())
    return refusal.value


@pytest.mark.parametrize("raised", [ValueError("mine"), nested_refusal()], ids=["own", "refusal"])
def test_an_error_of_the_callers_own_code_comes_through_and_nothing_is_generated_twice(
    model: Any, raised: Exception
) -> None:
    broken, ear = Broken(raised), Ear()
    with lookahead.enabled(model), pytest.raises(ValueError) as seen:
        generated(model, IDS, logits_processor=[broken], streamer=ear)
    assert seen.value is raised
    assert broken.calls == 5
    assert len(ear.heard) == 5  # the prompt and four tokens


# ---- On and off ----


def counted(model: Any, ahead: Lookahead) -> bool:
    """Tell whether an object decodes what a model generates."""
    before = ahead.stats
    generated(model, IDS, max_new_tokens=3)
    return ahead.stats is not before


def state(model: Any) -> tuple[type, dict[str, Any]]:
    return type(model), dict(vars(model))


def test_disable_restores_exactly_what_was_there(model: Any) -> None:
    before = state(model)
    ahead = lookahead.enable(model)
    assert counted(model, ahead)
    lookahead.disable(model)
    assert state(model) == before
    assert not counted(model, ahead)
    lookahead.disable(model)
    assert state(model) == before


def test_a_generate_put_on_the_object_stays_and_runs(model: Any) -> None:
    calls = []

    def generate(*args: Any, **kwargs: Any) -> Any:
        calls.append(args)
        return type(model).generate(model, *args, **kwargs)

    model.generate = generate
    before = state(model)
    with lookahead.enabled(model) as ahead:
        assert counted(model, ahead)
    assert len(calls) == 1 and state(model) == before


def test_enabling_again_replaces_the_object_before_and_one_disable_ends_it(model: Any) -> None:
    before = state(model)
    first, second = lookahead.enable(model), lookahead.enable(model)
    assert counted(model, second) and not counted(model, first)
    lookahead.disable(model)
    assert state(model) == before


def test_blocks_may_be_nested_and_an_error_leaves_them(model: Any) -> None:
    before = state(model)
    always = lookahead.enable(model)
    with pytest.raises(KeyError), lookahead.enabled(model) as outer:
        with pytest.raises(IndexError), lookahead.enabled(model) as inner:
            assert counted(model, inner) and not counted(model, outer)
            raise IndexError
        assert counted(model, outer) and not counted(model, inner)
        raise KeyError
    assert counted(model, always) and not counted(model, outer)
    lookahead.disable(model)
    assert state(model) == before


def test_enable_and_disable_inside_a_block(model: Any) -> None:
    before = state(model)
    with lookahead.enabled(model) as ahead:
        later = lookahead.enable(model)
        assert counted(model, later) and not counted(model, ahead)
    assert counted(model, later)
    with lookahead.enabled(model) as ahead:
        lookahead.disable(model)
        assert not counted(model, ahead) and not counted(model, later)
    assert state(model) == before


def test_blocks_of_several_threads_overlap(model: Any) -> None:
    before, vanilla, wrong = state(model), [generated(model, prompt(seed=seed)) for seed in range(4)], []
    together = threading.Barrier(4)

    def work(seed: int) -> None:
        together.wait()
        for _ in range(5):
            with lookahead.enabled(model):
                if not torch.equal(model.generate(prompt(seed=seed), max_new_tokens=40), vanilla[seed]):
                    wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert state(model) == before


def test_a_block_that_is_left_first_takes_only_itself_off(model: Any) -> None:
    before = state(model)
    first, second = lookahead.enabled(model), lookahead.enabled(model)
    first.__enter__()
    ahead = second.__enter__()
    first.__exit__(None, None, None)
    assert counted(model, ahead)
    second.__exit__(None, None, None)
    assert state(model) == before


def test_another_model_of_the_class_stays_as_it_is(model: Any) -> None:
    other = copy.deepcopy(model)
    with lookahead.enabled(model) as ahead:
        assert not counted(other, ahead)


def saved(model: Any) -> Any:
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


@pytest.mark.parametrize(
    "copied",
    [copy.deepcopy, copy.copy, saved, *(lambda m, p=p: pickle.loads(pickle.dumps(m, p)) for p in (0, 2, 5))],
    ids=["deepcopy", "copy", "save", "pickle0", "pickle2", "pickle5"],
)
def test_a_copy_is_a_plain_model(model: Any, copied: Callable[[Any], Any]) -> None:
    kind, attributes = state(model)
    with lookahead.enabled(model) as ahead:
        other = copied(model)
        assert counted(model, ahead) and not counted(other, ahead)
    assert type(other) is kind and vars(other).keys() == attributes.keys()
    assert torch.equal(generated(other, IDS), generated(model, IDS))


def test_an_enabled_model_goes_by_the_same_name(model: Any, tmp_path: Any) -> None:
    with lookahead.enabled(model):
        assert isinstance(model, transformers.LlamaForCausalLM)
        assert repr(type(model)) == repr(transformers.LlamaForCausalLM)
        assert model.can_generate()
        model.save_pretrained(tmp_path)
    assert type(transformers.AutoModelForCausalLM.from_pretrained(tmp_path)) is transformers.LlamaForCausalLM


def test_a_class_put_on_top_is_left_alone(model: Any) -> None:
    ahead = lookahead.enable(model)
    sharded = type("Sharded", (type(model),), {})
    model.__class__ = sharded
    lookahead.disable(model)
    assert type(model) is sharded
    assert not counted(model, ahead)
    assert counted(model, lookahead.enable(model))
    lookahead.disable(model)
    assert type(model) is sharded


def test_a_model_with_a_loop_of_its_own_keeps_it(model: Any) -> None:
    class Speech(transformers.LlamaForCausalLM):
        def _sample(self, input_ids: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
            return input_ids[:, :5]

    model.__class__ = Speech
    with lookahead.enabled(model), once("Speech brings a decoding loop of its own"):
        assert torch.equal(generated(model, IDS), IDS[:, :5])


def test_a_loop_of_lookahead_given_by_the_caller_is_used(model: Any) -> None:
    own = Lookahead()
    with lookahead.enabled(model) as ahead:
        generated(model, IDS, custom_generate=own)
        own.generate(model, IDS, max_new_tokens=3, streamer=Ear())
        generated(model, IDS, max_new_tokens=3, custom_generate=partial(own))
    assert own.stats.tokens == 3 and ahead.stats.tokens == 0


def test_what_cannot_be_enabled() -> None:
    with pytest.raises(ValueError, match="Linear has no generate of transformers; allowed is a model such as Auto"):
        lookahead.enable(torch.nn.Linear(2, 2))
    with pytest.raises(ValueError, match="Linear has no generate"), lookahead.enabled(torch.nn.Linear(2, 2)):
        pass
    with pytest.raises(ValueError, match="NoneType has no generate"):
        lookahead.disable(None)
    with pytest.raises(ValueError, match="budget, tree cannot be given with a Lookahead object, which has its own"):
        lookahead.enable(tiny(), Lookahead(), budget=3, tree=False)
    with pytest.raises(TypeError, match="unknown option depth"):
        lookahead.enable(tiny(), depth=3)
    assert type(tiny()) is transformers.LlamaForCausalLM


# ---- Wrapped models ----


def test_a_compiled_model(model: Any) -> None:
    vanilla = generated(model, IDS)
    compiled = torch.compile(model, backend="eager")
    with lookahead.enabled(compiled, cost="linear:0") as ahead:
        assert torch.equal(generated(compiled, IDS), vanilla)
        assert torch.equal(generated(model, IDS), vanilla)
    assert ahead.stats.forwards < ahead.stats.tokens == 40
    assert not counted(compiled, ahead)

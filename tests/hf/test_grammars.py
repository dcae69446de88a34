"""Grammars of xgrammar, outlines and llguidance, whose processors keep a state: each says the same with lookahead."""

from __future__ import annotations

import copy
import functools
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from lookahead import Lookahead
from tests.models import tiny
from tests.vocabularies import vocabulary

# torch warns of itself where it loads what compiles kernels.
pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.script_method. is deprecated:DeprecationWarning")
jsonschema = pytest.importorskip("jsonschema")

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "tool": {"enum": ["write_file", "read_file", "append"]},
        "sure": {"type": "boolean"},
        "edits": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "line": {"enum": [1, 4, 17, 250]},
                    "text": {"type": "string", "pattern": "^[a-z ]{1,12}$"},
                },
                "required": ["line", "text"],
                "additionalProperties": False,
            },
            "minItems": 2,
            "maxItems": 3,
        },
    },
    "required": ["tool", "sure", "edits"],
    "additionalProperties": False,
}
EXAMPLE = '{"tool":"write_file","sure":true,"edits":[{"line":4,"text":"for item in"},{"line":17,"text":"return"}]}'
PADDING = 38  # rows of the model's vocabulary that no token of the tokenizer has

Processor = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


@functools.cache
def tokenizer() -> Any:
    return copy.deepcopy(vocabulary("byte_level"))  # outlines sets its padding


def model(padding: int = 0) -> Any:
    return tiny(vocabulary=len(tokenizer()) + padding)


def prompt() -> torch.Tensor:
    ids: torch.Tensor = tokenizer()(f"Call a tool. An example:\n{EXAMPLE}\nNow you:\n", return_tensors="pt")[
        "input_ids"
    ]
    return ids


# ---- The packages: what each makes of the schema, a new processor for every call ----


def _xgrammar(padding: int) -> Callable[[], Processor]:
    xgrammar = pytest.importorskip("xgrammar")
    from xgrammar.contrib.hf import LogitsProcessor

    info = xgrammar.TokenizerInfo.from_huggingface(tokenizer(), vocab_size=len(tokenizer()) + padding)
    compiler, layout = xgrammar.GrammarCompiler(info), {"any_whitespace": False, "separators": (",", ":")}
    grammar = compiler.compile_json_schema(json.dumps(SCHEMA), **layout)
    return lambda: LogitsProcessor(grammar)


def _outlines(backend: str, padding: int, **settings: Any) -> Callable[[], Processor]:
    outlines = pytest.importorskip("outlines")
    backends = pytest.importorskip("outlines.backends")
    schema = json.dumps({**SCHEMA, "x-guidance": {"whitespace_flexible": False}})
    factory = getattr(backends, backend)(outlines.from_transformers(model(padding), tokenizer()))
    return lambda: factory.get_json_schema_logits_processor(schema, **settings)


_GRAMMARS = {
    "xgrammar": _xgrammar,
    "outlines": functools.partial(_outlines, "OutlinesCoreBackend", whitespace_pattern=""),
    "llguidance": functools.partial(_outlines, "LLGuidanceBackend"),
}


@functools.cache
def grammar(package: str, padding: int = 0) -> Callable[[], Processor]:
    return _GRAMMARS[package](padding=padding)


@pytest.fixture(autouse=True)
def _nothing_is_compiled() -> Iterator[None]:
    """Outlines and llguidance compile a kernel at their first call, which takes longer than all tests."""
    with torch.compiler.set_stance("force_eager"):
        yield


# ---- The tests ----


def both(
    processor: Callable[[], Processor], lookahead: Lookahead, padding: int = 0, seed: int = 0, **kwargs: Any
) -> tuple[str, Any]:
    """Generate without and with lookahead from one seed; return the text, and what lookahead returned."""
    target, ids, outputs, states = model(padding), prompt(), [], []
    given = {"max_new_tokens": 150, "eos_token_id": tokenizer().eos_token_id, "return_dict_in_generate": True, **kwargs}
    for custom in (None, lookahead):
        torch.manual_seed(seed)
        outputs.append(target.generate(ids, logits_processor=[processor()], custom_generate=custom, **given))
        states.append(torch.get_rng_state())
    vanilla, ours = outputs
    assert torch.equal(vanilla.sequences, ours.sequences)
    assert torch.equal(*states), "the random generator went another way"
    return tokenizer().decode(ours.sequences[0, ids.shape[1] :], skip_special_tokens=True), ours


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"repetition_penalty": 1.2},
        {"do_sample": True},
        {"do_sample": True, "temperature": 0.4, "top_p": 0.9},
        {"do_sample": True, "temperature": 3.0, "top_k": 0},
    ],
    ids=str,
)
@pytest.mark.parametrize("package", _GRAMMARS)
def test_what_is_said_is_valid_and_what_vanilla_says(package: str, settings: dict[str, Any]) -> None:
    lookahead, accepted = Lookahead(tokenizer(), cost="linear:0"), 0
    for seed in range(3):
        said, ours = both(grammar(package), lookahead, seed=seed, **settings)
        assert ours.sequences[0, -1] == tokenizer().eos_token_id
        jsonschema.validate(json.loads(said), SCHEMA)
        accepted += lookahead.stats.accepted
    assert accepted > 0


@pytest.mark.parametrize("package", _GRAMMARS)
def test_a_prediction_is_followed_as_far_as_the_grammar_and_the_model_agree(package: str) -> None:
    blind, told = Lookahead(tokenizer(), cost="linear:0"), Lookahead(tokenizer(), cost="linear:0")
    said, _ = both(grammar(package), blind, do_sample=True)
    told.prediction = said
    assert both(grammar(package), told, do_sample=True)[0] == said
    assert told.stats.accepted_prediction_tokens > 0
    assert told.stats.forwards < blind.stats.forwards


@pytest.mark.parametrize("package", _GRAMMARS)
def test_a_limit_in_the_middle_of_a_value(package: str) -> None:
    for new in (1, 7, 19):
        said, ours = both(grammar(package), Lookahead(tokenizer(), cost="linear:0"), max_new_tokens=new)
        assert ours.sequences.shape[1] == prompt().shape[1] + new
        assert said.startswith('{"tool":"'[: len(said)])


def test_a_vocabulary_that_the_model_pads() -> None:
    lookahead = Lookahead(tokenizer(), cost="linear:0")
    said, _ = both(grammar("xgrammar", PADDING), lookahead, PADDING, do_sample=True)
    jsonschema.validate(json.loads(said), SCHEMA)
    assert lookahead.stats.accepted > 0


def test_scores_and_logits_are_those_that_the_grammar_leaves() -> None:
    wanted = {"return_dict_in_generate": True, "output_scores": True, "output_logits": True}
    runs = [
        model().generate(
            prompt(), logits_processor=[grammar("xgrammar")()], max_new_tokens=60, custom_generate=custom, **wanted
        )
        for custom in (None, Lookahead(tokenizer(), cost="linear:0"))
    ]
    for name in ("scores", "logits"):
        for vanilla, ours in zip(*(getattr(run, name) for run in runs), strict=True):
            torch.testing.assert_close(ours, vanilla)
    assert runs[1].stats.accepted > 0


def test_a_generator_of_outlines_takes_the_loop() -> None:
    outlines = pytest.importorskip("outlines")
    schema = outlines.types.JsonSchema(SCHEMA, whitespace_pattern="")
    generator = outlines.Generator(outlines.from_transformers(model(), tokenizer()), schema)
    lookahead, text = Lookahead(tokenizer(), cost="linear:0"), tokenizer().decode(prompt()[0])
    settings = {"max_new_tokens": 150, "eos_token_id": tokenizer().eos_token_id}
    vanilla, ours = (generator(text, custom_generate=custom, **settings) for custom in (None, lookahead))
    assert ours == vanilla
    jsonschema.validate(json.loads(ours), SCHEMA)
    assert lookahead.stats.accepted > 0


@pytest.mark.parametrize("package", _GRAMMARS)
def test_a_batch_is_refused_rather_than_led_astray(package: str) -> None:
    with pytest.raises(ValueError, match="LogitsProcessor may keep a state for each row"):
        model().generate(
            prompt().expand(2, -1), logits_processor=[grammar(package)()], max_new_tokens=9, custom_generate=Lookahead()
        )

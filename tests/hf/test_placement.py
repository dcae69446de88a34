"""Models in parts, on several devices or processes, compiled, with quantized weights: all decode as vanilla does."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from transformers import AutoModelForCausalLM, CompileConfig, StaticCache

from lookahead import Lookahead
from lookahead.hf.names import cache_name
from tests.models import prompt, tiny

ROOT = Path(__file__).parents[2]


def both(model: Any, ids: torch.Tensor | None = None, **settings: Any) -> Lookahead:
    """Expect the same output with lookahead and a prediction that is right but for every ninth token."""
    ids = prompt() if ids is None else ids
    settings = {"max_new_tokens": 40, **settings}
    vanilla = model.generate(ids, **settings)
    expected = vanilla[0, -40:].clone()
    expected[7::9] = 5
    lookahead = Lookahead(cost="linear:0.001")
    ours = model.generate(ids, custom_generate=lookahead, prediction=expected.tolist(), **settings)
    assert torch.equal(vanilla, ours)
    assert lookahead.stats.accepted > 15
    return lookahead


@pytest.fixture
def folder(tmp_path: Path) -> str:
    """A saved model."""
    tiny(dtype=torch.float32).save_pretrained(tmp_path)
    return str(tmp_path)


def test_two_processes_with_half_a_model_each(folder: str) -> None:
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "tests/hf/parallel.py", folder]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr[-3000:]
    said = [json.loads((Path(folder) / f"said{rank}.json").read_text()) for rank in range(2)]
    assert said[0] == said[1]
    assert said[0]["parts"] == 2 and said[0]["equal"] == [True] * 3
    assert all(forwards < 40 for forwards in said[0]["forwards"])


def test_layers_on_the_disk(folder: str, tmp_path: Path) -> None:
    places = {"model.embed_tokens": "cpu", "model.layers.0": "cpu", "model.layers.1": "disk", "model.norm": "cpu"}
    places |= {"model.rotary_emb": "cpu", "lm_head": "cpu"}
    model = AutoModelForCausalLM.from_pretrained(folder, device_map=places, offload_folder=str(tmp_path / "offload"))
    model.generation_config.eos_token_id = None
    assert len(set(model.hf_device_map.values())) == 2
    both(model)


def static(model: Any) -> dict[str, Any]:
    """Return a static cache with room for a call."""
    return {cache_name(): StaticCache(config=model.config, max_cache_len=128)}


def test_a_compiled_forward_sees_few_shapes() -> None:
    model, lookahead = copy.deepcopy(tiny(dtype=torch.float32)), Lookahead(cost="linear:0.001")
    vanilla = [model.generate(prompt(seed=seed), max_new_tokens=40) for seed in range(3)]
    widths = []
    model.register_forward_pre_hook(lambda _, __, given: widths.append(given["input_ids"].shape[1]), with_kwargs=True)
    model.forward = torch.compile(model.forward, backend="eager", dynamic=False)
    for seed in range(3):
        expected = vanilla[seed][0, -40:].clone()
        expected[7::9] = 5
        settings = {"custom_generate": lookahead, "prediction": expected.tolist(), "max_new_tokens": 40}
        widths.clear()
        assert torch.equal(vanilla[seed], model.generate(prompt(seed=seed), **static(model), **settings))
        assert set(widths[-lookahead.stats.forwards :]) <= {40, 1, 8, 32, 128}
        assert lookahead.stats.accepted > 15


def test_compiled_as_generate_does_where_it_may() -> None:
    torch._dynamo.reset()  # what was compiled before
    model = copy.deepcopy(tiny(dtype=torch.float32))
    settings: dict[str, Any] = {"cache_implementation": "static", "max_new_tokens": 40}
    vanilla = model.generate(prompt(), **settings)
    config = CompileConfig(fullgraph=True, dynamic=False, backend="eager")
    config._compile_all_devices = True
    expected = vanilla[0, -40:].clone()
    expected[7::9] = 5
    lookahead = Lookahead(cost="linear:0.001")
    compiled_calls = []
    stock = model.get_compiled_call

    def watched(config: Any) -> Any:
        compiled_calls.append(config)
        return stock(config)

    model.get_compiled_call = watched
    ours = model.generate(
        prompt(), custom_generate=lookahead, prediction=expected.tolist(), compile_config=config, **settings
    )
    assert torch.equal(vanilla, ours)
    assert compiled_calls and lookahead.stats.accepted > 15


def test_quantized_weights() -> None:
    quanto = pytest.importorskip("optimum.quanto")
    model = copy.deepcopy(tiny(dtype=torch.float32))
    quanto.quantize(model, weights=quanto.qint8)
    quanto.freeze(model)
    assert any("QLinear" in type(module).__name__ for module in model.modules())
    both(model)


def test_a_quantized_cache() -> None:
    pytest.importorskip("optimum.quanto")
    config = {"backend": "quanto", "residual_length": 16, "q_group_size": 8}
    both(copy.deepcopy(tiny(dtype=torch.float32)), cache_implementation="quantized", cache_config=config)


@pytest.mark.parametrize("kind", ["llama", "mistral"])
def test_an_offloaded_cache(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stream:
        """What the cache asks of a stream of an accelerator, where there is none."""

        def wait_stream(self, other: Any) -> None: ...

        def __enter__(self) -> None: ...

        def __exit__(self, *_: Any) -> None: ...

    monkeypatch.setattr(torch, "Stream", Stream)
    monkeypatch.setattr(torch.cuda, "default_stream", lambda device: Stream())
    lookahead = both(copy.deepcopy(tiny(kind)), cache_implementation="offloaded")
    assert lookahead.stats.note is None


def test_input_embeddings_instead_of_ids() -> None:
    model, ids = tiny(), prompt()
    embeds = model.get_input_embeddings()(ids).detach()
    mask = torch.ones_like(ids)
    vanilla = model.generate(inputs_embeds=embeds, attention_mask=mask, max_new_tokens=40)
    assert vanilla.shape == (1, 40)
    expected = vanilla[0].clone()
    expected[7::9] = 5
    for given in ({}, {"input_ids": ids}):
        lookahead = Lookahead(cost="linear:0.001")
        known = model.generate(inputs_embeds=embeds, attention_mask=mask, max_new_tokens=40, **given)
        ours = model.generate(
            inputs_embeds=embeds,
            attention_mask=mask,
            max_new_tokens=40,
            custom_generate=lookahead,
            prediction=expected.tolist(),
            **given,
        )
        assert torch.equal(known, ours)
        assert lookahead.stats.accepted > 15


def test_whisper_writes_what_it_hears() -> None:
    config = transformers.WhisperConfig(
        vocab_size=61,
        d_model=32,
        encoder_layers=1,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=48,
        decoder_ffn_dim=48,
        num_mel_bins=8,
        max_source_positions=16,
        max_target_positions=96,
        init_std=0.3,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=3,
        suppress_tokens=None,
        begin_suppress_tokens=None,
    )
    torch.manual_seed(0)
    model = transformers.WhisperForConditionalGeneration(config).double().eval()
    model.generation_config.update(eos_token_id=None, pad_token_id=0, return_timestamps=False)
    sound = torch.randn(1, 8, 32, dtype=torch.float64)
    prompted = {"decoder_input_ids": torch.tensor([[3, 7, 8, 9]]), "max_new_tokens": 40}
    stock = super(type(model), model).generate  # whisper's own cuts the sound into segments
    vanilla = stock(sound, **prompted)
    expected = vanilla[0, -40:].clone()
    expected[7::9] = 5
    lookahead = Lookahead(cost="linear:0.001")
    ours = stock(sound, custom_generate=lookahead, prediction=expected.tolist(), **prompted)
    assert torch.equal(vanilla, ours)
    assert lookahead.stats.accepted > 15

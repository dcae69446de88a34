"""A folder that `lookahead install` made: the model in it says the same, in fewer forwards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, GenerationConfig

from lookahead.hf import installed
from tests.models import prompt, tiny
from tests.vocabularies import letters

typer = pytest.importorskip("typer")


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "tiny"
    tiny().save_pretrained(folder)
    letters().save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def folder(source: Path) -> Path:
    install(source)
    return source.with_name("tiny-lookahead")


@pytest.fixture(scope="module")
def model(folder: Path) -> Any:
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float64, trust_remote_code=True).eval()


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Record the objects that decode."""
    found: list[Any] = []
    original = installed.enabled

    def recorded(model: Any, ahead: Any) -> Any:
        found.append(ahead)
        return original(model, ahead)

    monkeypatch.setattr(installed, "enabled", recorded)
    return found


def install(*arguments: Any) -> None:
    from lookahead.cli.app import app

    with pytest.raises(SystemExit) as ended:
        app(["install", *map(str, arguments)])
    assert ended.value.code == 0


def wrong(capsys: pytest.CaptureFixture[str], *arguments: Any) -> str:
    from lookahead.cli.app import app

    with pytest.raises(SystemExit) as ended:
        app(["install", *map(str, arguments)])
    assert ended.value.code == 64
    return capsys.readouterr().err


def both(model: Any, **settings: Any) -> tuple[list[int], list[int]]:
    """Return what plain generate says, and the model of the folder."""
    ids, outputs = prompt(), []
    for one in (tiny(), model):
        torch.manual_seed(3)
        outputs.append(one.generate(ids, attention_mask=torch.ones_like(ids), **settings)[0].tolist())
    return outputs[0], outputs[1]


@pytest.mark.parametrize("sampling", [{"do_sample": False}, {"do_sample": True, "temperature": 0.7}])
def test_the_model_says_the_same_in_fewer_forwards(model: Any, calls: list[Any], sampling: dict[str, Any]) -> None:
    config = GenerationConfig(max_new_tokens=60, pad_token_id=0, lookahead={"cost": "linear:0.01"}, **sampling)
    plain, ours = both(model, generation_config=config)
    assert plain == ours
    assert calls[-1].stats.tokens == 60 and calls[-1].stats.forwards < 50


def test_a_folder_serves_as_custom_generate(folder: Path, calls: list[Any]) -> None:
    ids = prompt()
    given = {"attention_mask": torch.ones_like(ids), "max_new_tokens": 30, "do_sample": False}
    expected = tiny().generate(ids, **given)
    assert torch.equal(tiny().generate(ids, custom_generate=str(folder), trust_remote_code=True, **given), expected)
    assert calls[-1].stats.tokens == 30


def test_a_prediction_rides_in_the_config(model: Any, calls: list[Any]) -> None:
    plain, _ = both(model, max_new_tokens=40, do_sample=False)
    expected = letters().decode(plain[40:])
    config = GenerationConfig(max_new_tokens=40, pad_token_id=0, prediction=expected, lookahead={"cost": "linear:0.01"})
    assert both(model, generation_config=config) == (plain, plain)
    assert calls[-1].stats.accepted_prediction_tokens > 10
    both(model, max_new_tokens=5)
    assert calls[-1].stats.accepted_prediction_tokens == 0


def test_what_is_not_supported_is_left_to_generate(model: Any) -> None:
    with pytest.warns(UserWarning, match="beam"):
        plain, ours = both(model, max_new_tokens=10, num_beams=2, do_sample=False)
    assert plain == ours


def test_wrong_options_are_refused(model: Any) -> None:
    with pytest.raises(ValueError, match="allowed is an object of options"):
        both(model, generation_config=GenerationConfig(max_new_tokens=4, pad_token_id=0, lookahead=3))
    with pytest.raises(TypeError, match="unknown option speed"):
        both(model, generation_config=GenerationConfig(max_new_tokens=4, pad_token_id=0, lookahead={"speed": 3}))


def test_files_are_linked_or_copied(source: Path, folder: Path, tmp_path: Path) -> None:
    assert (folder / "model.safetensors").is_symlink() and not (source / "custom_generate").exists()
    install(source, "--output", tmp_path / "copy", "--copy")
    install(source, "-o", tmp_path / "copy")  # once more, over its own
    install(source, "-o", tmp_path / "copy", "--copy")
    assert not (tmp_path / "copy" / "model.safetensors").is_symlink()
    assert (tmp_path / "copy" / "custom_generate" / "requirements.txt").read_text().startswith("hf-lookahead>=")


def test_what_is_there_is_not_overwritten(
    source: Path, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("mine")
    assert "was not made by lookahead install" in wrong(capsys, source, "-o", tmp_path / "full")
    assert "lies in the model's folder" in wrong(capsys, source, "-o", source)
    assert "lies in the model's folder" in wrong(capsys, source, "-o", source / "new")
    assert "custom_generate of its own" in wrong(capsys, folder, "-o", tmp_path / "again")
    assert "no folder with a config.json" in wrong(capsys, tmp_path)

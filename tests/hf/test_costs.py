from __future__ import annotations

import json
from pathlib import Path

import pytest

from lookahead import Lookahead
from lookahead.hf import costs
from tests.models import prompt, tiny


@pytest.fixture
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Begin like a new process, with an empty folder."""
    monkeypatch.setenv("LOOKAHEAD_CACHE", str(tmp_path))
    monkeypatch.setattr(costs, "_costs", {})
    monkeypatch.setattr(costs, "_saved", {})
    return tmp_path / "costs"


def test_what_is_learnt_is_kept_for_the_next_process(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny()
    model.generate(prompt(), max_new_tokens=150, custom_generate=Lookahead(), eos_token_id=None)
    (file,) = fresh.iterdir()
    kept = json.loads(file.read_text(encoding="utf-8"))
    assert file.stem == costs.key_of(model) and kept
    monkeypatch.setattr(costs, "_costs", {})
    taken_over = costs.known(costs.key_of(model), model).state()
    assert taken_over == {
        context: {size: [cost, age + 1] for size, (cost, age) in row.items()} for context, row in kept.items()
    }


@pytest.mark.parametrize("content", ["", "{", "[1]", '{"1": 3}', '{"0": {"0": "soon"}}', "\x00\xff"])
def test_a_file_that_is_not_ours_is_as_none(fresh: Path, content: str) -> None:
    model = tiny()
    fresh.mkdir(parents=True)
    (fresh / f"{costs.key_of(model)}.json").write_text(content, encoding="latin-1")
    assert costs.known(costs.key_of(model), model).state() == {}


def test_a_folder_that_cannot_be_written_is_no_error(fresh: Path) -> None:
    fresh.parent.mkdir(exist_ok=True)
    fresh.write_text("a file where the folder would be")
    tiny().generate(prompt(), max_new_tokens=150, custom_generate=Lookahead(), eos_token_id=None)
    assert fresh.read_text() == "a file where the folder would be"


def test_a_given_cost_neither_reads_nor_writes(fresh: Path) -> None:
    tiny().generate(prompt(), max_new_tokens=150, custom_generate=Lookahead(cost="linear:0"), eos_token_id=None)
    assert not fresh.exists()


def test_models_of_another_shape_have_another_key() -> None:
    model, other = tiny(), tiny()
    assert costs.key_of(model) == costs.key_of(other)
    other.config.num_hidden_layers += 1
    try:
        assert costs.key_of(model) != costs.key_of(other) or model is other
    finally:
        other.config.num_hidden_layers -= 1

"""Architectures of every kind, each against its own `generate`; `python -m benchmarks.conformance` does them all."""

from __future__ import annotations

import pytest
import transformers
from transformers import DynamicCache

from benchmarks.architectures import architectures
from benchmarks.conformance import Row, examine

ROLLS_BACK_WINDOWS = hasattr(DynamicCache, "activate_past_recording")
KINDS = {
    "bart": "chains",
    "deepseek_v3": "trees",
    "falcon_h1": "chains, replayed",  # every layer holds a state and keys
    "gemma3_text": "chains",  # windows
    "gpt_neo": "chains",  # windows that count slots
    "gpt_oss": "chains",
    "granitemoehybrid": "chains, replayed",
    "jamba": "none",  # forgets its state
    "led": "chains",  # looks at the free slots of a static cache
    "lfm2": "chains, replayed",
    "mamba": "none",
    "mamba2": "chains, replayed",
    "moshi": "none",  # sees beyond its window where several tokens come at once
    "qwen3_next": "chains, replayed",
    "recurrent_gemma": "none",
    "rwkv": "none",  # keeps its state elsewhere
    "t5": "chains",
}


@pytest.mark.skipif(not ROLLS_BACK_WINDOWS, reason="the table is that of newer releases")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", KINDS)
def test_an_architecture(kind: str) -> None:
    verbosity = transformers.logging.get_verbosity()
    if kind not in architectures():
        pytest.skip(f"this release has no {kind}")
    try:
        row = examine(kind)
    finally:
        transformers.logging.set_verbosity(verbosity)
    assert isinstance(row, Row), row
    assert row.drafts == KINDS[kind]
    assert set(row.found.values()) <= {"=", "refused", "plain", "-"}, row
    assert row.found["greedy"] == row.found["sampling"] == ("plain" if row.drafts == "none" else "=")
    assert row.rate == 1 if row.drafts == "none" else row.rate > 1.5


def test_the_greatest_part_of_a_release_can_be_made_small() -> None:
    assert len(architectures()) > 100
    assert all(made is None or hasattr(made, "config_class") for made in architectures().values())

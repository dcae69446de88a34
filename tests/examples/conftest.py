"""The folder of a tiny model that chats."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("fastapi")  # the model is that of the server's tests


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    from tests.server.serving import model, tokenizer

    path: Path = tmp_path_factory.mktemp("models") / "tiny"
    model().save_pretrained(path)
    tokenizer().save_pretrained(path)
    return str(path)

"""The Python code of README and documentation runs, a page's blocks one after the other, with a tiny model."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from transformers import TextStreamer, pipeline

from tests.cli.commands import run
from tests.docs.pages import PAGES, blocks

pytest.importorskip("fastapi")  # the model is that of the server's tests
pytest.importorskip("pydivsufsort")  # a page opens a corpus

NAMES = [name for name in PAGES if blocks(name, "python")]
MESSAGES = [{"role": "user", "content": "def total(items):\n    result = 0\n    for item in items:\n"}]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tests.server.serving import saved

    return saved(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture
def own(folder: Path) -> dict[str, Any]:
    """What stands for the reader's own: names that the pages use and do not set."""
    from tests.models import tiny
    from tests.server.serving import model, tokenizer

    written = tokenizer().apply_chat_template(MESSAGES, add_generation_prompt=True, tokenize=False)
    return {
        "name": str(folder),
        "model": copy.deepcopy(model()),
        "tokenizer": tokenizer(),
        "messages": MESSAGES,
        "inputs": tokenizer()(written, add_special_tokens=False, return_tensors="pt"),
        "old_file": "def total(items):\n    return sum(items)\n",
        "assistant": copy.deepcopy(tiny(seed=1, vocabulary=len(tokenizer()))),
        "streamer": TextStreamer(tokenizer()),
        "pipeline": pipeline,
    }


@pytest.fixture
def served(own: dict[str, Any], request: pytest.FixtureRequest) -> Iterator[None]:
    """Add a server, where the page asks one."""
    if request.node.callspec.params["name"] != "server.md":
        yield
        return
    from tests.server.serving import running

    with running(key="secret") as server:
        yield own.update(url=f"{server.url}/v1", key="secret")
        own["client"].close()


@pytest.mark.filterwarnings("ignore:Using the model-agnostic default `max_length`")  # what the reader would set
@pytest.mark.parametrize("name", NAMES)
def test_the_code_of_a_page_runs(
    name: str, own: dict[str, Any], served: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file.py").write_text(own["old_file"])
    assert run("index", "file.py", "-o", "repository.lkh", "--tokenizer", own["name"]).exit_code == 0
    for line, code in blocks(name, "python"):
        code = code.replace("max_new_tokens=1024", "max_new_tokens=64")  # the rest would only take time
        exec(compile("\n" * line + code, str(PAGES[name]), "exec"), own)


def test_no_code_goes_without_its_language() -> None:
    found = [f"{name}:{line}" for name in PAGES for line, code in blocks(name, "py", "Python", "") if "import " in code]
    assert found == []

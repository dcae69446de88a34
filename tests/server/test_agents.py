"""A real agent drives an edit through the server: aider, where it is installed (it wants an environment of its own)."""

from __future__ import annotations

import copy
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from lookahead.hf import answering
from tests.server.serving import NAME, model, running
from tests.server.test_tools import Script

AIDER = os.environ.get("AIDER") or shutil.which("aider")
BEFORE = 'def greet(name):\n    return "Hello, " + name\n'
AFTER = 'def greet(name):\n    """Greet somebody."""\n    return "Hello, " + name\n'


@pytest.mark.skipif(AIDER is None, reason="aider is not installed; AIDER=/path/to/it names one")
@pytest.mark.parametrize("stream", [True, False])
def test_aider_edits_a_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stream: bool) -> None:
    repository, home = tmp_path / "repository", tmp_path / "home"
    repository.mkdir()
    home.mkdir()
    environment = {**os.environ, "HOME": str(home), "AIDER_ANALYTICS": "false", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}

    def git(*arguments: str) -> str:
        command = ["git", "-c", "user.name=Test", "-c", "user.email=test@example.org", *arguments]
        return subprocess.run(
            command, cwd=repository, env=environment, check=True, capture_output=True, text=True
        ).stdout

    (repository / "greeting.py").write_text(BEFORE)
    git("init", "--quiet")
    git("config", "user.name", "Test")
    git("config", "user.email", "test@example.org")
    git("add", ".")
    git("commit", "--quiet", "--message", "start")
    answers = [
        f"I add one.\n\ngreeting.py\n```\n{AFTER}```\n",
        "Add a docstring",
    ]  # the edit, the message of the commit
    monkeypatch.setattr(answering, "_processors", lambda settings, prompt, chances: [Script(answers.pop(0), prompt)])
    large: Any = copy.deepcopy(model())
    large.config.max_position_embeddings = 16_384  # aider explains itself at length
    with running(key="secret", target=large) as server:
        options = ["--openai-api-base", f"{server.url}/v1", "--openai-api-key", "secret", "--model", f"openai/{NAME}"]
        options += ["--edit-format", "whole", "--yes-always", "--map-tokens", "0", "--no-pretty", "--no-gitignore"]
        options += ["--no-check-update", "--no-show-model-warnings", "--no-detect-urls", "--no-show-release-notes"]
        command = [str(AIDER), *options, "--stream" if stream else "--no-stream", "--message", "Add a docstring."]
        ran = subprocess.run(
            [*command, "greeting.py"],
            cwd=repository,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        figures = server.service.metrics.text().decode()
    assert (repository / "greeting.py").read_text() == AFTER, ran.stdout + ran.stderr
    assert not answers and "Add a docstring" in git("log", "-1", "--format=%s")
    assert 'lookahead_requests_total{path="/v1/chat/completions",status="200"} 2.0' in figures
    assert 'lookahead_answers_total{end="finished"} 2.0' in figures

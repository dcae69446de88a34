"""`lookahead serve` and `transformers serve` as processes of their own, asked by the openai client."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

openai: Any = pytest.importorskip("openai")
for package in ("fastapi", "uvicorn", "prometheus_client", "typer"):
    pytest.importorskip(package)

MESSAGES: list[Any] = [{"role": "user", "content": "def total(items):\n    result = 0\n"}]
GIVEN: dict[str, Any] = {"messages": MESSAGES, "max_tokens": 40, "temperature": 0}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Save the tiny model that chats."""
    from tests.server.serving import saved

    return saved(tmp_path_factory.mktemp("served") / "tiny")


def expected() -> tuple[str, int]:
    """Return what `generate` says, and how many tokens that is."""
    from tests.server.serving import prompt_of, vanilla

    text, tokens = vanilla(prompt_of(MESSAGES), max_new_tokens=40, do_sample=False)
    return text, len(tokens)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


@contextlib.contextmanager
def process(*arguments: Any, port: int, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """Run a module until it answers, and end it."""
    command = [sys.executable, "-m", *map(str, arguments), "--port", str(port)]
    env = {**os.environ, **environment}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env) as one:
        try:
            end = time.monotonic() + 120
            while not answers(f"http://127.0.0.1:{port}/health"):
                assert one.poll() is None and time.monotonic() < end, one.communicate()[0]
                time.sleep(0.1)
            yield one
        finally:
            one.kill()


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as response:
            return bool(response.status == 200)
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return False


def client(port: int, key: str = "none") -> Any:
    return openai.OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key=key, max_retries=0)


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_lookahead_serve_finishes_its_answers_when_it_is_stopped(folder: Path, sent: signal.Signals) -> None:
    port = free_port()
    serve = ("lookahead.cli", "serve", "--model", folder, "--dtype", "float64", "--host", "0.0.0.0")
    with process(*serve, port=port, LOOKAHEAD_API_KEY="secret") as one:
        with client(port) as stranger, pytest.raises(openai.AuthenticationError):
            stranger.models.list()
        with client(port, "secret") as asked:
            answer = asked.chat.completions.create(model="tiny", **GIVEN)
            assert answer.choices[0].message.content == expected()[0]
            stream = asked.chat.completions.create(model="tiny", **{**GIVEN, "max_tokens": 400}, stream=True)
            next(stream)
            one.send_signal(sent)
            assert list(stream)[-1].choices[0].finish_reason in ("stop", "length")
        told = one.communicate(timeout=60)[0]
        assert one.returncode == 0
        assert f"serving tiny at http://0.0.0.0:{port}/v1" in told
        assert "secret" not in told and "may use the model" not in told
        assert "Finished server process" in told


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model", "/nowhere"], "there is no folder '/nowhere'"),
        (["--model", "x", "--log-level", "loud"], "allowed are critical"),
        (["--model", "x", "--api-key", " "], "the API key is empty"),
    ],
)
def test_wrong_usage_is_told(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    from lookahead.cli.app import app

    with pytest.raises(SystemExit) as ended:
        app(["serve", *arguments])
    assert ended.value.code == 64
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(("host", "is_told"), [("0.0.0.0", True), ("127.0.0.1", False)])
def test_an_open_door_is_told(
    folder: Path, host: str, is_told: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from lookahead.cli.app import app

    monkeypatch.setattr("lookahead.cli.serve._server", lambda: lambda *given: SimpleNamespace(run=int, started=True))
    with pytest.raises(SystemExit) as ended:
        app(["serve", "--model", str(folder), "--host", host])
    assert ended.value.code == 0
    assert ("may use the model" in capsys.readouterr().err) == is_told


def test_transformers_serve_decodes_with_lookahead(folder: Path) -> None:
    from lookahead.cli.app import app

    with pytest.raises(SystemExit):
        app(["install", str(folder)])
    own, port = f"{folder}-lookahead", free_port()
    serve = ("transformers.cli.transformers", "serve", own, "--trust-remote-code", "--device", "cpu")
    with process(*serve, "--dtype", "float64", port=port), client(port) as asked:
        text, count = expected()
        for extra in ({}, {"prediction": text}, {"lookahead": {"budget": 0}}):
            config = json.dumps({"max_new_tokens": 40, "do_sample": False, "pad_token_id": 0, **extra})
            given = {"model": own, "messages": MESSAGES, "extra_body": {"generation_config": config}}
            assert asked.chat.completions.create(**given, max_tokens=40).choices[0].message.content == text
            chunks = list(asked.chat.completions.create(**given, max_tokens=40, stream=True))
            assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == text
            assert chunks[-1].usage.completion_tokens == count
        with pytest.raises(openai.InternalServerError):
            config = json.dumps({"max_new_tokens": 4, "lookahead": {"speed": 9}})
            asked.chat.completions.create(**{**given, "extra_body": {"generation_config": config}})

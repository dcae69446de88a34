"""Every error has its status and OpenAI's shape, and says what to do."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import openai
import pytest

from lookahead.server.limits import Limits
from tests.server.serving import NAME, Running, running, wait_for

CHAT = "/v1/chat/completions"
HELLO: list[Any] = [{"role": "user", "content": "Hello."}]
LIMITS = Limits(body_bytes=20_000, prompt_tokens=300, choices=4, body_seconds=1)


@pytest.fixture(scope="module")
def guarded() -> Iterator[Running]:
    with running(LIMITS, key="secret") as one:
        yield one


def nested(depth: int) -> dict[str, Any]:
    return {"type": "array", "items": nested(depth - 1)} if depth else {"type": "string"}


def formed(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}


LARGE = [nested(70), {"properties": {f"p{number}": {} for number in range(300)}}, {"anyOf": [{}] * 4500}]


def asked(
    server: Running, body: Any, path: str = CHAT, key: str | None = "secret", method: str = "POST"
) -> tuple[int, Any]:
    """Send a body, bytes or what becomes JSON, and return the status and the reply."""
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=90)  # the first one compiles kernels
    headers = {"Content-Type": "application/json"} | ({} if key is None else {"Authorization": f"Bearer {key}"})
    data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
    try:
        connection.request(method, path, data, headers)
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


def chat(**more: Any) -> dict[str, Any]:
    return {"model": NAME, "messages": HELLO, "max_tokens": 2, **more}


@pytest.mark.parametrize(
    ("body", "param"),
    [
        (b"", None),
        (b"{", None),
        (b'{"model": "tiny", "messages"', None),
        (b"\xff\xfe", None),
        (b"[" * 9000, None),
        (b'"text"', None),
        (b"[]", None),
        ({"model": NAME}, "messages"),
        ({"messages": HELLO}, "model"),
        (chat(messages=[]), "messages"),
        (chat(messages=[{"role": "king", "content": "x"}]), "messages.0.role"),
        (chat(messages=[{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]), "messages"),
        (chat(messages=[{"role": "user", "content": "\ud800"}]), None),
        (chat(temperature=3), "temperature"),
        (chat(temperature="hot"), "temperature"),
        (b'{"model": "tiny", "messages": [{"role": "user", "content": "x"}], "temperature": NaN}', "temperature"),
        (chat(n=5), "n"),
        (chat(n=0), "n"),
        (chat(max_tokens=0), "max_tokens"),
        (chat(max_tokens=10**9), "messages"),
        (chat(seed=2**64), "seed"),
        (chat(top_logprobs=2), "top_logprobs"),
        (chat(logit_bias={"x": 1}), "logit_bias.x.[key]"),
        (chat(logit_bias={"999999": 1}), "logit_bias"),
        (chat(invented=1), "invented"),
        (chat(tool_choice="required"), "tool_choice"),
        (chat(response_format={"type": "json_schema"}), "response_format"),
        (
            chat(response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "wat"}}}),
            "response_format",
        ),
        *[(chat(response_format=formed(schema)), "response_format") for schema in LARGE],
        (chat(prediction={"type": "content", "content": [{"type": "image"}]}), "prediction"),
        (chat(chat_template_kwargs={"tokenize": True}), "chat_template_kwargs"),
        (chat(chat_template_kwargs={"chat_template": "{{ messages }}"}), "chat_template_kwargs"),
        (chat(messages=[{"role": "user", "content": "word " * 400}]), "messages"),
    ],
    ids=repr,
)
def test_a_bad_request_is_told_as_one(guarded: Running, body: Any, param: str | None) -> None:
    status, reply = asked(guarded, body)
    error = reply["error"]
    assert (status, error["type"]) == (400, "invalid_request_error"), error
    assert error["message"]
    if param is not None:
        assert error["param"] == param, error


@pytest.mark.parametrize(
    "body",
    [
        {"prompt": ""},
        {"prompt": []},
        {"prompt": [-1]},
        {"prompt": [10**6]},
        {"prompt": ["a", "b", "c"], "n": 2},
        {"prompt": "a", "suffix": "b"},
        {"prompt": "a", "best_of": 3},
        {"prompt": "a", "logprobs": 9},
    ],
    ids=repr,
)
def test_a_bad_completion_is_told_as_one(guarded: Running, body: dict[str, Any]) -> None:
    status, reply = asked(guarded, {"model": NAME, **body}, "/v1/completions")
    assert (status, reply["error"]["type"]) == (400, "invalid_request_error"), reply


def test_a_field_of_several_types_is_told_what_is_wrong_with_the_one_that_was_given(guarded: Running) -> None:
    for body, said in (
        (chat(stop=["x"] * 17), "at most 16 items"),
        (chat(messages=[{"role": "user", "content": [{"text": "a"}]}]), "type: Field required"),
    ):
        status, reply = asked(guarded, body)
        assert status == 400 and said in reply["error"]["message"], reply


@pytest.mark.parametrize(("content", "said"), [("\ud800", "UTF-8"), ("word " * 600, "512 are allowed")])
def test_a_prediction_that_cannot_be_used_is_refused_before_its_turn(guarded: Running, content: str, said: str) -> None:
    prediction = {"type": "content", "content": content}
    for body, path in (
        (chat(prediction=prediction), CHAT),
        ({"model": NAME, "prompt": "a", "prediction": prediction}, "/v1/completions"),
    ):
        status, reply = asked(guarded, body, path)
        assert status == 400 and said in reply["error"]["message"], reply
        assert reply["error"]["param"] == "prediction"


@pytest.mark.parametrize("key", [None, "", "wrong", "secre", "secret2", "sécret"])
def test_a_wrong_key_is_refused(guarded: Running, key: str | None) -> None:
    for path, method in ((CHAT, "POST"), ("/v1/models", "GET"), ("/metrics", "GET"), ("/openapi.json", "GET")):
        status, reply = asked(guarded, None, path, key, method)
        assert (status, reply["error"]["code"]) == (401, "invalid_api_key")


def test_health_needs_no_key(guarded: Running) -> None:
    assert asked(guarded, None, "/health", None, "GET") == (200, {"status": "ok"})


def test_the_client_tells_errors_apart(guarded: Running) -> None:
    with openai.OpenAI(base_url=f"{guarded.url}/v1", api_key="secret", max_retries=0) as client:
        with pytest.raises(openai.NotFoundError, match="no model 'gpt'"):
            client.chat.completions.create(model="gpt", messages=HELLO)
        with pytest.raises(openai.NotFoundError, match="no model 'a/b'"):
            client.models.retrieve("a/b")
        with pytest.raises(openai.BadRequestError, match="context has 512") as raised:
            client.chat.completions.create(model=NAME, messages=HELLO, max_tokens=5000)
        assert raised.value.code == "context_length_exceeded"
    with openai.OpenAI(base_url=f"{guarded.url}/v1", api_key="other", max_retries=0) as client:
        with pytest.raises(openai.AuthenticationError):
            client.models.list()


def test_unknown_paths_and_methods_have_the_shape_too(guarded: Running) -> None:
    assert asked(guarded, None, "/v1/nothing", method="GET")[0] == 404
    status, reply = asked(guarded, None, CHAT, method="GET")
    assert status == 405 and "GET" in reply["error"]["message"]


@pytest.mark.parametrize("size", [20_001, 100_000])
def test_a_giant_body_is_refused(guarded: Running, size: int) -> None:
    status, reply = asked(guarded, b" " * size)
    assert status == 413 and "20000 bytes" in reply["error"]["message"]


def test_a_body_in_chunks_is_measured_too(guarded: Running) -> None:
    connection = http.client.HTTPConnection(urlsplit(guarded.url).netloc, timeout=30)
    headers = {"Authorization": "Bearer secret", "Content-Type": "application/json"}
    connection.request("POST", CHAT, (b" " * 1000 for _ in range(30)), headers, encode_chunked=True)
    assert connection.getresponse().status == 413
    connection.close()


def test_a_body_that_does_not_arrive_is_given_up(guarded: Running) -> None:
    connection = http.client.HTTPConnection(urlsplit(guarded.url).netloc, timeout=30)
    connection.putrequest("POST", CHAT)
    connection.putheader("Authorization", "Bearer secret")
    connection.putheader("Content-Length", "100")
    connection.endheaders(b"{")
    response = connection.getresponse()
    assert response.status == 408 and json.loads(response.read())["error"]["type"] == "invalid_request_error"
    connection.close()


def test_too_many_requests_at_once_are_sent_away() -> None:
    with running(Limits(requests=2, body_seconds=20)) as server:
        held = [http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=30) for _ in range(2)]
        for connection in held:  # bodies that are still on their way
            connection.putrequest("POST", CHAT)
            connection.putheader("Content-Length", "100")
            connection.endheaders(b"{")
        wait_for(lambda: asked(server, chat())[0] == 503)
        assert asked(server, chat())[1]["error"]["code"] == "overloaded"
        assert asked(server, None, "/health", method="GET")[0] == 200
        for connection in held:
            connection.close()
        wait_for(lambda: asked(server, chat())[0] == 200)


@pytest.mark.parametrize(
    ("name", "value"), [("body_bytes", 0), ("seconds", 0), ("waiting", -1), ("cache_bytes", -1), ("requests", 0)]
)
def test_limits_are_checked(name: str, value: int) -> None:
    with pytest.raises(ValueError, match=f"{name}={value}"):
        Limits(**{name: value})

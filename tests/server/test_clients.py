"""Clients that leave, crowd or stay too long: the model works for nobody who has gone, and everybody has a turn."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import openai
import pytest
import torch

from lookahead import Lookahead
from lookahead.server.limits import Limits
from tests.server.serving import NAME, Running, model, prompt_of, running, vanilla, wait_for

MESSAGES: list[Any] = [{"role": "user", "content": "Say something long."}]


class Gate:
    """Counts the forwards of the model, and holds them up while it is closed."""

    def __init__(self) -> None:
        self.forwards = 0
        self.open = threading.Event()
        self.open.set()

    def __call__(self, *args: Any) -> None:
        self.forwards += 1
        assert self.open.wait(60)


@pytest.fixture
def gate() -> Iterator[Gate]:
    Lookahead().generate(model(), torch.ones(1, 4, dtype=torch.long), max_new_tokens=4)  # the first call asks it more
    one = Gate()
    handle = model().register_forward_pre_hook(one)
    yield one
    one.open.set()
    handle.remove()


def client(server: Running) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0)


def raw(server: Running, **body: Any) -> socket.socket:
    """Send a chat over a socket and return it, so that it can be dropped."""
    host, port = server.url.removeprefix("http://").split(":")
    sent = json.dumps({"model": NAME, "messages": MESSAGES, "temperature": 0, **body}).encode()
    lines = ["POST /v1/chat/completions HTTP/1.1", "Host: x", "Content-Type: application/json"]
    head = "\r\n".join([*lines, f"Content-Length: {len(sent)}", "", ""])
    connection = socket.create_connection((host, int(port)))
    connection.sendall(head.encode() + sent)
    return connection


@pytest.mark.parametrize("stream", [True, False])
def test_who_has_gone_is_not_answered_any_more(gate: Gate, stream: bool) -> None:
    with running() as server:
        gate.open.clear()
        connection = raw(server, max_tokens=400, stream=stream)
        wait_for(lambda: gate.forwards == 1)
        connection.close()
        jobs = server.service.worker
        wait_for(lambda: jobs._running is not None and jobs._running.is_cancelled)
        gate.open.set()
        wait_for(lambda: jobs._running is None)
        assert gate.forwards == 1
        with client(server) as next_one:
            answer = next_one.chat.completions.create(model=NAME, messages=MESSAGES, max_tokens=20, temperature=0)
        assert answer.choices[0].message.content == vanilla(prompt_of(MESSAGES), max_new_tokens=20, do_sample=False)[0]


def test_who_leaves_the_queue_is_never_answered(gate: Gate) -> None:
    with running() as server:
        gate.open.clear()
        first = raw(server, max_tokens=3)
        wait_for(lambda: gate.forwards == 1)
        waiting = [raw(server, max_tokens=3, user=f"user {number}") for number in range(4)]
        turns = server.service.worker._turns
        wait_for(lambda: len(turns) == 4)
        for connection in waiting:
            connection.close()
        wait_for(lambda: len(turns) == 0)
        gate.open.set()
        assert b"200 OK" in first.recv(1000)
        first.close()
        assert 'lookahead_answers_total{end="cancelled"} 4.0' in server.service.metrics.text().decode()


def test_users_take_turns(gate: Gate) -> None:
    order: list[str] = []

    def ask(server: Running, user: str) -> None:
        with client(server) as one:
            one.chat.completions.create(model=NAME, messages=MESSAGES, max_tokens=2, user=user)
            order.append(user)

    with running() as server, ThreadPoolExecutor(8) as pool:
        gate.open.clear()
        started = [pool.submit(ask, server, "first")]
        wait_for(lambda: gate.forwards == 1)
        for number, user in enumerate(["many", "many", "many", "many", "one"]):
            started.append(pool.submit(ask, server, user))
            wait_for(lambda number=number: len(server.service.worker._turns) == number + 1)
        gate.open.set()
        for one in started:
            one.result()
    assert order.index("one") <= 2


def test_users_have_no_part_in_the_caches_of_others() -> None:
    with running() as server, client(server) as one:

        def cached(**more: Any) -> int:
            given: dict[str, Any] = {"model": NAME, "messages": MESSAGES, "max_tokens": 2, **more}
            found: int = one.chat.completions.create(**given).usage.prompt_tokens_details.cached_tokens
            return found

        assert cached() == 0 and cached() > 0  # nobody in particular, from one machine
        for user in ("127.0.0.1", "host 127.0.0.1", "user host 127.0.0.1"):
            assert cached(user=user) == 0 and cached(user=user) > 0


def test_too_many_who_wait_are_sent_away(gate: Gate) -> None:
    with running(Limits(waiting=3, waiting_per_user=2)) as server, client(server) as one:
        gate.open.clear()
        held = [raw(server, max_tokens=2, user="a")]
        wait_for(lambda: gate.forwards == 1)
        turns = server.service.worker._turns
        held += [raw(server, max_tokens=2, user="a") for _ in range(2)]
        wait_for(lambda: len(turns) == 2)
        with pytest.raises(openai.RateLimitError) as told:
            one.chat.completions.create(model=NAME, messages=MESSAGES, user="a")
        assert told.value.response.headers["retry-after"] == "1"
        held.append(raw(server, max_tokens=2, user="b"))
        wait_for(lambda: len(turns) == 3)
        with pytest.raises(openai.InternalServerError, match="3 answers are waiting") as refused:
            one.chat.completions.create(model=NAME, messages=MESSAGES, user="c")
        assert refused.value.status_code == 503
        gate.open.set()
        for connection in held:
            assert b"200 OK" in connection.recv(1000)
            connection.close()


@pytest.mark.parametrize("stream", [True, False])
def test_an_answer_that_takes_too_long_is_ended(gate: Gate, stream: bool) -> None:
    with running(Limits(seconds=0.5)) as server, client(server) as one:
        gate.open.clear()
        with pytest.raises(openai.APIError, match=r"more than 0\.5 s"):
            answer = one.chat.completions.create(model=NAME, messages=MESSAGES, max_tokens=400, stream=stream)
            list(answer)
        gate.open.set()
        wait_for(lambda: server.service.worker._running is None)
        assert gate.forwards == 1


def test_a_failure_is_told_and_the_next_one_is_answered(
    gate: Gate, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with running() as server, client(server) as one:
        given: dict[str, Any] = {"model": NAME, "messages": MESSAGES, "max_tokens": 5, "temperature": 0}
        with monkeypatch.context() as patch:
            patch.setattr(gate, "open", None)
            with pytest.raises(openai.InternalServerError, match="its log says why") as told:
                one.chat.completions.create(**given)
        assert told.value.status_code == 500
        assert "an answer failed" in caplog.text
        answer = one.chat.completions.create(**given)
        assert answer.choices[0].message.content == vanilla(prompt_of(MESSAGES), max_new_tokens=5, do_sample=False)[0]


def test_a_server_that_stops_finishes_its_answers(gate: Gate) -> None:
    with running(grace=30) as server, client(server) as one, ThreadPoolExecutor(2) as pool:
        gate.open.clear()
        given = {"model": NAME, "messages": MESSAGES, "max_tokens": 20, "temperature": 0}
        answers = [pool.submit(one.chat.completions.create, **given) for _ in range(2)]
        wait_for(lambda: gate.forwards == 1 and len(server.service.worker._turns) == 1)
        server.server.finish()
        time.sleep(0.2)
        gate.open.set()
        expected = vanilla(prompt_of(MESSAGES), max_new_tokens=20, do_sample=False)[0]
        assert [one.result().choices[0].message.content for one in answers] == [expected] * 2
        server.join()


def test_a_server_that_stops_tells_whom_it_cannot_answer_in_time(gate: Gate) -> None:
    with running(grace=0.3) as server, client(server) as one, ThreadPoolExecutor(2) as pool:
        gate.open.clear()
        given = {"model": NAME, "messages": MESSAGES, "max_tokens": 400, "temperature": 0}
        answers = [pool.submit(one.chat.completions.create, **given) for _ in range(2)]
        wait_for(lambda: gate.forwards == 1 and len(server.service.worker._turns) == 1)
        server.server.finish()
        wait_for(lambda: server.service.worker._is_ended)
        gate.open.set()
        for answer in answers:
            with pytest.raises(openai.InternalServerError, match="shutting down") as told:
                answer.result()
            assert told.value.status_code == 503
        server.join()


def test_many_clients_at_once_are_all_answered_right() -> None:
    prompts = [[{"role": "user", "content": f"Number {number}, say something."}] for number in range(8)]
    expected = [vanilla(prompt_of(one), max_new_tokens=12, do_sample=False)[0] for one in prompts]

    def ask(server: Running, number: int) -> str:
        with client(server) as one:
            given: dict[str, Any] = {"model": NAME, "messages": prompts[number % 8], "max_tokens": 12, "temperature": 0}
            if number % 2:
                return one.chat.completions.create(**given, user=f"user {number % 5}").choices[0].message.content
            stream = one.chat.completions.create(**given, stream=True, user=f"user {number % 5}")
            return "".join(chunk.choices[0].delta.content or "" for chunk in stream)

    with running() as server, ThreadPoolExecutor(32) as pool:
        found = list(pool.map(lambda number: ask(server, number), range(64)))
        figures = server.service.metrics.text().decode()
    assert found == [expected[number % 8] for number in range(64)]
    assert Counter(figures.splitlines())['lookahead_answers_total{end="finished"} 64.0'] == 1
    assert 'lookahead_requests_total{path="/v1/chat/completions",status="200"} 64.0' in figures

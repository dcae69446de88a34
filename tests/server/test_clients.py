"""Clients that leave, crowd or stay too long: the model works for nobody who has gone, and everybody has a turn."""

from __future__ import annotations

import contextlib
import json
import random
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import openai
import pytest
import torch

from lookahead import Lookahead
from lookahead.hf.answering import Ask, Settings, answer_together
from lookahead.hf.listening import Repetition
from lookahead.hf.prefixes import Prefixes
from lookahead.server.limits import Limits
from lookahead.server.memory import Memory
from lookahead.server.pace import Pace
from tests.server.serving import NAME, Running, model, prompt_of, running, tokenizer, vanilla, wait_for

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
        wait_for(lambda: any(job.is_cancelled for job in jobs._running))
        gate.open.set()
        wait_for(lambda: not jobs._running)
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


@pytest.fixture
def crowd(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., list[Any]]]:
    """Return what has many ask while the model is held up, so that they are answered together."""
    monkeypatch.setattr(Pace, "rows", lambda self, waiting: min(waiting, 8))

    def ask(server: Running, requests: list[dict[str, Any]]) -> list[Any]:
        def answered(request: dict[str, Any]) -> Any:
            with client(server) as one:
                given: dict[str, Any] = {"model": NAME, "messages": MESSAGES, "temperature": 0, **request}
                try:
                    return one.chat.completions.create(**given)
                except openai.APIStatusError as error:
                    return error

        with ThreadPoolExecutor(16) as pool:
            gate.open.clear()
            before = gate.forwards
            with contextlib.closing(raw(server, max_tokens=2)):
                wait_for(lambda: gate.forwards == before + 1)
                found = [pool.submit(answered, request) for request in requests]
                wait_for(lambda: len(server.service.worker._turns) == sum(one.get("n", 1) for one in requests))
                gate.open.set()
                return [one.result() for one in found]

    yield ask


def test_those_who_wait_are_answered_together_each_what_was_asked(crowd: Callable[..., list[Any]]) -> None:
    texts = [f"{'Very ' * number}long {number}?" for number in range(3)]
    chats = [[{"role": "user", "content": text}] for text in texts]
    requests: list[dict[str, Any]] = [
        {"messages": chats[0], "max_tokens": 30, "user": "a", "n": 2},
        {"messages": chats[1], "max_tokens": 7, "user": "b", "logprobs": True},
        {"messages": chats[2], "max_tokens": 25, "user": "c", "frequency_penalty": 1.0},
        {"messages": chats[2], "max_tokens": 5, "user": "d", "seed": 1},  # goes alone
    ]
    with running() as server:
        found = crowd(server, requests)
        figures = server.service.metrics.text().decode()
        alone = crowd(server, requests[2:3])[0].choices[0].message.content
    counts = (30, 7, 25, 5)
    plain = [
        vanilla(prompt_of(request["messages"]), max_new_tokens=count, do_sample=False)[0]
        for request, count in zip(requests, counts, strict=True)
    ]
    assert [choice.message.content for choice in found[0].choices] == [plain[0]] * 2
    assert [found[place].choices[0].message.content for place in (1, 3)] == [plain[1], plain[3]]
    assert len(found[1].choices[0].logprobs.content) == 7
    assert found[2].choices[0].message.content == alone != plain[2]
    assert [one.usage.completion_tokens for one in found] == [60, 7, 25, 5]
    assert 'answers_together_bucket{le="4.0"} 3.0' in figures and 'answers_together_bucket{le="2.0"} 2.0' in figures


def test_one_who_fails_does_not_spoil_the_answers_of_others(
    crowd: Callable[..., list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    process = Repetition.__call__

    def fails(self: Any, input_ids: Any, scores: Any) -> Any:
        if self._presence == 2:
            raise RuntimeError("on purpose")
        return process(self, input_ids, scores)

    monkeypatch.setattr(Repetition, "__call__", fails)
    with running() as server:
        found = crowd(server, [{"max_tokens": 6, "user": "a", "presence_penalty": 2}, {"max_tokens": 6, "user": "b"}])
    assert found[0].status_code == 500
    assert found[1].choices[0].message.content == vanilla(prompt_of(MESSAGES), max_new_tokens=6, do_sample=False)[0]


def test_a_fault_in_choosing_who_goes_together_ends_nothing(
    crowd: Callable[..., list[Any]], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(model: Any, asks: Any, prefixes: Any) -> bool:
        if len(asks) > 1:
            raise RuntimeError("on purpose")
        return True

    monkeypatch.setattr("lookahead.server.worker.go_together", fails)
    with running() as server:
        found = crowd(server, [{"max_tokens": 6, "user": user} for user in "ab"])
    expected = vanilla(prompt_of(MESSAGES), max_new_tokens=6, do_sample=False)[0]
    assert [one.choices[0].message.content for one in found] == [expected] * 2
    assert "nobody more was let join" in caplog.text


def test_who_leaves_a_batch_is_dropped_from_it(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    def rows(pace: Pace, waiting: int) -> int:
        if waiting > 1:
            gate.open.clear()  # holds up the first forward of the batch
        return waiting

    monkeypatch.setattr(Pace, "rows", rows)
    with running() as server, client(server) as one, ThreadPoolExecutor(1) as pool:
        gate.open.clear()
        first, worker = raw(server, max_tokens=2), server.service.worker
        wait_for(lambda: gate.forwards == 1)
        leaving = raw(server, max_tokens=400, user="leaving")
        given: dict[str, Any] = {"model": NAME, "messages": MESSAGES, "max_tokens": 20, "temperature": 0}
        staying = pool.submit(one.chat.completions.create, **given)
        wait_for(lambda: len(worker._turns) == 2)
        gate.open.set()
        wait_for(lambda: len(worker._running) == 2)
        leaving.close()
        wait_for(lambda: any(job.is_cancelled for job in worker._running))
        gate.open.set()
        expected = vanilla(prompt_of(MESSAGES), max_new_tokens=20, do_sample=False)[0]
        assert staying.result().choices[0].message.content == expected
        wait_for(lambda: not worker._running)
        assert gate.forwards < 40 + 20
        first.close()
        assert 'lookahead_answers_total{end="cancelled"} 1.0' in server.service.metrics.text().decode()


def test_users_take_turns(gate: Gate) -> None:
    order: list[str] = []

    def ask(server: Running, user: str) -> None:
        with client(server) as one:
            one.chat.completions.create(model=NAME, messages=MESSAGES, max_tokens=2, user=user)
            order.append(user)

    with running(Limits(batch=1)) as server, ThreadPoolExecutor(8) as pool:
        gate.open.clear()
        started = [pool.submit(ask, server, "first")]
        wait_for(lambda: gate.forwards == 1)
        for number, user in enumerate(["many", "many", "many", "many", "one"]):
            started.append(pool.submit(ask, server, user))
            wait_for(lambda number=number: len(server.service.worker._turns) == number + 1)
        gate.open.set()
        for one in started:
            one.result()
    assert order.index("one") <= 3  # not last; who hears first of two answers is chance


def test_users_have_no_part_in_the_caches_of_others() -> None:
    with running() as server, client(server) as one:

        def cached(**more: Any) -> int:
            given: dict[str, Any] = {"model": NAME, "messages": MESSAGES, "max_tokens": 2, **more}
            found: int = one.chat.completions.create(**given).usage.prompt_tokens_details.cached_tokens
            return found

        assert cached() == 0 and cached() > 0  # nobody in particular, from one machine
        for user in ("127.0.0.1", "host 127.0.0.1", "user host 127.0.0.1"):
            assert cached(user=user) == 0 and cached(user=user) > 0


def test_a_user_is_drafted_for_from_the_own_earlier_answers_alone() -> None:
    ids = prompt_of(MESSAGES)
    written = vanilla(ids, max_new_tokens=40, do_sample=False)[1]
    with running(Limits(cache_bytes=0)) as server, client(server) as one:

        def ask(user: str, known: int) -> float:
            """Have an answer written from some token on; return the tokens drafted from earlier answers so far."""
            prompt, count = [*ids[0].tolist(), *written[:known]], 40 - known
            answer = one.completions.create(model=NAME, prompt=prompt, max_tokens=count, temperature=0, user=user)
            assert answer.choices[0].text == tokenizer().decode(written[known:], skip_special_tokens=True)
            figures = server.service.metrics.text().decode().splitlines()
            found = [line for line in figures if line.startswith('lookahead_drafted_total{source="session"}')]
            return float(found[0].split()[-1]) if found else 0.0

        assert ask("a", 0) == 0
        assert ask("b", 3) == 0
        assert ask("a", 3) > 0


def test_rows_of_a_batch_are_remembered_by_their_own_users_alone() -> None:
    memory, ids = Memory(tokenizer(), users=3, max_bytes=10**7), prompt_of(MESSAGES)[0].tolist()
    prompts = [[*ids, 5, 6], [*ids, 7]]
    asks = [Ask(prompt, Settings(12, {"do_sample": False}), lambda token, chances: False) for prompt in prompts]
    found = answer_together(model(), memory.of("a", "b"), asks, Prefixes(model(), 0))
    for user, prompt, answer in zip("ab", prompts, found, strict=True):
        assert answer.tokens == vanilla(torch.tensor([prompt]), max_new_tokens=12, do_sample=False)[1]
        remembered = [one.tolist() for one in memory._sessions[user][0]._memory.passages()]
        assert remembered == [[*prompt, *answer.tokens]], user


def test_memory_of_users_is_bounded() -> None:
    memory, generator = Memory(tokenizer(), users=3, max_bytes=700_000), random.Random(0)
    for number in range(5):
        memory.of(str(number))
        memory._sessions[str(number)][0].add([generator.randrange(500) for _ in range(5000)])
    assert list(memory._sessions) == ["2", "3", "4"]
    assert memory.of("2") is memory.of("2") and memory.of("2", "2") is memory.of("2")
    for session, _ in memory._sessions.values():
        for _ in range(4):
            session.add([generator.randrange(500) for _ in range(5000)])
    before = memory.nbytes
    kept = memory.of("2")  # who is served now is given up last
    assert memory.nbytes <= 700_000 < before
    assert memory.of("2") is kept


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
        wait_for(lambda: not server.service.worker._running)
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

"""A server under load: ``python -m benchmarks.load``.

`lookahead serve` runs as a process of its own, and many openai clients at once hold conversations of two turns with it.
Some hang up in the middle of an answer, send no JSON, or send a body that is too large. Equal greedy questions have to
get equal answers throughout.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import http.client
import json
import random
import socket
import statistics
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import openai

from benchmarks.tables import table
from benchmarks.timing import machine

_NOISE = {"hangs up": 0.1, "sends no JSON": 0.05, "sends too much": 0.05}  # shares of what clients do
_BODY = 200_000  # bytes of a body that are allowed
_SETTINGS = "\n".join(f'option_{number} = "value {number % 7}"' for number in range(16))
_ASKED = [
    f"Write this file again, with option_{number} set to true:\n\n{_SETTINGS}"
    if number % 2
    else f"Tell me about {name}."
    for number, name in enumerate(("rivers", "bread", "glass", "clocks", "wool", "bees", "salt", "bridges"))
]


@dataclass
class Seen:
    """What the clients have seen, and what the server's memory was."""

    ends: collections.Counter[str] = field(default_factory=collections.Counter)
    wrong: list[str] = field(default_factory=list)
    seconds: dict[str, list[float]] = field(default_factory=lambda: collections.defaultdict(list))
    answers: dict[str, str] = field(default_factory=dict)
    memory: list[int] = field(default_factory=list)

    def answer(self, messages: Any, text: str) -> None:
        """Compare an answer with those that the same messages got before."""
        if self.answers.setdefault(json.dumps(messages), text) != text:
            self.wrong.append(f"another answer to {messages[-1]['content'][:40]!r}")


def main() -> None:
    """Run the server and its clients, and print."""
    parser = argparse.ArgumentParser(description="A server under load: latencies, throughput, errors, memory.")
    parser.add_argument("--model", default="smollm2", help="as lookahead serve takes it")
    parser.add_argument("--clients", type=int, default=32, help="clients that ask at the same time")
    parser.add_argument("--seconds", type=float, default=180, help="how long they go on asking")
    parser.add_argument("--tokens", type=int, default=48, help="most tokens of an answer")
    parser.add_argument("--batch", type=int, default=8, help="most answers that the server decodes together")
    parser.add_argument("--max-cache", type=int, default=200_000_000, help="bytes of caches that it keeps")
    given = parser.parse_args()
    seen = Seen()
    with server(given) as (process, port):
        stop = threading.Event()
        watch = threading.Thread(target=watched, args=(process.pid, seen, stop))
        watch.start()
        started = time.monotonic()
        ends = started + given.seconds
        clients = [threading.Thread(target=ask, args=(given, port, ends, one, seen)) for one in range(given.clients)]
        for one in clients:
            one.start()
        for one in clients:
            one.join()
        took = time.monotonic() - started
        stop.set()
        watch.join()
        figures = metrics(port)
    report(given, seen, figures, took)


@contextlib.contextmanager
def server(given: argparse.Namespace) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Run a server until the block is left."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = int(one.getsockname()[1])
    options = {"model": given.model, "name": "served", "dtype": "float32", "batch": given.batch}
    options |= {"max-cache": given.max_cache, "max-body": _BODY, "log-level": "warning", "port": port}
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    with subprocess.Popen([sys.executable, "-m", "lookahead.cli", "serve", *words]) as process:
        try:
            while process.poll() is None:
                with contextlib.suppress(OSError):
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5)
                    break
                time.sleep(0.2)
            else:
                raise SystemExit("the server did not start; it says why above")
            yield process, port
        finally:
            process.terminate()


def ask(given: argparse.Namespace, port: int, ends: float, number: int, seen: Seen) -> None:
    """Be one client until the time is up."""
    chance = random.Random(number)
    with openai.OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="none", max_retries=0, timeout=600) as client:
        while time.monotonic() < ends:
            kind = chance.choices([*_NOISE, "asks"], [*_NOISE.values(), 1 - sum(_NOISE.values())])[0]
            try:
                if kind == "sends no JSON":
                    expect(seen, kind, port, b'{"model": "served", "messages": [', 400)
                elif kind == "sends too much":
                    expect(seen, kind, port, b" " * (2 * _BODY), 413)
                else:
                    talk(given, client, chance, f"client {number}", seen, ends, hangs_up=kind == "hangs up")
            except Exception as error:  # whatever a client may meet is what is looked for
                seen.wrong.append(f"{kind}: {type(error).__name__}: {error}"[:200])


def talk(
    given: argparse.Namespace,
    client: openai.OpenAI,
    chance: random.Random,
    user: str,
    seen: Seen,
    ends: float,
    hangs_up: bool,
) -> None:
    """Hold a conversation of two turns, half of them streamed, or hang up in the middle of the first."""
    messages: list[Any] = [{"role": "user", "content": chance.choice(_ASKED)}]
    for turn in ("first turn", "second turn"):
        if turn == "second turn" and time.monotonic() > ends:
            return
        asked = {"model": "served", "messages": messages, "max_tokens": given.tokens, "temperature": 0, "user": user}
        started, text = time.monotonic(), ""
        if hangs_up or chance.random() < 0.5:
            stream = client.chat.completions.create(**asked, stream=True)
            for part in stream:
                told = part.choices[0].delta.content or ""
                if told and not text:
                    seen.seconds[f"{turn}, first text"].append(time.monotonic() - started)
                text += told
                if hangs_up and text:
                    stream.close()
                    seen.ends["hangs up"] += 1
                    return
        else:
            text = client.chat.completions.create(**asked).choices[0].message.content or ""
        seen.seconds[f"{turn}, whole answer"].append(time.monotonic() - started)
        seen.ends["asks"] += 1
        seen.answer(messages, text)
        messages = [*messages, {"role": "assistant", "content": text}, {"role": "user", "content": "Say it again."}]


def expect(seen: Seen, kind: str, port: int, body: bytes, status: int) -> None:
    """Send a body that is to be refused."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    with contextlib.closing(connection):
        connection.request("POST", "/v1/chat/completions", body, {"Content-Type": "application/json"})
        found = connection.getresponse()
        found.read()
    seen.ends[kind] += 1
    if found.status != status:
        seen.wrong.append(f"{kind}: status {found.status} in place of {status}")


def watched(process: int, seen: Seen, stop: threading.Event) -> None:
    """Note the server's memory once a second."""
    while not stop.wait(1):
        lines = Path(f"/proc/{process}/status").read_text(encoding="utf-8").splitlines()
        seen.memory.append(int(next(line.split()[1] for line in lines if line.startswith("VmRSS"))) // 1024)


def metrics(port: int) -> dict[str, float]:
    """Return the server's own figures."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as response:
        lines = [line for line in response.read().decode().splitlines() if not line.startswith("#")]
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


def report(given: argparse.Namespace, seen: Seen, figures: dict[str, float], took: float) -> None:
    """Print what was seen."""
    print(
        f"{machine()}\n{given.model}, {given.clients} clients for {took:.0f} s, at most {given.batch} answers together"
    )
    print("\n" + table(["clients", "times"], [[kind, str(count)] for kind, count in sorted(seen.ends.items())]))
    rows = []
    for name, seconds in sorted(seen.seconds.items()):
        marks = np.quantile(seconds, (0.5, 0.95, 0.99)).tolist()
        rows.append([name, str(len(seconds)), *(f"{mark:.2f}" for mark in marks), f"{max(seconds):.2f}"])
    print("\n" + table(["seconds", "number", "50 %", "95 %", "99 %", "most"], rows))
    tokens, forwards = figures["lookahead_tokens_total"], figures["lookahead_forwards_total"]
    calls = figures["lookahead_answers_together_count"]
    third = len(seen.memory) // 3
    held = [statistics.median(part) for part in (seen.memory[third : 2 * third], seen.memory[2 * third :])]
    ends = {name.split('"')[1]: value for name, value in figures.items() if name.startswith("lookahead_answers_total")}
    print(
        "\n"
        + table(
            ["server", ""],
            [
                ["tokens per second", f"{tokens / took:.1f}"],
                ["tokens per forward, all rows", f"{tokens / forwards:.2f}"],
                ["answers per call", f"{figures['lookahead_answers_together_sum'] / calls:.2f}"],
                ["answers", ", ".join(f"{value:.0f} {name}" for name, value in sorted(ends.items()))],
                [
                    "prompt tokens cached",
                    f"{figures['lookahead_cached_tokens_total'] / figures['lookahead_prompt_tokens_total']:.0%}",
                ],
                ["memory, MB: median of the second and last third", f"{held[0]}, {held[1]}"],
            ],
        )
    )
    print(f"unexpected: {len(seen.wrong)}")
    for line, count in collections.Counter(seen.wrong).most_common(10):
        print(f"  {count} times: {line}")


if __name__ == "__main__":
    main()

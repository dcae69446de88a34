"""Many requests through one session under a cap: memory stays flat: ``python -m benchmarks.soak``.

Each request shows a piece of this Python's standard library (or goes on with the conversation before it, a third of the
time) and is answered with that piece, changed a little; no model runs.
"""

from __future__ import annotations

import argparse
import random
import resource
import sysconfig
import time
from pathlib import Path
from typing import Any

from benchmarks.timing import machine
from lookahead import Session
from lookahead.bench.replay import replay
from lookahead.hf import smollm2


def main() -> None:
    """Run the requests and print what memory they took, ten times on the way."""
    parser = argparse.ArgumentParser(description="Many requests through one session; memory stays flat.")
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--megabytes", type=int, default=32, help="the session's cap")
    given = parser.parse_args()
    print(machine())
    tokenizer = smollm2.load_tokenizer()
    session = Session(tokenizer, max_bytes=given.megabytes * 2**20, budget=32, cost="linear:0.03")
    texts, chance = pieces(tokenizer), random.Random(0)
    print("| requests | session, MB | process, MB | tokens per forward | ms per request |\n|---|---|---|---|---|")
    said, tokens, forwards, started = list[int](), 0, 0, time.perf_counter()
    for number in range(1, given.requests + 1):
        piece = chance.choice(texts)
        said = said + piece if said and chance.random() < 1 / 3 and len(said) < 20_000 else list(piece)
        answer = changed(piece, chance)
        drafter = session.drafter()
        tally = replay(drafter, said, answer, 32)
        drafter.end()
        said += answer
        tokens, forwards = tokens + tally.tokens, forwards + tally.forwards
        if session.nbytes > given.megabytes * 2**20:
            raise SystemExit(f"request {number}: the session has {session.nbytes} bytes, more than its cap")
        if number % max(1, given.requests // 10) == 0:
            millis = 1000 * (time.perf_counter() - started) / max(1, given.requests // 10)
            rows = [number, session.nbytes >> 20, resident() >> 20, f"{tokens / forwards:.2f}", f"{millis:.1f}"]
            print("| " + " | ".join(map(str, rows)) + " |", flush=True)
            tokens, forwards, started = 0, 0, time.perf_counter()


def pieces(tokenizer: Any) -> list[list[int]]:
    """Return pieces of the standard library's modules, a few hundred tokens each."""
    folder = Path(sysconfig.get_paths()["stdlib"])
    texts = [path.read_text("utf-8") for path in sorted(folder.glob("*.py"))]
    parts = [text[at : at + 2000] for text in texts for at in range(0, len(text) - 2000, 2000)]
    return [ids for ids in tokenizer(parts)["input_ids"] if ids]


def changed(piece: list[int], chance: random.Random) -> list[int]:
    """Return a piece with a few tokens changed, dropped or said twice."""
    found = list(piece)
    for _ in range(5):
        at = chance.randrange(len(found) - 3)
        found[at : at + chance.randrange(3)] = chance.choices(piece, k=chance.randrange(3))
    return found


def resident() -> int:
    """Return the process's memory now, in bytes; where the system does not tell, the most it ever was."""
    status = Path("/proc/self/statm")
    if status.exists():
        return int(status.read_text().split()[1]) * resource.getpagesize()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    main()

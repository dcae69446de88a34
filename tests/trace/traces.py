"""Traces made up for tests."""

from __future__ import annotations

import numpy as np

from lookahead import Draft
from lookahead.trace.record import Trace
from lookahead.trace.step import Step
from tests.vocabularies import SAMPLE

SOURCES = ("prompt", "output", "recycled", "prediction", "escaped")


def BYTES(tokens: list[int]) -> list[bytes]:
    """Return a byte for each token: several make a character, some make none."""
    return [bytes([token % 256]) for token in tokens]


def drafted(random: np.random.Generator, nodes: int) -> Draft:
    """Return a random tree; siblings differ."""
    parents = np.array([random.integers(max(-1, node - 3), node) for node in range(nodes)], np.int32)
    return Draft(
        tokens=np.arange(nodes, dtype=np.int32) + int(random.integers(0, 200)),
        parents=parents,
        probs=np.round(random.random(nodes), 3).astype(np.float32),
        sources=tuple(SOURCES[one] for one in random.integers(0, len(SOURCES), nodes)),
    )


def trace_of(seed: int, steps: int, rows: int = 1) -> Trace:
    """Return a random trace of some forwards over some rows."""
    random = np.random.default_rng(seed)
    trace = Trace([random.integers(0, 256, 5).tolist() for _ in range(rows)], pieces=BYTES, about={"model": "none"})
    for forward in range(1, steps + 1):
        times = random.integers(0, 10**6, 3) / 1e6
        for row in range(rows):
            draft = drafted(random, int(random.integers(0, 9)))
            path, at = list[int](), -1
            for node, parent in enumerate(draft.parents.tolist()):
                if parent == at and random.random() < 0.7:
                    path.append(node)
                    at = node
            places = np.where(random.random(len(draft)) < 0.2, -1, random.integers(0, 5, len(draft)))
            tokens = [*draft.tokens[path].tolist(), int(random.integers(0, 256))]
            trace.steps.append(Step(forward, row, draft, places, places + 1, tokens, path, *times.tolist()))
    return trace


def long_trace(tokens: int, seed: int = 0) -> Trace:
    """Return a trace of an output of some length that looks like an edit of code, and is quick to make."""
    random, words = np.random.default_rng(seed), SAMPLE.split(" ")
    text = [f"{word} ".encode() for word in words] + ["█ é ".encode(), b"\n"]
    prompt = [one % len(words) for one in range(5000)]
    trace = Trace([prompt], pieces=lambda ids: [text[one % len(text)] for one in ids], about={"model": "made up"})
    said, forward = 0, 0
    while said < tokens:
        forward += 1
        size = int(random.choice([0, 4, 20, 60])) if forward > 1 else 0
        kept = int(random.integers(0, size + 1))
        place = said % (len(prompt) - size)
        source = SOURCES[int(random.choice(len(SOURCES), p=[0.6, 0.15, 0.1, 0.1, 0.05]))]
        draft = Draft.chain(prompt[place : place + size], np.linspace(0.99, 0.5, size), source)
        places = np.arange(place, place + size)
        emitted = [*prompt[place : place + kept], int(random.integers(0, len(text)))]
        times = (0.0005, 0.03 + 0.001 * size, 0.0001) if forward > 1 else (0.002, 1.2, 0.0)
        trace.steps.append(Step(forward, 0, draft, places, places + 1, emitted, list(range(kept)), *times))
        said += len(emitted)
    return trace

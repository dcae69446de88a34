"""Time and size of a corpus on the disk: `python -m benchmarks.corpora --tokens 1000000`."""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.index import code_tokens
from benchmarks.timing import machine
from lookahead.index.static_corpus import Document, StaticCorpus, build

Tokens = NDArray[np.int32]
REAL = 2_000_000  # tokens of real code; more are made of these
DOCUMENT = 2_000
CHANGED = 0.02  # of the tokens of a copy, besides the order of its documents
QUERIES = 5_000


def stream(size: int) -> tuple[str, Tokens, Tokens]:
    """Return the tokenizer's name, `size` tokens of code, and others that were not built in.

    Real code is repeated until there is enough of it, each copy with 2 % other tokens.
    """
    name, real = code_tokens(min(size, REAL) + QUERIES)
    real, rest = real[:-QUERIES], real[-QUERIES:]
    draws = np.random.default_rng(0)
    copies = [real]
    while sum(copy.size for copy in copies) < size:
        changed = draws.random(real.size) < CHANGED
        copies.append(np.where(changed, draws.permutation(real), real))
    return name, np.concatenate(copies)[:size], rest


def documents(tokens: Tokens) -> Iterator[Document]:
    """Cut a stream into documents."""
    for begin in range(0, tokens.size, DOCUMENT):
        yield Document(f"{begin}.py", tokens[begin : begin + DOCUMENT])


def queries(corpus: StaticCorpus, rest: Tokens) -> dict[str, list[float]]:
    """Follow streams of new code and of code that is known, and time every question: microseconds."""
    draws = np.random.default_rng(1)
    known = [corpus.tokens[begin : begin + 50] for begin in draws.integers(0, len(corpus) - 50, QUERIES // 50)]
    times: dict[str, list[float]] = {"advance": [], "match": [], "candidates": []}
    for piece in (rest, *known):
        cursor = corpus.cursor()
        for token in piece[piece >= 0]:
            times["advance"].append(timed(partial(cursor.advance, np.full(1, token, np.int32))))
            times["match"].append(timed(partial(getattr, cursor, "match_length")))
            times["candidates"].append(timed(cursor.candidates))
    return {name: [1e6 * one for one in each] for name, each in times.items()}


def timed(call: Callable[[], object]) -> float:
    """Return the seconds of one call."""
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def opened(path: Path, is_cold: bool) -> float:
    """Return the median milliseconds of opening a corpus, of nine times, with its pages in memory or not."""
    times = []
    for _ in range(9):
        if is_cold:
            evict(path)
        times.append(timed(lambda: StaticCorpus.open(path)))
    return statistics.median(times) * 1e3


def evict(path: Path) -> None:
    """Have the system forget the pages of a file, where it can be asked to."""
    if hasattr(os, "posix_fadvise"):
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def main() -> None:
    """Build, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path, help="where the file goes for the time being")
    arguments = parser.parse_args()
    name, tokens, rest = stream(arguments.tokens)
    print(f"{machine()}; {tokens.size} tokens of code, {name}")
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        path = Path(folder) / "corpus.lkh"
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        seconds = timed(lambda: build(documents(tokens), path, "benchmark"))
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        warm, cold, corpus = opened(path, False), opened(path, True), StaticCorpus.open(path)
        beyond = (corpus.nbytes - 4 * tokens.size) / tokens.size
        print(f"build {seconds:.1f} s ({seconds / tokens.size * 1e9:.0f} ns/token), ", end="")
        print(f"peak memory {most / 2**20:.2f} GiB ({before / 2**20:.2f} GiB before)")
        print(f"{beyond:.2f} bytes/token beyond the tokens; open {warm:.2f} ms, {cold:.1f} ms from the disk")
        print(f"verify {timed(corpus.verify):.2f} s")
        queries(corpus, rest[:500])
        for what, times in queries(corpus, rest).items():
            print(f"{what}: " + ", ".join(f"p{q} {np.percentile(times, q):.1f} us" for q in (50, 90, 99)))


if __name__ == "__main__":
    main()

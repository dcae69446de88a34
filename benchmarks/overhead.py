"""What the loop costs where there is nothing to draft: ``python -m benchmarks.overhead``.

A prompt of random tokens and sampling at a high temperature: nothing repeats, so every forward gives one token, as in
plain `generate`. Both runs take the same number of forwards per token; what differs is the loop around them.
"""

from __future__ import annotations

import argparse
import functools
import statistics
import time
from typing import Any

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from benchmarks.timing import in_turns, machine, ratio
from lookahead import Lookahead
from lookahead.hf import smollm2

NEW_TOKENS = 32


def small_model() -> Any:
    """Return a model whose forward is so short that the loop around it shows: 2 layers, random weights."""
    config = LlamaConfig(
        vocab_size=32000, hidden_size=128, intermediate_size=256, num_hidden_layers=2, num_attention_heads=4
    )
    torch.manual_seed(0)
    return LlamaForCausalLM(config).eval()


def measure(name: str, model: Any, prompt_length: int, rounds: int) -> None:
    """Time both and print one line."""
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(1000, model.config.vocab_size, (1, prompt_length), generator=generator)
    model.generation_config.eos_token_id = None
    model.generation_config.pad_token_id = 0
    made: list[Lookahead] = []
    settings = {"max_new_tokens": NEW_TOKENS, "do_sample": True, "temperature": 3.0}
    outside: dict[str, list[float]] = {"generate": [], "lookahead": []}
    forward, inside = model.forward, [0.0]

    def timed(*args: Any, **kwargs: Any) -> Any:
        started = time.perf_counter()
        outputs = forward(*args, **kwargs)
        inside[0] += time.perf_counter() - started
        return outputs

    def run(key: str, custom: Lookahead | None) -> None:
        torch.manual_seed(2)
        inside[0], started = 0.0, time.perf_counter()
        model.generate(ids, custom_generate=custom, **settings)
        outside[key].append((time.perf_counter() - started - inside[0]) / NEW_TOKENS * 1e3)

    functools.update_wrapper(timed, forward)
    model.forward = timed

    def ahead() -> None:
        made.append(Lookahead())  # a new one remembers nothing of the rounds before
        run("lookahead", made[-1])

    runs = {"generate": lambda: run("generate", None), "lookahead": ahead}
    seconds = in_turns(runs, rounds)
    del model.forward
    middle, least, most = ratio(seconds["lookahead"], seconds["generate"])
    per_token = {key: statistics.median(values) / NEW_TOKENS * 1e3 for key, values in seconds.items()}
    around = {key: statistics.median(values) for key, values in outside.items()}
    print(
        f"{name}, prompt of {prompt_length} random tokens: generate {per_token['generate']:.2f} ms/token, lookahead "
        f"{per_token['lookahead']:.2f} ms/token, ratio {middle:.3f} ({least:.3f} to {most:.3f}, {rounds} pairs); "
        f"outside the forward {around['generate']:.2f} and {around['lookahead']:.2f} ms/token; "
        f"{made[-1].stats.forwards} forwards for {NEW_TOKENS} tokens, {made[-1].stats.drafted} tokens drafted"
    )


def first_call(model: Any) -> None:
    """Time the first and the second call of this process; plain `generate` has run before."""
    ids = torch.arange(1000, 1200)[None]
    settings = {"max_new_tokens": 8, "do_sample": False}
    model.generate(ids, **settings)
    seconds = []
    for _ in range(4):
        started = time.perf_counter()
        model.generate(ids, custom_generate=Lookahead(), **settings)
        seconds.append(time.perf_counter() - started)
    print(
        f"SmolLM2-135M, 8 tokens: the first call took {seconds[0]:.2f} s, later ones "
        f"{statistics.median(seconds[1:]):.2f} s (what differs: loading or compiling the kernels, the check for trees)"
    )


def main() -> None:
    """Measure on the real model and on one whose forward takes next to nothing."""
    parser = argparse.ArgumentParser(description="The loop's overhead against plain generate, nothing being drafted.")
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    print(machine())
    model = smollm2.load()[0]
    first_call(model)
    measure("SmolLM2-135M", model, 512, rounds)
    measure("2-layer model", small_model(), 512, 4 * rounds)


if __name__ == "__main__":
    main()

"""The demo's task by the clock: ``python -m benchmarks.rewrite``.

SmolLM2-135M-Instruct rewrites the demo's file, greedily: plain `generate`, stock prompt lookup with 10 and with 20
tokens, and lookahead, in turns. The outputs must be equal.
"""

from __future__ import annotations

import argparse
import statistics
from functools import partial
from typing import Any

import torch

from benchmarks.timing import in_turns, machine, ratio
from examples import rewriting
from lookahead import Lookahead


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description="SmolLM2 on the demo's task: generate, prompt lookup, lookahead.")
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    print(machine())
    model, tokenizer = rewriting.load("smollm2")
    inputs = rewriting.prompt(tokenizer, rewriting.FILE, rewriting.INSTRUCTION)
    outputs: dict[str, torch.Tensor] = {}
    made: list[Lookahead] = []
    forwards: dict[str, int] = {}

    def run(name: str, **settings: Any) -> None:
        count = [0]
        hook = model.register_forward_hook(lambda *_: count.__setitem__(0, count[0] + 1))
        outputs[name] = model.generate(**inputs, max_new_tokens=2048, do_sample=False, **settings)
        hook.remove()
        forwards[name] = count[0]

    def ahead() -> None:
        made.append(Lookahead(tokenizer))  # a new one remembers nothing of the rounds before
        run("lookahead", custom_generate=made[-1])

    runs = {
        "generate": partial(run, "generate"),
        "prompt lookup, 10 tokens": partial(run, "prompt lookup, 10 tokens", prompt_lookup_num_tokens=10),
        "prompt lookup, 20 tokens": partial(run, "prompt lookup, 20 tokens", prompt_lookup_num_tokens=20),
        "lookahead": ahead,
    }
    seconds = in_turns(runs, rounds)
    tokens = outputs["generate"].shape[1] - inputs["input_ids"].shape[1]
    print(f"prompt {inputs['input_ids'].shape[1]} tokens, answer {tokens} tokens, {rounds} rounds\n")
    print("| | seconds (median) | tokens per second | forwards | tokens per forward | lookahead is faster by |")
    print("|---|---|---|---|---|---|")
    for name, values in seconds.items():
        middle, least, most = ratio(values, seconds["lookahead"])
        print(
            f"| {name} | {statistics.median(values):.2f} | {tokens / statistics.median(values):.1f} | {forwards[name]} "
            f"| {tokens / forwards[name]:.2f} | {middle:.2f} ({least:.2f} to {most:.2f}) |"
        )
    same = [name for name, output in outputs.items() if torch.equal(output, outputs["generate"])]
    print(f"\nequal to generate: {', '.join(same)}")
    print(made[-1].stats.summary())
    if len(same) < len(outputs):
        raise SystemExit("some outputs differ")


if __name__ == "__main__":
    main()

"""Is it ever slower? ``python -m benchmarks.never_slower``.

SmolLM2 on text that is no copy, with little to gain: plain `generate` and lookahead, a forward of each in turns, same
seeds, equal outputs; each round with a new `Lookahead` that serves the texts one after the other, so that it knows none
of them. Then on the demo's edit: lookahead as it is against drafts of fixed lengths, all of them new in each round.
"""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any

import torch

from benchmarks.tables import spread
from benchmarks.timing import forward_by_forward, in_turns, machine, ratio
from lookahead import Lookahead
from lookahead.cli import rewriting
from lookahead.hf import smollm2

LENGTHS = (8, 16, 32, 64)
_CHATS = {
    "story, temperature 1": ("Write a story about a lighthouse keeper who finds a strange machine.", True),
    "chat, greedy": ("Why do leaves change their colour in autumn?", False),
    "translation, greedy": (
        "Translate into French: The committee met on Tuesday to discuss the new bridge, which had been closed since "
        "the storm. Nobody could say when it would open again, and the ferry was full.",
        False,
    ),
}


def texts(model: Any, tokenizer: Any) -> dict[str, tuple[torch.Tensor, bool]]:
    """Return prompts, int64 [1, length], and whether to sample."""
    generator = torch.Generator().manual_seed(0)
    noise = torch.randint(100, model.config.vocab_size, (1, 256), generator=generator)
    prompts = {"random prompt, temperature 1": (noise, True)}
    for name, (request, samples) in _CHATS.items():
        chat = [{"role": "user", "content": request}]
        text = tokenizer.apply_chat_template(chat, add_generation_prompt=True, tokenize=False)
        prompts[name] = tokenizer(text, add_special_tokens=False, return_tensors="pt")["input_ids"], samples
    return prompts


def novel(model: Any, tokenizer: Any, given: argparse.Namespace) -> None:
    """Time text that is no copy and print a table."""
    prompts = texts(model, tokenizer)
    seconds = {name: dict[str, list[float]](generate=[], lookahead=[]) for name in prompts}
    forwards = dict[str, float]()
    for round_ in range(-1, given.rounds):  # the first is not counted
        lookahead = Lookahead(tokenizer)
        for name, (ids, samples) in prompts.items():
            took = side_by_side(model, lookahead, ids, round_ % 2 == 0, given.tokens, samples)
            for way, one in took.items() if round_ >= 0 else ():
                seconds[name][way].append(one)
            forwards[name] = lookahead.stats.tokens_per_forward
    print("| text | tokens per forward | generate takes, times lookahead's time (least to greatest) |\n|---|---|---|")
    for name, found in seconds.items():
        over = spread(*ratio(found["generate"], found["lookahead"]), digits=3)
        print(f"| {name} | {forwards[name]:.2f} | {over} |")


def side_by_side(
    model: Any, lookahead: Lookahead, ids: torch.Tensor, begins: bool, tokens: int, samples: bool
) -> dict[str, float]:
    """Return the seconds of plain decoding and of lookahead, which begins or comes second, a forward of each in turns.

    Raises
    ------
    SystemExit
        Where their outputs differ.
    """
    ways = {"lookahead": lookahead, "generate": None} if begins else {"generate": None, "lookahead": lookahead}
    outputs = list[torch.Tensor]()

    def run(custom: Lookahead | None) -> None:
        call = {"max_new_tokens": tokens, "min_new_tokens": tokens, "do_sample": samples, "custom_generate": custom}
        outputs.append(model.generate(ids, attention_mask=torch.ones_like(ids), **call))

    torch.manual_seed(0)
    took = forward_by_forward(model, {way: partial(run, custom) for way, custom in ways.items()})
    if not torch.equal(*outputs):
        raise SystemExit(f"the outputs behind {ids.shape[1]} tokens differ")
    return took


def edit(model: Any, tokenizer: Any, given: argparse.Namespace) -> None:
    """Time the demo's edit with every fixed length and print a table."""
    inputs = rewriting.encode(tokenizer, rewriting.FILE.read_text("utf-8"), rewriting.INSTRUCTION)
    fixed = {f"fixed {size}": {"budget": size, "cost": "linear:0", "tree": False} for size in LENGTHS}
    made = dict[str, Lookahead]()

    def run(name: str, **options: Any) -> None:
        made[name] = Lookahead(tokenizer, **options)
        model.generate(**inputs, max_new_tokens=2048, do_sample=False, custom_generate=made[name])

    runs = {name: partial(run, name, **options) for name, options in {"lookahead": {}, **fixed}.items()}
    seconds = in_turns(runs, given.rounds)
    print("\n| edit | tokens per forward | takes, times lookahead's time (least to greatest) |\n|---|---|---|")
    for name, lookahead in made.items():
        over = spread(*ratio(seconds[name], seconds["lookahead"]), digits=3)
        print(f"| {name} | {lookahead.stats.tokens_per_forward:.2f} | {over} |")


def main() -> None:
    """Measure both."""
    parser = argparse.ArgumentParser(description="SmolLM2 where there is little to gain, and against fixed lengths.")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--tokens", type=int, default=128)
    given = parser.parse_args()
    print(machine() + "\n")
    model, tokenizer = smollm2.load()
    novel(model, tokenizer, given)
    edit(model, tokenizer, given)


if __name__ == "__main__":
    main()

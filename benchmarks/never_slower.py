"""Is it ever slower? ``python -m benchmarks.never_slower``.

SmolLM2 on text that is no copy, with little to gain: plain `generate` and lookahead in turns, same seeds, equal
outputs. Then on the demo's edit: lookahead as it is against drafts of fixed lengths.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from benchmarks.timing import in_turns, machine, ratio
from examples import rewriting
from lookahead import Lookahead

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


def novel(model: Any, tokenizer: Any, given: argparse.Namespace) -> None:
    """Time text that is no copy and print a table."""
    generator = torch.Generator().manual_seed(0)
    noise = torch.randint(100, model.config.vocab_size, (1, 256), generator=generator)
    prompts = {"random prompt, temperature 1": (noise, True)}
    for name, (request, samples) in _CHATS.items():
        chat = [{"role": "user", "content": request}]
        text = tokenizer.apply_chat_template(chat, add_generation_prompt=True, tokenize=False)
        prompts[name] = tokenizer(text, add_special_tokens=False, return_tensors="pt")["input_ids"], samples
    print("| text | tokens per forward | generate takes, times lookahead's time (least to greatest) |\n|---|---|---|")
    for name, (ids, samples) in prompts.items():
        lookahead, outputs = Lookahead(tokenizer), dict[str, torch.Tensor]()

        def run(which: str, ids: Any = ids, samples: bool = samples, outputs: Any = outputs, **settings: Any) -> None:
            torch.manual_seed(0)
            lengths = {"max_new_tokens": given.tokens, "min_new_tokens": given.tokens}
            mask = torch.ones_like(ids)
            outputs[which] = model.generate(ids, attention_mask=mask, do_sample=samples, **lengths, **settings)

        runs = {"generate": partial(run, "generate"), "lookahead": partial(run, "lookahead", custom_generate=lookahead)}
        seconds = in_turns(runs, given.rounds)
        if not torch.equal(outputs["generate"], outputs["lookahead"]):
            raise SystemExit(f"{name}: the outputs differ")
        middle, least, most = ratio(seconds["generate"], seconds["lookahead"])
        print(f"| {name} | {lookahead.stats.tokens_per_forward:.2f} | {middle:.3f} ({least:.3f} to {most:.3f}) |")


def edit(model: Any, tokenizer: Any, given: argparse.Namespace) -> None:
    """Time the demo's edit with every fixed length and print a table."""
    inputs = rewriting.prompt(tokenizer, rewriting.FILE, rewriting.INSTRUCTION)
    made = {"lookahead": Lookahead(tokenizer)} | {
        f"fixed {size}": Lookahead(tokenizer, budget=size, cost="linear:0", tree=False) for size in LENGTHS
    }
    runs: dict[str, Callable[[], object]] = {
        name: partial(model.generate, **inputs, max_new_tokens=2048, do_sample=False, custom_generate=lookahead)
        for name, lookahead in made.items()
    }
    seconds = in_turns(runs, given.rounds)
    print("\n| edit | tokens per forward | takes, times lookahead's time (least to greatest) |\n|---|---|---|")
    for name, lookahead in made.items():
        middle, least, most = ratio(seconds[name], seconds["lookahead"])
        print(f"| {name} | {lookahead.stats.tokens_per_forward:.2f} | {middle:.3f} ({least:.3f} to {most:.3f}) |")


def main() -> None:
    """Measure both."""
    parser = argparse.ArgumentParser(description="SmolLM2 where there is little to gain, and against fixed lengths.")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--tokens", type=int, default=128)
    given = parser.parse_args()
    print(machine() + "\n")
    model, tokenizer = rewriting.load("smollm2")
    novel(model, tokenizer, given)
    edit(model, tokenizer, given)


if __name__ == "__main__":
    main()

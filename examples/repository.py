"""Drafts from a repository that the prompt does not show: python -m examples.repository CORPUS [MODEL].

Make the corpus before: lookahead index examples/data -o data.lkh --tokenizer smollm2

FORCED ANSWER: a small model does not know this repository. Its real forwards run and are paid for, while a logits
processor lifts the tokens of a file that resembles one of the repository.
"""

from __future__ import annotations

import json
import sys

import torch

import lookahead
from examples.edit_agent import DATA, Forced
from lookahead.hf.loading import load


def wanted() -> str:
    """Return a file of the repository with some changes."""
    text = (DATA / "inventory.py").read_text(encoding="utf-8")
    for turn in json.loads((DATA / "inventory-turns.json").read_text(encoding="utf-8")):
        text = text.replace(turn["old_str"], turn["new_str"])
    return text


def main(corpus: str, name: str = "smollm2") -> tuple[int, int]:
    """Write a file without the corpus and with it, print what it gained, and return the forwards of both."""
    model, tokenizer = load(name)
    session = lookahead.Session(tokenizer, corpora=[corpus])
    prompt = tokenizer("Write the module inventory.py of our repository.\n\n", return_tensors="pt").to(model.device)
    answer = tokenizer(wanted(), add_special_tokens=False)["input_ids"]
    print("FORCED ANSWER: the text is recorded, the forwards and the times are real.")
    forwards = []
    for ahead in (lookahead.Lookahead(tokenizer), session.lookahead()):
        forced = [Forced(prompt["input_ids"].shape[1], answer)]
        settings = {"max_new_tokens": len(answer), "do_sample": False, "logits_processor": forced}
        out = model.generate(**prompt, **settings, custom_generate=ahead)
        assert torch.equal(out[0, -len(answer) :].cpu(), torch.tensor(answer))
        forwards.append(ahead.stats.forwards)
        print(f"{ahead.stats.summary()}; accepted from {dict(ahead.stats.accepted_by_source)}")
    return forwards[0], forwards[1]


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(*sys.argv[1:3])

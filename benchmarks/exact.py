"""How often outputs in half precision differ from plain decoding's, and what `exact=True` costs.

python -m benchmarks.exact --prompts 12
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import torch

from benchmarks.timing import machine
from lookahead import Lookahead
from lookahead.hf.smollm2 import load

_SOURCES = Path(__file__).parents[1] / "lookahead"


def prompts(tokenizer: Any, count: int) -> list[torch.Tensor]:
    """Return prompts that show the beginning of a file of this project and ask for it with comments."""
    found = []
    for path in sorted(_SOURCES.rglob("*.py"))[:count]:
        text = path.read_text(encoding="utf-8")[:1500]
        asked = [{"role": "user", "content": f"Write this file again, with every function documented:\n{text}"}]
        found.append(tokenizer.apply_chat_template(asked, add_generation_prompt=True, return_tensors="pt")["input_ids"])
    return found


def main() -> None:
    """Generate everything three times: plainly, with lookahead, with lookahead that is to be exact."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prompts", type=int, default=12)
    parser.add_argument("--tokens", type=int, default=96)
    parser.add_argument("--dtype", choices=["bfloat16", "float16", "float32"], default="bfloat16")
    arguments = parser.parse_args()
    model, tokenizer = load()
    model = model.to(getattr(torch, arguments.dtype))
    given = prompts(tokenizer, arguments.prompts)
    print(f"{machine()}\n\n| | outputs that differ | tokens per forward | seconds |\n|---|---|---|---|", flush=True)
    vanilla: list[torch.Tensor] = []
    for name in ("generate", "lookahead", "lookahead, exact=True"):
        differ = tokens = forwards = 0
        started = time.perf_counter()
        for place, ids in enumerate(given):
            ahead = Lookahead(tokenizer, exact="exact" in name)
            custom = None if name == "generate" else ahead
            output = model.generate(ids, max_new_tokens=arguments.tokens, do_sample=False, custom_generate=custom)
            if custom is None:
                vanilla.append(output)
                continue
            differ += not torch.equal(vanilla[place], output)
            tokens, forwards = tokens + ahead.stats.tokens, forwards + ahead.stats.forwards
        rate = f"{tokens / forwards:.2f}" if forwards else "1"
        print(f"| {name} | {differ} of {len(given)} | {rate} | {time.perf_counter() - started:.0f} |", flush=True)


if __name__ == "__main__":
    main()

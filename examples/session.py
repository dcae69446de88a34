"""Requests that share what was said: python -m examples.session [MODEL].

The second request asks for nearly what the first one asked for, the third for the same again. A `Session` remembers the
answers, so later ones are drafted from them; without a session nothing in a prompt tells what the answer will be.
"""

from __future__ import annotations

import sys
from typing import Any

import lookahead
from lookahead.hf.loading import load

REQUESTS = (
    "Write a Python function that adds two numbers, with a docstring. Write only code.",
    "Write a Python function that adds three numbers, with a docstring. Write only code.",
    "Write a Python function that adds two numbers, with a docstring. Write only code.",
)


def main(name: str = "smollm2") -> list[tuple[str, int, int]]:
    """Answer all requests, print what the session gained, and return answers with the forwards of both ways."""
    model, tokenizer = load(name)
    session, found = lookahead.Session(tokenizer), []
    for wanted in REQUESTS:
        alone, shared = lookahead.Lookahead(tokenizer), session.lookahead()
        answers = [answered(model, tokenizer, wanted, ahead) for ahead in (alone, shared)]
        assert answers[0] == answers[1]
        found.append((answers[1], alone.stats.forwards, shared.stats.forwards))
        print(f"{wanted}\n  alone: {alone.stats.summary()}\n  in the session: {shared.stats.summary()}")
    print(f"{session.nbytes} bytes are remembered; session.save(FILE) keeps them for another process")
    return found


def answered(model: Any, tokenizer: Any, wanted: str, ahead: lookahead.Lookahead) -> str:
    """Return the answer to a request."""
    chat = [{"role": "user", "content": wanted}]
    written = tokenizer.apply_chat_template(chat, add_generation_prompt=True, tokenize=False)
    inputs = tokenizer(written, add_special_tokens=False, return_tensors="pt").to(model.device)
    out = model.generate(**inputs, max_new_tokens=64, do_sample=False, custom_generate=ahead)
    return str(tokenizer.decode(out[0, inputs["input_ids"].shape[1] :], skip_special_tokens=True))


if __name__ == "__main__":
    main(*sys.argv[1:2])

"""A tool call that follows its schema, with and without lookahead: python -m examples.grammar_tool_call [MODEL].

Needs xgrammar. A grammar keeps a state, so each call of generate gets a logits processor of its own; lookahead asks it
for the same tokens in the same order as generate does, so the answers are the same.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import xgrammar
from xgrammar.contrib.hf import LogitsProcessor

import lookahead
from lookahead.hf.loading import load

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"const": "set_value"},
        "arguments": {
            "type": "object",
            "properties": {
                "path": {"enum": ["settings.env", "settings-test.env"]},
                "key": {"type": "string", "maxLength": 20},
                "value": {"type": "string", "maxLength": 20},
            },
            "required": ["path", "key", "value"],
            "additionalProperties": False,
        },
    },
    "required": ["name", "arguments"],
    "additionalProperties": False,
}
PROMPT = """settings.env:
```
SERVER_HOST=127.0.0.1
SERVER_PORT=8080
SERVER_WORKERS=4
```

Set SERVER_PORT to 9090 by a call such as
{"name": "set_value", "arguments": {"path": "settings.env", "key": "SERVER_HOST", "value": "0.0.0.0"}}"""


def main(name: str = "smollm2") -> tuple[str, str]:
    """Print the call that generate gives and that with lookahead, and return both."""
    model, tokenizer = load(name)
    chat = [{"role": "user", "content": PROMPT}]
    written = tokenizer.apply_chat_template(chat, add_generation_prompt=True, tokenize=False)
    inputs = tokenizer(written, add_special_tokens=False, return_tensors="pt").to(model.device)
    info = xgrammar.TokenizerInfo.from_huggingface(tokenizer, vocab_size=model.config.vocab_size)
    grammar = xgrammar.GrammarCompiler(info).compile_json_schema(json.dumps(SCHEMA), any_whitespace=False)
    ahead, answers = lookahead.Lookahead(tokenizer), []
    for ways in ({}, {"custom_generate": ahead}):
        processors = [LogitsProcessor(grammar)]  # new for each call
        out = model.generate(**inputs, **ways, max_new_tokens=128, do_sample=False, logits_processor=processors)
        answers.append(tokenizer.decode(out[0, inputs["input_ids"].shape[1] :], skip_special_tokens=True))
        print(answers[-1])
    print(ahead.stats.summary())
    return answers[0], answers[1]


if __name__ == "__main__":
    main(*sys.argv[1:2])

"""An agent that edits one file by str_replace calls, and what lookahead gains in each turn.

    python -m examples.edit_agent --model NAME_OR_FOLDER --file FILE "FIRST CHANGE" "SECOND CHANGE" [--write]
    python -m examples.edit_agent --forced [--compare]

FORCED ANSWERS: SmolLM2-135M writes no tool calls by itself. With --forced its real forwards run and are paid for, while
a logits processor lifts the next token of a recorded answer, so the edits are known beforehand and the times are real.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from pathlib import Path
from typing import Any

import torch
from transformers import LogitsProcessor

import lookahead
from lookahead.hf.loading import load

DATA = Path(__file__).parent / "data"
SYSTEM = """You edit files. Answer each request with one tool call, and nothing else:
<tool_call>
{"name": "str_replace", "arguments": {"path": "FILE", "old_str": "LINES THAT ARE THERE", "new_str": "NEW LINES"}}
</tool_call>
old_str has to occur in the file exactly once."""


class Forced(LogitsProcessor):
    """Lifts the next token of a recorded answer."""

    def __init__(self, start: int, answer: list[int]) -> None:
        self.start, self.answer = start, answer

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Change scores, float32 [1, vocabulary], in place."""
        scores[0, self.answer[input_ids.shape[1] - self.start]] += 1e4
        return scores


class Agent:
    """Asks a model for edits of one file, turn by turn."""

    def __init__(self, model: Any, tokenizer: Any, path: str, text: str) -> None:
        self.model, self.tokenizer, self.path, self.text = model, tokenizer, path, text
        self.ahead = lookahead.Lookahead(tokenizer)  # one object for all turns: it learns
        self.chat = [{"role": "system", "content": SYSTEM}]

    def ask(self, wanted: str, forced: str | None = None) -> tuple[dict[str, Any], str]:
        """Return the inputs of `generate` for the next turn, and what the user says in it."""
        shown = f"{self.path}:\n```\n{self.text}```\n\n{wanted}" if len(self.chat) == 1 else wanted
        self.chat.append({"role": "user", "content": shown})
        written = self.tokenizer.apply_chat_template(self.chat, add_generation_prompt=True, tokenize=False)
        inputs = self.tokenizer(written, add_special_tokens=False, return_tensors="pt").to(self.model.device)
        settings: dict[str, Any] = {**inputs, "max_new_tokens": 512, "do_sample": False}
        if forced is not None:
            answer = self.tokenizer(forced, add_special_tokens=False)["input_ids"]
            start = inputs["input_ids"].shape[1]
            settings |= {"max_new_tokens": len(answer), "logits_processor": [Forced(start, answer)]}
        return settings, wanted

    def answer(self, settings: dict[str, Any], **ways: Any) -> tuple[str, float]:
        """Return what the model says, and the seconds it took."""
        started = time.perf_counter()
        out = self.model.generate(**settings, **ways)
        seconds = time.perf_counter() - started
        return self.tokenizer.decode(out[0, settings["input_ids"].shape[1] :], skip_special_tokens=True), seconds

    def apply(self, said: str) -> str:
        """Apply the edit that was said to the text, and return what became of it."""
        self.chat.append({"role": "assistant", "content": said})
        found = re.search(r"<tool_call>\s*(\{.*\})\s*</tool_call>", said, re.DOTALL)
        try:
            edit = json.loads(found[1])["arguments"] if found else {}
            old, new = edit["old_str"], edit["new_str"]
        except (ValueError, KeyError, TypeError):
            return "no str_replace call"
        if self.text.count(old) != 1:
            return f"old_str occurs {self.text.count(old)} times"
        self.text = self.text.replace(old, new)
        return "applied"


def main(arguments: list[str] | None = None) -> str:
    """Run all turns, print what each of them gained, and return the edited text."""
    given = parsed(arguments)
    model, tokenizer = load(given.model)
    turns = json.loads((DATA / "inventory-turns.json").read_text(encoding="utf-8")) if given.forced else None
    path = DATA / "inventory.py" if turns else given.file
    agent = Agent(model, tokenizer, path.name, path.read_text(encoding="utf-8"))
    if turns:
        print("FORCED ANSWERS: the edits are recorded, the forwards and the times are real.")
    for number, wanted in enumerate([turn["instruction"] for turn in turns] if turns else given.change):
        settings, wanted = agent.ask(wanted, call(path.name, turns[number]) if turns else None)
        plain = agent.answer(settings) if given.compare else None
        said, seconds = agent.answer(settings, custom_generate=agent.ahead)
        print(
            f"turn {number + 1}: {wanted}\n  {agent.apply(said)}; {agent.ahead.stats.summary()}; {seconds:.1f} s in all"
        )
        if plain:
            same = "the same answer" if plain[0] == said else "ANOTHER answer"
            print(f"  plain generate: {same} in {plain[1]:.1f} s, {plain[1] / seconds:.1f} times as long")
    if given.write and not turns:
        path.write_text(agent.text, encoding="utf-8")
    return agent.text


def call(path: str, turn: dict[str, str]) -> str:
    """Return a recorded edit as a model would write it."""
    edit = {"path": path, "old_str": turn["old_str"], "new_str": turn["new_str"]}
    return f"<tool_call>\n{json.dumps({'name': 'str_replace', 'arguments': edit})}\n</tool_call>"


def parsed(arguments: list[str] | None) -> argparse.Namespace:
    """Return what was given on the command line."""
    parser = argparse.ArgumentParser(description="Edit a file by str_replace calls, turn by turn.")
    parser.add_argument("change", nargs="*", help="what to change, one for each turn")
    parser.add_argument("--model", default="smollm2", help="a model's folder, its name on the hub, or smollm2")
    parser.add_argument("--file", type=Path, help="the file to edit")
    parser.add_argument("--write", action="store_true", help="save the edited file")
    parser.add_argument("--forced", action="store_true", help="recorded edits of a file of the example")
    parser.add_argument("--compare", action="store_true", help="ask plain generate as well")
    given = parser.parse_args(arguments)
    if not given.forced and not (given.file and given.change):
        parser.error("give --file FILE and what to change, or --forced")
    return given


if __name__ == "__main__":
    main()

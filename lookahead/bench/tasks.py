"""Edit tasks as prompts and answers, in the formats that agents write."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["FORMATS", "Edit", "answer", "encode", "forms", "ids_of", "read_edits", "read_lines", "render", "request"]

FORMATS = ("whole file", "numbered", "indent", "json", "replace", "diff", "blocks")
_FENCES = {".py": "python", ".js": "javascript", ".go": "go", ".rs": "rust", ".md": "markdown"}
_SYSTEM = "You are a careful programmer. You change files exactly as asked and keep everything else as it is."
_REQUESTS = {
    "whole file": "Write the whole new file in a fence.",
    "numbered": "Write the whole new file in a fence, without line numbers.",
    "indent": "Write the whole new file in a fence.",
    "json": "Call the tool write_file with the path and the whole new content.",
    "replace": "Call the tool str_replace once for each place to change.",
    "diff": "Answer with a unified diff.",
    "blocks": "Answer with SEARCH/REPLACE blocks.",
}


@dataclass(frozen=True)
class Edit:
    """One change of one file."""

    path: str
    instruction: str
    before: str
    after: str
    kind: str = ""  # of a refactoring

    @property
    def fence(self) -> str:
        """The name of the language as it stands behind a fence."""
        return _FENCES.get(Path(self.path).suffix, Path(self.path).suffix.lstrip("."))


def read_edits(path: Path) -> Iterator[Edit]:
    """Read a file of JSON objects with path, instruction, before and after, one on each line."""
    for given in read_lines(
        path, ("path", "instruction", "before", "after"), "give them, as benchmarks.mine_edits does"
    ):
        yield Edit(given["path"], given["instruction"], given["before"], given["after"], given.get("kind", ""))


def read_lines(path: Path, names: Sequence[str], then: str) -> Iterator[dict[str, Any]]:
    """Read a file of JSON objects, one on each line, that have some names; `then` says what to do where one lacks them.

    Raises
    ------
    ValueError
        For a file that cannot be read, and for a line that is none of these.
    """
    try:
        lines = path.read_text(encoding="utf-8").split("\n")  # a text may hold what else parts lines, as U+2028
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} cannot be read ({error}); give a file of JSON lines in UTF-8") from error
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            given = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path}:{number} is not JSON ({error}); a line is an object") from error
        missing = [name for name in names if not isinstance(given, dict) or name not in given]
        if missing:
            raise ValueError(f"{path}:{number} lacks {', '.join(missing)}; {then}")
        yield given


def forms(edit: Edit, form: str, tokenizer: Any) -> list[list[int]]:
    """Return the ids of the file before the edit as an answer of this format would write it."""
    text = _ended(edit.before)
    if form in ("json", "replace"):
        texts = [json.dumps(text)]
    elif form == "diff":
        texts = ["".join(sign + line for line in text.splitlines(keepends=True)) for sign in " -+"]
    else:
        texts = [text]
    return [ids_of(one, tokenizer) for one in texts]


def render(edit: Edit, form: str, tokenizer: Any, others: Sequence[Edit] = ()) -> tuple[list[int], list[int]]:
    """Return the ids of the prompt, in the model's chat template, and of the answer; other files come first."""
    return encode([request(edit, form, (*others, edit))], tokenizer), ids_of(answer(edit, form), tokenizer)


def encode(said: Sequence[str], tokenizer: Any) -> list[int]:
    """Return the ids of a chat, the user's words and the assistant's in turn, up to where the assistant answers.

    Tokenizers without a chat template get the words one below the other; some templates know no system.
    """
    roles = ("user", "assistant")
    chat = [{"role": roles[number % 2], "content": words} for number, words in enumerate(said)]
    if not getattr(tokenizer, "chat_template", None):
        return ids_of("\n\n".join([_SYSTEM, *said, ""]), tokenizer)
    try:
        system = [{"role": "system", "content": _SYSTEM}]
        text = tokenizer.apply_chat_template([*system, *chat], tokenize=False, add_generation_prompt=True)
    except Exception:  # whatever a template raises by itself
        text = tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
    return ids_of(text, tokenizer)


def ids_of(text: str, tokenizer: Any) -> list[int]:
    """Return the ids of a text, without the marks that some tokenizers put around whole texts."""
    ids: list[int] = tokenizer(text, add_special_tokens=False)["input_ids"]
    return ids


def request(edit: Edit, form: str, shown: Sequence[Edit]) -> str:
    """Return what the user asks for, with the files of some edits as they are before."""
    files = "\n\n".join(f"{one.path}\n```{one.fence}\n{_shown(one.before, form)}```" for one in shown)
    return "\n\n".join(filter(None, (edit.instruction, _REQUESTS[form], files)))


def _shown(text: str, form: str) -> str:
    """Return the file as the prompt shows it."""
    lines = _ended(text).splitlines(keepends=True)
    if form == "numbered":
        return "".join(f"{number:6d}\t{line}" for number, line in enumerate(lines, 1))
    if form == "indent":
        return "".join(f"    {line}" if line.strip() else line for line in lines)
    return _ended(text)


def answer(edit: Edit, form: str) -> str:
    """Return what the model is to write."""
    if form in ("whole file", "numbered", "indent"):
        return f"```{edit.fence}\n{_ended(edit.after)}```"
    if form == "json":
        return _call("write_file", path=edit.path, content=edit.after)
    if form == "diff":
        old, new = _ended(edit.before).splitlines(keepends=True), _ended(edit.after).splitlines(keepends=True)
        return "```diff\n" + "".join(difflib.unified_diff(old, new, f"a/{edit.path}", f"b/{edit.path}")) + "```"
    if form == "replace":
        return "\n".join(_call("str_replace", path=edit.path, old_str=old, new_str=new) for old, new in _hunks(edit))
    return "\n".join(
        f"{edit.path}\n```{edit.fence}\n<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE\n```"
        for old, new in _hunks(edit)
    )


def _hunks(edit: Edit) -> Iterator[tuple[str, str]]:
    """Yield each changed place with two lines of context, before and after."""
    old, new = _ended(edit.before).splitlines(keepends=True), _ended(edit.after).splitlines(keepends=True)
    for group in difflib.SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(2):
        yield "".join(old[group[0][1] : group[-1][2]]), "".join(new[group[0][3] : group[-1][4]])


def _call(name: str, **arguments: str) -> str:
    """Return a tool call as Qwen and Hermes models write it."""
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


def _ended(text: str) -> str:
    """Return the text with a newline at its end."""
    return text if text.endswith("\n") else text + "\n"

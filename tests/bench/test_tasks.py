"""What a task's prompt and answer hold, whatever the tokenizer puts around texts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tokenizers import processors
from transformers import PreTrainedTokenizerFast

from lookahead.bench.tasks import FORMATS, Edit, answer, read_edits, render
from tests.vocabularies import SAMPLE, vocabulary

EDIT = Edit("basket.py", "Rename result to amount.", SAMPLE, SAMPLE.replace("result", "amount"))
TEMPLATE = "{% for one in messages %}[{{ one.role }}]{{ one.content }}{% endfor %}[assistant]"
NO_SYSTEM = "{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}" + TEMPLATE


def marking(template: str | None) -> Any:
    """Return a tokenizer that puts a mark before and behind texts, as many do."""
    kept = vocabulary("byte_level")
    backend = type(kept.backend_tokenizer).from_str(kept.backend_tokenizer.to_str())
    backend.post_processor = processors.TemplateProcessing(single="<eos> $A <eos>", special_tokens=[("<eos>", 1)])
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, unk_token="<unk>", eos_token="<eos>", chat_template=template
    )


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("template", [None, TEMPLATE, NO_SYSTEM])
def test_prompt_and_answer_are_the_texts_and_nothing_else(form: str, template: str | None) -> None:
    tokenizer = marking(template)
    prompt, written = render(EDIT, form, tokenizer)
    assert tokenizer.eos_token_id not in prompt + written
    assert tokenizer.decode(written) == answer(EDIT, form)
    text = tokenizer.decode(prompt)
    assert EDIT.instruction in text
    assert text.endswith("[assistant]" if template else "```\n\n")
    assert ("careful" in text) == (template != NO_SYSTEM)
    assert "def total(items):" in text


def test_a_line_that_lacks_something_is_named(tmp_path: Path) -> None:
    file = tmp_path / "tasks.jsonl"
    file.write_text('{"path": "a.py", "before": "x"}\n')
    with pytest.raises(ValueError, match="tasks.jsonl:1 lacks instruction, after; give them"):
        list(read_edits(file))
    for text, says in ((b"\n[1]\n", "tasks.jsonl:2 lacks path"), (b"{", "1 is not JSON"), (b"\xff", "cannot be read")):
        file.write_bytes(text)
        with pytest.raises(ValueError, match=says):
            list(read_edits(file))
    with pytest.raises(ValueError, match="none.jsonl cannot be read"):
        list(read_edits(tmp_path / "none.jsonl"))


def test_texts_may_hold_whatever_else_parts_lines(tmp_path: Path) -> None:
    file, text = tmp_path / "tasks.jsonl", "a\u2028b\x85c\x1ed\r\n\x0c"
    row = {"path": "a.js", "instruction": "Do it", "before": text, "after": text + "x"}
    file.write_text(2 * (json.dumps(row, ensure_ascii=False) + "\n"), encoding="utf-8")
    assert [(edit.before, edit.after) for edit in read_edits(file)] == [(text, text + "x")] * 2

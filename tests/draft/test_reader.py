"""The drafter through surface forms: whatever the form, a copy of what the prompt holds is found."""

from __future__ import annotations

import difflib
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookahead import Drafter
from tests.vocabularies import KINDS, SAMPLE, vocabulary

NUMBERED = "".join(f"{number:6d}\t{line}" for number, line in enumerate(SAMPLE.splitlines(True), 1))
INDENTED = "".join(f"    {line}" if line.strip() else line for line in SAMPLE.splitlines(True))
JSON = json.dumps({"path": "basket.py", "content": SAMPLE})
CHANGED = SAMPLE.replace("item.price", "item.net_price")


def sources(drafter: Drafter, prompt: str, answer: str, kind: str = "byte_level", budget: int = 32) -> dict[str, int]:
    """Replay an answer; return how many tokens were accepted from each source, and under "model" all others."""
    tokenizer = vocabulary(kind)
    ids = tokenizer(answer, add_special_tokens=False)["input_ids"]
    drafter.begin(tokenizer(prompt, add_special_tokens=False)["input_ids"])
    found: dict[str, int] = {}
    while ids:
        draft = drafter.propose(budget)
        path = draft.follow(ids)
        for node in path:
            found[draft.sources[node]] = found.get(draft.sources[node], 0) + 1
        found["model"] = found.get("model", 0) + (len(path) < len(ids))
        drafter.accept(ids[: len(path) + 1])
        ids = ids[len(path) + 1 :]
    return found


@pytest.mark.parametrize("kind", ["byte_level", "sentence_piece"])
@pytest.mark.parametrize(
    ("prompt", "answer"),
    [
        (f"Change it:\n```python\n{NUMBERED}```\n", f"```python\n{SAMPLE}```"),
        (f"Change it:\n```python\n{INDENTED}```\n", f"```python\n{SAMPLE}```"),
        (f"Tool result:\n{JSON}\nChange it.\n", f"```python\n{SAMPLE}```"),
        (f"Change it:\n```python\n{SAMPLE}```\n", f"<tool_call>\n{JSON}\n</tool_call>"),
        (f"Change it:\n```python\n{NUMBERED}```\n", f"<tool_call>\n{JSON}\n</tool_call>"),
        (f"Change it:\n```python\n{SAMPLE}```\n", f'{{"arguments": {json.dumps(JSON)}}}'),
    ],
    ids=["numbered", "indented", "json read", "json written", "numbered to json", "json in json"],
)
def test_a_copy_in_another_form_is_found(kind: str, prompt: str, answer: str) -> None:
    found = sources(Drafter(vocabulary(kind)), prompt, answer, kind)
    blind = sources(Drafter(), prompt, answer, kind)
    assert sum(count for source, count in found.items() if source.startswith("view:")) > found["model"]
    assert found["model"] * 2 < blind["model"]


@pytest.mark.parametrize("kind", ["byte_level", "sentence_piece"])
@pytest.mark.parametrize(
    ("answer", "source"),
    [
        (NUMBERED, "view:numbered"),
        (f"text = {SAMPLE!r}\n", "view:single"),
        (f"text = {json.dumps(SAMPLE)}\n", "view:json_ascii"),
        (f'[write_file(path="basket.py", text={json.dumps(SAMPLE)})]', "view:json_ascii"),
        (json.dumps({"result": JSON}), "view:json2"),
    ],
    ids=["a listing alone", "a literal", "a literal in double quotes", "a call without JSON", "json in json"],
)
def test_a_form_is_found_without_a_word_that_opens_it(kind: str, answer: str, source: str) -> None:
    prompt = f"Change it:\n```python\n{SAMPLE}```\n"
    found = sources(Drafter(vocabulary(kind)), prompt, answer, kind)
    assert found[source] > found["model"]


def test_strings_of_other_text_have_nothing_written() -> None:
    prompt = f"Change it:\n```python\n{SAMPLE}```\n"
    _, sizes = held(
        prompt, "x\n", 'a = "one line of it\\n"', "'another\\n'\n", "    def render(self, width):\\n", "\\n"
    )
    assert (np.diff(sizes) < 30).all()


TABS = SAMPLE.replace("    ", "\t")


@pytest.mark.parametrize(
    ("source", "answer"),
    [
        (SAMPLE, "".join(f"\t{line}" for line in SAMPLE.splitlines(True))),
        (TABS, "".join(f"\t{line}" for line in TABS.splitlines(True))),
    ],
    ids=["of spaces", "of tabs"],
)
def test_lines_that_are_shifted_by_a_tab_are_found(source: str, answer: str) -> None:
    found = sources(Drafter(vocabulary("byte_level")), f"Move it:\n```python\n{source}```\n", answer)
    assert found["view:indented_1t"] > found["model"]


def test_a_diff_that_adds_a_copy_of_a_file_is_found_and_of_another_file_has_nothing_written() -> None:
    lines = FILE.splitlines(True)
    prompt, head = f"a.py\n```python\n{FILE}```\n", f"--- /dev/null\n+++ b/b.py\n@@ -0,0 +1,{len(lines)} @@\n"
    found = sources(Drafter(vocabulary("byte_level")), prompt, head + "".join(f"+{line}" for line in lines))
    assert found["view:added"] > 4 * found["model"]
    _, sizes = held(prompt, head, "+import os\n", "+\n", "+def something_else():\n")
    assert (np.diff(sizes) < 30).all()


@pytest.mark.parametrize("first", [1, 7, 95])
@pytest.mark.parametrize("mark", ["{:6d}\t", "{:3d} | ", "{}\t", "{:5d}: "])
def test_a_listing_is_found_whatever_its_numbers_and_their_padding(mark: str, first: int) -> None:
    lines = list(enumerate(SAMPLE.splitlines(True), first))
    answer = "".join(mark.format(number + (number > first + 6)) + line for number, line in lines)  # one was inserted
    found = sources(Drafter(vocabulary("byte_level")), f"Show it:\n```python\n{SAMPLE}```\n", answer)
    assert found["view:numbered"] > 2 * found["model"]


def test_a_listing_whose_numbers_jump_at_every_line_costs_a_bounded_number_of_lines() -> None:
    answer = [f"{7 * number}\t{line}" for number, line in enumerate(FILE.splitlines(True))]
    _, sizes = held(f"Show it:\n```python\n{FILE * 9}```\n", *answer)
    assert (np.diff(sizes) < 60).all(), "lines that stand in several places do not say where they are from"
    _, sizes = held(f"Show it:\n```python\n{FILE}```\n", *answer)
    assert np.diff(sizes).max() < 20 * 32


@pytest.mark.parametrize("columns", [8, -4])
def test_a_passage_that_the_answer_indents_otherwise_is_found(columns: int) -> None:
    lines = SAMPLE.splitlines(True)
    shifted = [" " * columns + line if line.strip() else line for line in lines]
    answer = "".join(shifted if columns > 0 else [line.removeprefix(" " * -columns) for line in lines])
    prompt = f"Move it:\n```python\n{SAMPLE}```\n"
    found = sources(Drafter(vocabulary("byte_level")), prompt, answer)
    assert found["model"] * 2 < sources(Drafter(), prompt, answer)["model"]


def test_a_diff_is_followed_with_its_signs_and_hunks() -> None:
    old, new = SAMPLE.splitlines(True), CHANGED.splitlines(True)
    diff = "".join(difflib.unified_diff(old, new, "a/basket.py", "b/basket.py"))
    prompt, answer = f"basket.py\n```python\n{SAMPLE}```\n", f"```diff\n{diff}```"
    found = sources(Drafter(vocabulary("byte_level")), prompt, answer)
    assert found["view:context"] > 0 and found["view:removed"] > 0 and found["format"] > 0
    assert found["model"] < sources(Drafter(), prompt, answer)["model"]


def test_what_is_replaced_is_repeated() -> None:
    old, new = SAMPLE[:120], SAMPLE[:120].replace("prices", "totals")
    prompt = f"basket.py\n```python\n{SAMPLE}```\n"
    block = f"<<<<<<< SEARCH\n{old}\n=======\n{new}\n>>>>>>> REPLACE\n"
    ids = vocabulary("byte_level")(block, add_special_tokens=False)["input_ids"]
    again = len(
        vocabulary("byte_level")(block.split("=======\n")[0] + "=======\n", add_special_tokens=False)["input_ids"]
    )
    drafter = Drafter(vocabulary("byte_level"))
    drafter.begin(prompt)
    drafter.accept(ids[:again])
    assert drafter.propose(32).follow(ids[again:])


def test_names_that_changed_twice_are_drafted_under_the_new_name() -> None:
    answer = SAMPLE.replace("items", "goods")
    prompt = f"Rename items to goods.\n```python\n{SAMPLE}```\n"
    found = sources(Drafter(vocabulary("byte_level")), prompt, f"```python\n{answer}```")
    assert found["view:renamed"] > 0


def test_a_prediction_is_drafted_from_at_once_and_after_a_fence() -> None:
    tokenizer = vocabulary("byte_level")
    drafter = Drafter(tokenizer)
    ids = tokenizer(SAMPLE, add_special_tokens=False)["input_ids"]
    drafter.begin("Write a basket.", prediction=SAMPLE)
    draft = drafter.propose(16)
    assert draft.tokens[draft.follow(ids)].tolist() == ids[: len(draft.follow(ids))] != []
    assert set(draft.sources) == {"prediction"}
    drafter.begin("Write a basket.", prediction=ids)
    fence = tokenizer("```python\n", add_special_tokens=False)["input_ids"]
    drafter.accept(fence)
    assert drafter.propose(16).follow(ids)


def test_a_prediction_without_a_tokenizer() -> None:
    drafter = Drafter()
    drafter.begin([1, 2, 3], prediction=[7, 8, 9, 10])
    assert drafter.propose(3).tokens.tolist() == [7, 8, 9]
    with pytest.raises(ValueError, match="tokenizer"):
        drafter.begin([1, 2, 3], prediction="text")


@given(
    st.sampled_from(KINDS),
    st.lists(
        st.sampled_from([SAMPLE, NUMBERED, JSON, "```\n", "\n@@ -1,3 +1,4 @@\n", "é\u4e2d", "> a\n", " "]), max_size=4
    ),
    st.lists(
        st.sampled_from([SAMPLE[:200], JSON[:200], "<tool_call>", "```diff\n", "@@ -1,3 +", "1,4 @@\n", "é", "\n"]),
        max_size=9,
    ),
    st.sampled_from([None, 65_536]),
)
def test_any_text_may_come(kind: str, prompt: list[str], answer: list[str], max_bytes: int | None) -> None:
    tokenizer = vocabulary(kind)
    drafter = Drafter(tokenizer, max_bytes=max_bytes)
    drafter.begin(tokenizer("".join(prompt), add_special_tokens=False)["input_ids"])
    for piece in answer:
        draft = drafter.propose(24)
        assert len(draft) <= 24
        assert (draft.parents < np.arange(len(draft))).all()
        drafter.accept(tokenizer(piece, add_special_tokens=False)["input_ids"])


def test_hints_of_text_that_was_evicted_meanwhile() -> None:
    lines = [f"name_{number} = {number * 7919 % 1000:04d} + other_{number * 31 % 97}\n" for number in range(160)]
    tokenizer = vocabulary("byte_level")
    drafter = Drafter(tokenizer, max_bytes=65_536)
    drafter.begin("a.py\n```python\n" + "".join(lines) + "```\n", prediction="never said at all\n" * 9)
    for piece in (
        '"old_str": "abc", ',
        '"new_str": "x\n+@@ -1,3 +1,4 @@\n',
        "".join(lines[:90]),
        "x\n",
        "@@ -3,4 +",
        "y\n",
    ) * 3:
        drafter.accept(tokenizer(piece, add_special_tokens=False)["input_ids"])
        drafter.propose(32)


def test_renaming_everything_costs_little_more_than_its_text() -> None:
    tokenizer = vocabulary("byte_level")
    source = [f"value_{number}x = compute(old_{number}a, old_{number}a)\n" for number in range(200)]
    drafter = Drafter(tokenizer)
    drafter.begin("a.py\n```python\n" + "".join(source) + "```\n")
    size = len(drafter._corpus)
    ids = tokenizer("".join(source).replace("old_", "new_"), add_special_tokens=False)["input_ids"]
    while ids:
        taken = len(drafter.propose(32).follow(ids)) + 1
        drafter.accept(ids[:taken])
        ids = ids[taken:]
    assert len(drafter._corpus) < 12 * size


def held(prompt: str, *answer: str) -> tuple[Drafter, list[int]]:
    """Replay an answer in pieces; return the drafter and the size of its corpus after each piece."""
    tokenizer = vocabulary("byte_level")
    drafter, sizes = Drafter(tokenizer), list[int]()
    drafter.begin(prompt)
    for piece in answer:
        drafter.propose(8)
        drafter.accept(tokenizer(piece, add_special_tokens=False)["input_ids"])
        sizes.append(len(drafter._corpus))
    return drafter, sizes


FILE = "".join(f"value_{number} = compute({number} * 7)\n" for number in range(200))


def test_of_a_large_file_only_the_lines_of_a_hunk_are_written() -> None:
    prompt = f"big.py\n```python\n{FILE}```\n"
    _, sizes = held(prompt, "```diff\n--- a/big.py\n+++ b/big.py\n", "@@ -", "99,4 +99,4 @@\n")
    written = np.diff(sizes)
    whole = len(vocabulary("byte_level")(FILE, add_special_tokens=False)["input_ids"])
    assert written[0] < 10, "nothing is written before the header's numbers are known"
    assert 10 < written[1] < whole


@pytest.mark.parametrize("header", ["@@ -9,3 +9,3 @@\n", "@@ def main():\n", "@@ -190,3 +190,3 @@\n"])
def test_a_header_that_counts_wrongly_costs_one_line(header: str) -> None:
    lines = FILE.splitlines(True)
    prompt, answer = f"big.py\n```python\n{FILE}```\n", ["```diff\n", header, f" {lines[98]}", f" {lines[99]}"]
    drafter, _ = held(prompt, *answer)
    ids = vocabulary("byte_level")(f" {lines[100]} {lines[101]}", add_special_tokens=False)["input_ids"]
    assert len(drafter.propose(8).follow(ids)) > 4


def test_an_assignment_in_code_is_taken_for_a_file_only_once_it_holds_lines() -> None:
    prompt = f"big.py\n```python\n{FILE}```\n"
    _, sizes = held(prompt, "x\n", 'content = "a"\n', 'content = "', "value_0", ' = compute(0 * 7)\\n"')
    written = np.diff(sizes)
    assert (written[:3] < 30).all()
    assert written[3] > 1000

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookahead.views.pairs import PAIRS
from lookahead.views.skeletons import named_blocks, skeletons


@pytest.mark.parametrize("line", ["src/app.py", "`src/app.py`", "**src/app.py**:", "File: src/app.py:", "# src/app.py"])
def test_a_path_right_before_a_fence_names_its_block(line: str) -> None:
    text = f"Change this.\n{line}\n```python\nx = 'other/file.py'\n```\n"
    assert [path for _, path in named_blocks(text)] == ["src/app.py"]
    assert text[named_blocks(text)[0][0] :].startswith("\n```python")


def test_a_fence_without_a_path_before_it_names_nothing() -> None:
    assert named_blocks("Look at src/app.py, please.\n\n```\nx\n```\nsrc/app.py is it\n```\n") == []


def test_skeletons_name_the_last_two_files_the_latest_last() -> None:
    said = skeletons(["a.py", "b.py", "a.py", "c.py"])
    assert any("+++ b/c.py\n" in each for each in said) and any('"path": "a.py"' in each for each in said)
    assert not any("b.py" in each for each in said)
    assert "c.py" in said[-1]
    assert any("--- a/file\n" in each for each in skeletons([]))


@given(st.text(alphabet="ab/.`\n{} ", max_size=80))
def test_any_text_may_come(text: str) -> None:
    blocks = named_blocks(text)
    assert all(text[at:].startswith("\n```") and path in text[:at] for at, path in blocks)
    skeletons([path for _, path in blocks])


def test_pairs_are_two_different_openings_and_second_ones_are_unique() -> None:
    assert all(first != second for first, second in PAIRS)
    assert len({second for _, second in PAIRS}) == len(PAIRS)
    assert ('\\"old_str\\":\\"', '\\"new_str\\":\\"') in PAIRS

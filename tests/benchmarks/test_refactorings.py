"""What each refactoring does to a module, to the letter, and what it leaves alone in the standard library."""

from __future__ import annotations

import ast
import io
import random
import re
import tokenize
from collections import Counter

import pytest

from benchmarks.refactorings import KINDS, refactor, refactorings
from benchmarks.splicing import Source, compiles
from lookahead.bench.tasks import FORMATS, Edit, render
from lookahead.hf import smollm2

MODULE = '''\
"""Shapes."""

import math  # roots


class Square:
    """A square: é."""

    sides = 4

    # what it covers
    def area(self, times=1):
        """Return the area."""
        return self.length ** 2 * times

    def __init__(self, length, name=None):
        """Take the length."""
        self.length = length  # of a side

    @property
    def unused(self):
        """Nothing needs it."""
        value = 1
        value += 1
        return value

    def _hidden(self, *args, **kwargs): return [length for length in args]


def diagonal(length, scale: int = 1):
    length = math.sqrt(2) * length
    return length * scale


def longest(lengths, strict=False):
    for length in lengths:
        diagonal(length).hex()
    return diagonal(max(lengths)) > 1
'''

EXPECTED = {
    "type hints": {
        "import math  # roots": "import math  # roots\nfrom typing import Any",
        "def area(self, times=1):": "def area(self, times: int = 1) -> Any:",
        "def __init__(self, length, name=None):": "def __init__(self, length: int, name: str | None = None) -> None:",
        "def unused(self):": "def unused(self) -> Any:",
        "def _hidden(self, *args, **kwargs):": "def _hidden(self, *args: Any, **kwargs: Any) -> list[Any]:",
        "def longest(lengths, strict=False):": "def longest(lengths: Any, strict: bool = False) -> bool:",
    },
    "logging": {
        "import math  # roots": "import math  # roots\nimport logging\n\nlogger = logging.getLogger(__name__)",
        '"""Return the area."""': '"""Return the area."""\n        logger.debug("area(times=%r)", times)',
        '"""Nothing needs it."""': '"""Nothing needs it."""\n        logger.debug("unused()")',
        "    length = math": '    logger.debug("diagonal(length=%r, scale=%r)", length, scale)\n    length = math',
        "    for length in lengths": '    logger.debug("longest(lengths=%r, strict=%r)", lengths, strict)\n'
        "    for length in lengths",
    },
    "delete function": {
        MODULE[MODULE.index("    @property") : MODULE.index("    def _hidden")]: "",
    },
    "docstring style": {
        '"""Shapes."""': '"""\nShapes.\n"""',
        '"""A square: é."""': '"""\n    A square: é.\n    """',
        '"""Return the area."""': '"""\n        Return the area.\n        """',
        '"""Take the length."""': '"""\n        Take the length.\n        """',
        '"""Nothing needs it."""': '"""\n        Nothing needs it.\n        """',
    },
    "async": {
        "def diagonal": "async def diagonal",
        "diagonal(length).hex()": "(await diagonal(length)).hex()",
        "return diagonal(max": "return await diagonal(max",
        "def longest": "async def longest",
    },
}


def changed(kind: str, text: str = MODULE) -> Edit | None:
    return refactor(kind, "shapes.py", text, random.Random(0))


@pytest.mark.parametrize("kind", EXPECTED)
def test_a_refactoring_changes_what_it_says_and_nothing_else(kind: str) -> None:
    expected = MODULE
    for old, new in EXPECTED[kind].items():
        assert expected.count(old) == 1
        expected = expected.replace(old, new)
    edit = changed(kind)
    assert edit is not None
    assert edit.after == expected


def test_a_rename_reaches_every_place() -> None:
    edit = changed("rename")
    assert edit is not None
    _, old, _, new = edit.instruction.rstrip(".").split()
    assert old in ("length", "lengths")
    words = re.findall(r"\w+|\W", MODULE)
    assert edit.after == "".join(new if word == old else word for word in words)


def test_methods_move_with_their_decorators_and_comments() -> None:
    edit = changed("reorder methods")
    assert edit is not None
    (before,) = (node for node in ast.parse(MODULE).body if isinstance(node, ast.ClassDef))
    (after,) = (node for node in ast.parse(edit.after).body if isinstance(node, ast.ClassDef))
    names = [node.name for node in before.body if isinstance(node, ast.FunctionDef)]
    assert [node.name for node in after.body if isinstance(node, ast.FunctionDef)] == sorted(names)
    assert "    # what it covers\n    def area" in edit.after
    assert "    @property\n    def unused" in edit.after
    assert sorted(edit.after.splitlines()) == sorted(MODULE.splitlines())


@pytest.mark.parametrize("kind", KINDS)
def test_a_module_with_nothing_to_do_is_no_task(kind: str) -> None:
    assert changed(kind, '"""Nothing."""\n\nx = 1\n') is None


@pytest.mark.parametrize(
    "line",
    [
        "    return [diagonal(length) for length in lengths]",
        "    return map(diagonal, lengths)",
        "    return lambda length: diagonal(length)",
        "    yield diagonal(lengths[0])",
        "    return f'{diagonal(lengths[0])}'",
        "    return 0\n\n\nROOT = diagonal(1)",
    ],
)
def test_what_cannot_wait_is_not_made_async(line: str) -> None:
    module = f"def diagonal(length):\n    return length\n\n\ndef longest(lengths):\n{line}\n"
    assert changed("async", module) is None


def comments(text: str) -> Counter[str]:
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return Counter(token.string for token in tokens if token.type == tokenize.COMMENT)


@pytest.mark.parametrize("kind", KINDS)
def test_modules_of_the_library_compile_and_keep_their_comments(kind: str) -> None:
    edits = list(refactorings(4, seed=1, kinds=[kind]))
    assert len(edits) == len({edit.path for edit in edits}) == 4
    for edit in edits:
        assert compiles(edit.after)
        if kind not in ("rename", "delete function"):
            assert comments(edit.after) == comments(edit.before)


def test_seeds_fix_what_is_chosen() -> None:
    assert list(refactorings(2, seed=3)) == list(refactorings(2, seed=3))
    assert list(refactorings(2, seed=3)) != list(refactorings(2, seed=4))


@pytest.mark.model
@pytest.mark.parametrize("form", FORMATS)
def test_every_refactoring_has_an_answer_in_every_format(form: str) -> None:
    tokenizer = smollm2.load_tokenizer()
    for kind in KINDS:
        edit = changed(kind)
        if edit is not None:
            prompt, answer = render(edit, form, tokenizer)
            assert edit.instruction in tokenizer.decode(prompt)
            assert answer


def test_places_are_counted_in_bytes_and_spliced_once() -> None:
    source = Source("é = 1\nb = 2\n")
    name = source.tree.body[0].value
    assert source.part(source.start(name), source.end(name)) == "1"
    assert source.spliced([(source.start(name), source.end(name), "3")]) == "é = 3\nb = 2\n"
    with pytest.raises(ValueError, match="overlap"):
        source.spliced([(0, 4, "x"), (2, 5, "y")])

"""Tasks that need nothing from outside: refactorings, made by a program, of the standard library's own modules.

Each of the `KINDS` changes a module's text at the places that its syntax tree names, so that comments and layout stay
as they are, and says in words what was asked for. Seeds fix what is chosen; but another release of Python has other
modules, so figures name the release.
"""

from __future__ import annotations

import ast
import builtins
import keyword
import random
import re
import sysconfig
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, TypeAlias

from benchmarks.coroutines import made_async
from benchmarks.hints import hinted
from benchmarks.splicing import Function, Source, Splice, compiles, first_line
from lookahead.bench.tasks import Edit

__all__ = ["KINDS", "refactor", "refactorings", "traces"]

Result: TypeAlias = tuple[str, str] | None  # what is asked for and the new text; None where there is nothing to do

_NEW_NAMES = (
    "current",
    "entry",
    "payload",
    "handler",
    "settings",
    "cursor",
    "bucket",
    "resolver",
    "snapshot",
    "channel",
)


def refactorings(
    count: int = 4, seed: int = 0, kinds: Sequence[str] | None = None, sizes: tuple[int, int] = (2_000, 16_000)
) -> Iterator[Edit]:
    """Yield so many tasks of each kind (fewer where the library has no more), of modules with so many characters."""
    texts = dict(_modules(sizes))
    for kind in KINDS if kinds is None else kinds:
        chosen = random.Random(f"{seed}:{kind}")
        paths, left = sorted(texts), count
        chosen.shuffle(paths)
        for path in paths:
            edit = refactor(kind, path, texts[path], chosen) if left else None
            if edit is not None:
                yield edit
                left -= 1


def traces(count: int, seed: int = 0, turns: int = 4, corpus: int = 300_000) -> Iterator[dict[str, Any]]:
    """Yield so many traces, in the form of `benchmarks.mine_edits`: one module refactored in several turns.

    The other files are the library's other modules, up to so many characters.
    """
    texts = dict(_modules((2_000, 16_000)))
    chosen = random.Random(f"{seed}:traces")
    paths = sorted(texts)
    chosen.shuffle(paths)
    for path in paths if count else []:
        kinds, text, done = list(KINDS), texts[path], list[dict[str, str]]()
        chosen.shuffle(kinds)
        for kind in kinds:
            edit = refactor(kind, path, text, chosen) if len(done) < turns else None
            if edit is not None:
                text = edit.after
                done.append({"instruction": edit.instruction, "after": text})
        if len(done) == turns:
            others = [{"path": other, "text": texts[other]} for other in sorted(texts) if other != path]
            sums = accumulate(len(other["text"]) for other in others)
            files = [other for other, so_far in zip(others, sums, strict=True) if so_far <= corpus]
            yield {"path": path, "before": texts[path], "turns": done, "files": files}
            count -= 1
            if not count:
                return


def refactor(kind: str, path: str, text: str, chosen: random.Random) -> Edit | None:
    """Return one refactoring of a module as a task, None where the module has no place for it."""
    result = KINDS[kind](Source(text), chosen)
    if result is None or result[1] == text or not compiles(result[1]):
        return None
    return Edit(path, result[0], text, result[1], kind)


def _modules(sizes: tuple[int, int]) -> Iterator[tuple[str, str]]:
    """Yield name and text of the modules at the top of the standard library."""
    for path in Path(sysconfig.get_path("stdlib")).glob("*.py"):
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        if sizes[0] <= len(text) <= sizes[1] and "\f" not in text and compiles(text):
            yield path.name, text


def _rename(source: Source, chosen: random.Random) -> Result:
    """Give an identifier that is used at least ten times a new name, in comments and strings too."""
    names = Counter(node.id for node in ast.walk(source.tree) if isinstance(node, ast.Name))
    taken = {"self", *dir(builtins), *keyword.kwlist, *keyword.softkwlist}
    often = sorted(
        name
        for name in names
        if len(name) > 3 and name not in taken and len(re.findall(rf"\b{name}\b", source.text)) >= 10
    )
    free = [name for name in _NEW_NAMES if name not in source.text]
    if not often or not free:
        return None
    old, new = chosen.choice(often), chosen.choice(free)
    return f"Rename {old} to {new}.", re.sub(rf"\b{old}\b", new, source.text)


def _add_type_hints(source: Source, chosen: random.Random) -> Result:
    """Annotate every function that has no annotations."""
    text, functions = hinted(source)
    return ("Add type hints to all functions.", text) if functions >= 3 else None


def _insert_logging(source: Source, chosen: random.Random) -> Result:
    """Log each call of a public function."""
    if re.search(r"\blogg(er|ing)\b", source.text):
        return None
    splices: list[Splice] = []
    for function, parent in source.functions():
        place = _behind_docstring(source, function)
        if place is None or function.name.startswith("_") or not isinstance(parent, (ast.Module, ast.ClassDef)):
            continue
        given = function.args
        names = [item.arg for item in [*given.posonlyargs, *given.args, *given.kwonlyargs]]
        names = [name for name in names if name not in ("self", "cls")]
        said = '"' + function.name + "(" + ", ".join(f"{name}=%r" for name in names) + ')"'
        call = f"logger.debug({', '.join([said, *names])})"
        splices.append((place, place, " " * function.body[0].col_offset + call + "\n"))
    if len(splices) < 3:
        return None
    splices.append(source.after_imports("import logging\n\nlogger = logging.getLogger(__name__)\n"))
    return "Log every call of a public function with its arguments, at level debug.", source.spliced(splices)


def _behind_docstring(source: Source, function: Function) -> int | None:
    """Return where the first line of a function's code begins; None where it stands in the line of its name."""
    first = function.body[0]
    if source.line(first_line(first))[: first.col_offset].strip():
        return None
    if ast.get_docstring(function) is None:
        return source.at(first_line(first))
    return source.at((first.end_lineno or first.lineno) + 1)


def _reorder_methods(source: Source, chosen: random.Random) -> Result:
    """Sort the methods of one class by name, with the comments above them."""
    classes = [node for node in ast.walk(source.tree) if isinstance(node, ast.ClassDef)]
    chosen.shuffle(classes)
    for node in classes:
        first = next((at for at, item in enumerate(node.body) if isinstance(item, Function)), len(node.body))
        methods = [item for item in node.body[first:] if isinstance(item, Function)]
        names = [method.name for method in methods]
        if len(methods) < 4 or len(methods) != len(node.body[first:]) or names == sorted(names):
            continue
        starts = [_with_comments(source, methods[0]), *((method.end_lineno or 0) + 1 for method in methods[:-1])]
        places, blocks = list[tuple[int, int]](), list[str]()
        for start, method in zip(starts, methods, strict=True):
            while not source.line(start).strip():
                start += 1
            places.append((source.at(start), source.at((method.end_lineno or 0) + 1)))
            blocks.append(source.part(*places[-1]))
        order = sorted(range(len(names)), key=names.__getitem__)
        splices = [(*place, blocks[number]) for place, number in zip(places, order, strict=True)]
        return f"Sort the methods of the class {node.name} by name.", source.spliced(splices)
    return None


def _delete_function(source: Source, chosen: random.Random) -> Result:
    """Delete a function that nothing else in the module names, with the comments above it."""
    functions = [function for function, parent in source.functions() if isinstance(parent, (ast.Module, ast.ClassDef))]
    chosen.shuffle(functions)
    for function in functions:
        start, end = _with_comments(source, function), (function.end_lineno or 0) + 1
        while source.at(end) < source.at(end + 1) and not source.line(end).strip():
            end += 1
        rest = source.spliced([(source.at(start), source.at(end), "")])
        fits = (function.end_lineno or 0) - function.lineno >= 4 and not function.name.startswith("__")
        if fits and not re.search(rf"\b{function.name}\b", rest) and compiles(rest):
            return f"Delete {function.name}, which is not used.", rest.rstrip("\n") + "\n"
    return None


def _with_comments(source: Source, function: Function) -> int:
    """Return the first line of a function with its decorators and the comments right above."""
    start = first_line(function)
    while start > 1 and source.line(start - 1).lstrip().startswith("#"):
        start -= 1
    return start


def _change_docstrings(source: Source, chosen: random.Random) -> Result:
    """Begin the text of every docstring on the line below the quotes, and close the quotes on a line of their own."""
    splices: list[Splice] = []
    for node in ast.walk(source.tree):
        if not isinstance(node, (ast.Module, ast.ClassDef, Function)) or ast.get_docstring(node) is None:
            continue
        quoted = node.body[0]
        start, end, indent = source.start(quoted), source.end(quoted), " " * quoted.col_offset
        found = re.fullmatch(r'"""(?!\s*\n)(.*?)\s*"""', source.part(start, end), re.DOTALL)
        if found and not source.line(quoted.lineno)[: quoted.col_offset].strip():
            splices.append((start, end, f'"""\n{indent}{found[1].lstrip()}\n{indent}"""'))
    if len(splices) < 4:
        return None
    words = "Change the docstrings: the text begins below the opening quotes, and the closing quotes have a line alone."
    return words, source.spliced(splices)


def _make_async(source: Source, chosen: random.Random) -> Result:
    """Make a function a coroutine function, and all that call it."""
    found = made_async(source, chosen)
    if found is None:
        return None
    (first, *others), text = found
    return f"Make {first} a coroutine function, and so what calls it: {', '.join(others)}.", text


KINDS: dict[str, Callable[[Source, random.Random], Result]] = {
    "rename": _rename,
    "type hints": _add_type_hints,
    "logging": _insert_logging,
    "reorder methods": _reorder_methods,
    "delete function": _delete_function,
    "docstring style": _change_docstrings,
    "async": _make_async,
}

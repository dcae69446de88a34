"""A refactoring of a module: type hints for every function, as far as names, defaults and results tell."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from benchmarks.splicing import Function, Source, Splice

__all__ = ["hinted"]

_TYPES = {  # what a parameter's name says
    **dict.fromkeys(
        ("name", "path", "filename", "file_name", "text", "string", "line", "key", "prefix", "mode"), "str"
    ),
    **dict.fromkeys(("encoding", "message", "msg", "title", "url", "host", "pattern", "suffix", "sep"), "str"),
    **dict.fromkeys(
        ("n", "i", "size", "count", "index", "length", "width", "indent", "depth", "lineno", "port"), "int"
    ),
    **dict.fromkeys(("args", "argv", "lines", "names"), "list[str]"),
    **dict.fromkeys(("verbose", "quiet", "force", "strict"), "bool"),
    **dict.fromkeys(("timeout", "delay", "seconds"), "float"),
    "data": "bytes",
}


def hinted(source: Source) -> tuple[str, int]:
    """Return the text with hints for the functions that have none, and how many functions these are."""
    splices, functions = list[Splice](), 0
    for function, parent in source.functions():
        found = list(_function(source, function, parent))
        functions += bool(found)
        splices += found
    words = {word for _, _, new in splices for word in re.findall(r"\b(Any|Iterator)\b", new)}
    lines = {"Any": "from typing import Any\n", "Iterator": "from collections.abc import Iterator\n"}
    new = "".join(lines[word] for word in sorted(words, reverse=True) if word not in _bound(source))
    if new:
        splices.append(source.after_imports(new))
    return source.spliced(splices), functions


def _bound(source: Source) -> set[str]:
    """Return the names that the module imports."""
    froms = [node for node in source.tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
    return {alias.asname or alias.name for node in froms for alias in node.names}


def _function(source: Source, function: Function, parent: ast.AST) -> Iterator[Splice]:
    """Yield the hints of one function; none where it has one or its head is unusual."""
    given = function.args
    positional = [*given.posonlyargs, *given.args]
    every = [*positional, *given.kwonlyargs, *filter(None, (given.vararg, given.kwarg))]
    pairs = dict(zip(reversed([item.arg for item in positional]), reversed(given.defaults), strict=False))
    pairs |= {item.arg: value for item, value in zip(given.kwonlyargs, given.kw_defaults, strict=True) if value}
    last = max([source.start(function), *map(source.end, every), *map(source.end, pairs.values())])
    closing = re.match(r"[^#]*?\)\s*(?=:)", source.part(last, source.start(function.body[0])), re.DOTALL)
    if function.returns or any(item.annotation for item in every) or not closing:
        return
    static = any(getattr(item, "id", "") == "staticmethod" for item in function.decorator_list)
    bound = positional[:1] if isinstance(parent, ast.ClassDef) and not static else []
    for item in every:
        if item in bound:
            continue
        end, default = source.end(item), pairs.get(item.arg)
        if default is None:
            yield end, end, f": {_named(item.arg) if item not in (given.vararg, given.kwarg) else 'Any'}"
        elif source.part(end, source.start(default)) == "=":
            yield end, source.start(default), f": {_of_default(item.arg, default)} = "
    place = last + len(closing[0].rstrip().encode())
    yield place, place, f" -> {_returned(function)}"


def _named(name: str) -> str:
    """Return the type that a parameter's name tells."""
    return _TYPES.get(name, "bool" if name.startswith(("is_", "use_", "allow_", "show_")) else "Any")


def _of_default(name: str, default: ast.expr) -> str:
    """Return the type that a default tells, else what the name does."""
    if isinstance(default, ast.Constant) and isinstance(default.value, (bool, int, float, str, bytes)):
        return type(default.value).__name__
    if isinstance(default, ast.Constant) and default.value is None and _named(name) != "Any":
        return f"{_named(name)} | None"
    return "Any"


def _returned(function: Function) -> str:
    """Return the type of what a function returns."""
    waiting: list[ast.AST] = [*function.body]
    results = list[ast.expr]()
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.Yield, ast.YieldFrom)):
            return "Iterator[Any]"
        if isinstance(node, ast.Return) and node.value is not None:
            results.append(node.value)
        if not isinstance(node, (Function, ast.Lambda, ast.ClassDef)):
            waiting += ast.iter_child_nodes(node)
    types = {_result(value) for value in results}
    return types.pop() if len(types) == 1 else "Any" if types else "None"


def _result(value: ast.expr) -> str:
    """Return the type of one result."""
    if isinstance(value, ast.Constant) and value.value is not None:
        return type(value.value).__name__
    if isinstance(value, (ast.Compare, ast.JoinedStr)):
        return "bool" if isinstance(value, ast.Compare) else "str"
    displays: dict[type, str] = {ast.List: "list[Any]", ast.ListComp: "list[Any]", ast.Dict: "dict[str, Any]"}
    return displays.get(type(value), "Any")

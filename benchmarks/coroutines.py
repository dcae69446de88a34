"""A refactoring of a module: a function becomes a coroutine function, and so does each that calls it."""

from __future__ import annotations

import ast
from collections import defaultdict
from random import Random
from typing import NamedTuple

from benchmarks.splicing import Source, Splice

__all__ = ["made_async"]

_MOST = 8  # functions changed by one task


class _Call(NamedTuple):
    """A call of one of the module's functions by its name."""

    node: ast.Call
    caller: str | None  # the function that calls; None where no coroutine can wait
    needs_parentheses: bool


class _Uses(ast.NodeVisitor):
    """Where a module's own functions are called, and which are used in another way or are generators."""

    def __init__(self, functions: dict[str, ast.FunctionDef]) -> None:
        self._functions = functions
        self._caller: str | None = None
        self._taken_apart: set[int] = set()
        self.calls: defaultdict[str, list[_Call]] = defaultdict(list)
        self.unfit: set[str] = set()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """Visit the body as the function's own, the rest as that of what is around it."""
        for around in (*node.decorator_list, node.args):
            self._within(None, around)
        own = node.name if self._functions.get(node.name) is node else None
        if node.decorator_list and own:
            self.unfit.add(own)
        for statement in node.body:
            self._within(own, statement)

    def visit_Call(self, node: ast.Call) -> None:
        """Note a call of one of the functions."""
        self._taken_apart.add(id(node.func))
        if isinstance(node.func, ast.Name) and node.func.id in self._functions:
            self.calls[node.func.id].append(_Call(node, self._caller, id(node) in self._taken_apart))
        else:
            self.visit(node.func)
        for given in (*node.args, *node.keywords):
            self.visit(given)

    def visit_Name(self, node: ast.Name) -> None:
        """Note a function that is handed on or assigned to."""
        self.unfit.add(node.id)

    def generic_visit(self, node: ast.AST) -> None:
        """Go on into a node; no coroutine can wait in another scope, nor where places are unsure."""
        if isinstance(node, (ast.Attribute, ast.Subscript)):
            self._taken_apart.add(id(node.value))
        if isinstance(node, (ast.Yield, ast.YieldFrom)) and self._caller:
            self.unfit.add(self._caller)
        scopes = (ast.Lambda, ast.ClassDef, ast.AsyncFunctionDef, ast.JoinedStr, ast.comprehension, ast.GeneratorExp)
        lists = (ast.ListComp, ast.SetComp, ast.DictComp)
        if isinstance(node, (*scopes, *lists)):
            self._caller, before = None, self._caller
            super().generic_visit(node)
            self._caller = before
        else:
            super().generic_visit(node)

    def _within(self, caller: str | None, node: ast.AST) -> None:
        """Visit a node as part of a function."""
        self._caller, before = caller, self._caller
        self.visit(node)
        self._caller = before


def made_async(source: Source, chosen: Random) -> tuple[list[str], str] | None:
    """Return the names of the functions changed, the one asked for first, and the text; None where nothing fits."""
    functions = {node.name: node for node in source.tree.body if isinstance(node, ast.FunctionDef)}
    uses = _Uses(functions)
    uses.visit(source.tree)
    names = sorted(name for name in functions if name != "main")
    chosen.shuffle(names)
    for name in names:
        changed = _closure(name, uses)
        if 2 <= len(changed) <= _MOST:
            return changed, _spliced(source, [functions[one] for one in changed], uses)
    return None


def _closure(name: str, uses: _Uses) -> list[str]:
    """Return a function and all that call it, directly or not; none where one of them cannot be changed."""
    changed = [name]
    for one in changed:  # grows meanwhile
        callers = [call.caller for call in uses.calls[one]]
        if one in uses.unfit or None in callers:
            return []
        changed += sorted({caller for caller in callers if caller and caller not in changed})
    return changed


def _spliced(source: Source, functions: list[ast.FunctionDef], uses: _Uses) -> str:
    """Return the text with these functions and their calls changed."""
    splices: list[Splice] = []
    for function in functions:
        splices.append((source.start(function), source.start(function), "async "))
        for call in uses.calls[function.name]:
            start, end = source.start(call.node), source.end(call.node)
            splices.append((start, start, "(await " if call.needs_parentheses else "await "))
            if call.needs_parentheses:
                splices.append((end, end, ")"))
    return source.spliced(splices)

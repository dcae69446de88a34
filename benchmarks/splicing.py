"""A Python source whose text is changed at places that its syntax tree names, so that comments and layout stay."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from typing import TypeAlias

__all__ = ["Function", "Source", "Splice", "compiles", "first_line"]

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
Splice: TypeAlias = tuple[int, int, str]  # from and to, in bytes, and what stands there instead


class Source:
    """A module's text and its tree.

    Attributes
    ----------
    text : str
        The text; lines end with a line feed.
    tree : ast.Module
        Its syntax tree; lines count from 1 and columns in bytes of UTF-8, as `ast` has it.
    """

    def __init__(self, text: str) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # old escapes in strings
            self.tree = ast.parse(text)
        self.text, self._bytes = text, text.encode()
        self._starts = [0]
        for line in self._bytes.split(b"\n"):
            self._starts.append(self._starts[-1] + len(line) + 1)

    def at(self, line: int, column: int = 0) -> int:
        """Return the place of a line's column; the line behind the last one begins at the end of the text."""
        return min(self._starts[line - 1] + column, len(self._bytes))

    def start(self, node: ast.expr | ast.stmt | ast.arg) -> int:
        """Return where a node begins, its decorators not counted."""
        return self.at(node.lineno, node.col_offset)

    def end(self, node: ast.expr | ast.stmt | ast.arg) -> int:
        """Return where a node ends."""
        return self.at(node.end_lineno or node.lineno, node.end_col_offset or 0)

    def part(self, start: int, end: int) -> str:
        """Return the text between two places."""
        return self._bytes[start:end].decode()

    def line(self, number: int) -> str:
        """Return a line without its end."""
        return self.part(self.at(number), self.at(number + 1)).rstrip("\n")

    def spliced(self, splices: list[Splice]) -> str:
        """Return the text with parts of it replaced; the parts must not overlap."""
        pieces, at = list[str](), 0
        for start, end, new in sorted(splices):
            if start < at:
                raise ValueError(f"two splices overlap at byte {start}; splice each place once")
            pieces += [self.part(at, start), new]
            at = end
        return "".join([*pieces, self.part(at, len(self._bytes))])

    def functions(self) -> Iterator[tuple[Function, ast.AST]]:
        """Yield every function with what it stands in: the module, a class, a function or another statement."""
        for parent in ast.walk(self.tree):
            for node in ast.iter_child_nodes(parent):
                if isinstance(node, Function):
                    yield node, parent

    def after_imports(self, text: str) -> Splice:
        """Return what adds lines behind the imports at the top, or behind the docstring where there are none."""
        last = None
        for number, node in enumerate(self.tree.body):
            is_docstring = number == 0 and ast.get_docstring(self.tree) is not None
            if not is_docstring and not isinstance(node, (ast.Import, ast.ImportFrom)):
                break
            last = node
        place = self.at((last.end_lineno or last.lineno) + 1 if last else first_line(self.tree.body[0]))
        return place, place, text


def first_line(node: ast.stmt) -> int:
    """Return the line where a statement begins with its decorators."""
    return min([node.lineno, *(item.lineno for item in getattr(node, "decorator_list", []))])


def compiles(text: str) -> bool:
    """Whether Python accepts a text as a module."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, "<refactored>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    return True

"""The commands of README and documentation are commands that there are, with flags that they have."""

from __future__ import annotations

import importlib
import re
import shlex
from typing import Any

import pytest

from tests.docs.pages import PAGES, ROOT, blocks

pytest.importorskip("typer")


def lines() -> list[str]:
    """Return each line of a shell block that starts one of our programs, with its page."""
    found = []
    for name in PAGES:
        for _, code in blocks(name, "sh", "", "console"):
            starts = re.findall(r"^(?:[A-Z_]+=\S+ |.*\| )?(?:lookahead|python) .*$", code, re.MULTILINE)
            found += [f"{name}: {line}" for line in starts]
    return found


def arguments(line: str) -> list[str]:
    """Return the words of the program and what it is given."""
    words = shlex.split(line.partition(": ")[2], comments=True)
    start = next(at for at, word in enumerate(words) if word in ("lookahead", "python"))
    given = words[start:]
    return given[: given.index(">")] if ">" in given else given


def test_there_are_such_lines() -> None:
    commands = {given[1] for given in map(arguments, lines()) if given[0] == "lookahead"}
    assert commands >= {"check", "demo", "index", "install", "run", "serve", "trace"}


@pytest.mark.parametrize("line", [line for line in lines() if arguments(line)[0] == "lookahead"])
def test_a_command_takes_what_it_is_given(line: str) -> None:
    from typer.main import get_command

    from lookahead.cli.app import app

    _, name, *given = arguments(line)
    command: Any = get_command(app).commands[name]  # type: ignore[attr-defined]
    command.make_context(name, given)  # raises what the command line tells


@pytest.mark.parametrize("line", [line for line in lines() if arguments(line)[0] == "python"])
def test_a_program_is_there(line: str) -> None:
    _, first, *given = arguments(line)
    if first != "-m":
        assert (ROOT / first).is_file()
        return
    module = given[0]
    assert (ROOT / f"{module.replace('.', '/')}.py").is_file() or (ROOT / module.replace(".", "/")).is_dir()
    if module == "examples.edit_agent":
        importlib.import_module(module).parsed(given[1:])

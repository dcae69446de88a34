"""Writes the flags of every command into the page that asks for them by ``[[lookahead NAME]]``."""

from __future__ import annotations

import inspect
import re
from typing import Any

from typer.main import get_command

from lookahead.cli.app import app

_ASKED = re.compile(r"^\[\[lookahead (\w+)\]\]$", re.MULTILINE)


def on_page_markdown(markdown: str, **kwargs: Any) -> str:
    """Put what a command takes where it is asked for; called by mkdocs."""
    commands: dict[str, Any] = get_command(app).commands  # type: ignore[attr-defined]
    return _ASKED.sub(lambda asked: _described(asked[1], commands[asked[1]]), markdown)


def _described(name: str, command: Any) -> str:
    """Return the usage, the help and a table of the parameters of a command."""
    arguments = [_written(one) for one in command.params if one.param_type_name == "argument"]
    usage = " ".join(["lookahead", name, "[OPTIONS]", *arguments])
    rows = [_row(one) for one in command.params]
    table = ["| | | by itself |", "|---|---|---|", *rows]
    return "\n\n".join([f"```text\n{usage}\n```", inspect.cleandoc(command.help), "\n".join(table)])


def _written(argument: Any) -> str:
    """Return how an argument stands in the usage."""
    name = f"{argument.name.upper()}{'...' if argument.nargs == -1 else ''}"
    return name if argument.required else f"[{name}]"


def _row(parameter: Any) -> str:
    """Return a parameter as a row: how it is written, what it is for, its default."""
    if parameter.param_type_name == "argument":
        written = f"`{_written(parameter)}`"
    else:
        value = "" if parameter.is_flag else f" {parameter.name.upper()}"
        written = " ".join(f"`{one}{value}`" for one in [*parameter.opts, *parameter.secondary_opts])
    return f"| {written} | {parameter.help} | {_default(parameter)} |"


def _default(parameter: Any) -> str:
    """Return what counts where nothing is given."""
    if parameter.required:
        return "(has to be given)"
    if isinstance(getattr(parameter, "show_default", None), str):
        return str(parameter.show_default)
    if getattr(parameter, "envvar", None):
        return f"`${parameter.envvar}`"
    return "" if parameter.default is None or parameter.default is False else f"`{parameter.default}`"

"""The application: every subcommand is a function in a file of its own, and a line here."""

from __future__ import annotations

import importlib.metadata
from typing import Annotated

import typer

from .bench import bench
from .check import check
from .demo import demo
from .index import index
from .install import install
from .run import run
from .serve import serve
from .trace import trace
from .usage import WRONG_USAGE, Commands

__all__ = ["app"]

COMMANDS = (bench, check, demo, index, install, run, serve, trace)

app = typer.Typer(name="lookahead", cls=Commands, pretty_exceptions_enable=False, rich_markup_mode="markdown")
for command in COMMANDS:
    app.command()(command)


def _show_version(wanted: bool) -> None:
    """Print the releases that matter, and exit."""
    if wanted:
        releases = [f"{name} {_release(name)}" for name in ("hf-lookahead", "transformers", "torch")]
        print(", ".join(releases))
        raise typer.Exit()


def _release(name: str) -> str:
    """Return the installed release of a distribution."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "(not installed)"


@app.callback(invoke_without_command=True)
def lookahead(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the releases and exit.")
    ] = False,
) -> None:
    """Model-free speculative decoding for Hugging Face generate."""
    if context.invoked_subcommand is None:
        print(context.get_help())
        raise typer.Exit(WRONG_USAGE)

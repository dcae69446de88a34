"""Wrong usage: one line on the standard error and an exit code of its own."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

import typer
from typer.core import TyperGroup

__all__ = ["INTERRUPTED", "UNAVAILABLE", "WRONG_USAGE", "Commands", "UsageError", "usage"]

WRONG_USAGE = 64  # EX_USAGE of sysexits.h; click's own 2 is a result of `lookahead check`
UNAVAILABLE = 69  # EX_UNAVAILABLE: a package is missing
INTERRUPTED = 130  # 128 and the number of SIGINT, as shells tell it

UsageError: Any = typer.BadParameter.__mro__[1]  # click's, wherever the release of typer keeps click


@contextlib.contextmanager
def usage() -> Iterator[None]:
    """Tell a ValueError, which says what to do, as wrong usage, and what to install where a package is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        typer.echo(f"lookahead: {error}", err=True)
        raise typer.Exit(UNAVAILABLE) from error
    except ValueError as error:
        raise UsageError(str(error)) from error


class Commands(TyperGroup):
    """The group of all subcommands."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run a subcommand and exit."""
        try:
            code = super().main(*args, **{**kwargs, "standalone_mode": False})
        except UsageError as error:
            path = error.ctx.command_path if error.ctx else "lookahead"
            print(f"{path}: {error.format_message()} (see {path} --help)", file=sys.stderr)
            code = WRONG_USAGE
        except typer.Abort:
            code = INTERRUPTED
        sys.exit(code if isinstance(code, int) else 0)

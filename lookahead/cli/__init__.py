"""The command line: ``lookahead check`` and what comes beside it."""

from __future__ import annotations

import sys

__all__ = ["main"]

_UNAVAILABLE = 69  # EX_UNAVAILABLE of sysexits.h


def main() -> None:
    """Run the command line; called by the script ``lookahead``."""
    try:
        from .app import app

        app(prog_name="lookahead")
    except ModuleNotFoundError as error:
        package = (error.name or "").split(".")[0]
        if package not in ("typer", "rich"):
            raise
        print(f"lookahead needs the package {package}; run: pip install 'hf-lookahead[cli]'", file=sys.stderr)
        sys.exit(_UNAVAILABLE)

"""The shell completes commands and options, as typer does it."""

from __future__ import annotations

import pytest

from tests.cli.commands import run


@pytest.mark.parametrize(("typed", "completed"), [("lookahead tr", "trace"), ("lookahead run --pred", "--prediction")])
def test_bash_completes(typed: str, completed: str) -> None:
    words = typed.split()
    asked = {"_LOOKAHEAD_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(len(words) - 1)}
    result = run(env=asked)
    assert (result.exit_code, result.stdout.split()) == (0, [completed])

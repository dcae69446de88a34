"""What the tests of the command line share: a small model on the disk, and a way to type."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from typer.testing import CliRunner, Result

from lookahead.cli.app import app
from tests.models import prompt, tiny
from tests.vocabularies import letters

TEXT = letters().decode(prompt(seed=1)[0])


def saved(path: Path) -> Path:
    """Write a model and its tokenizer into a folder, as ``save_pretrained`` does."""
    tiny(dtype=torch.float32).save_pretrained(path)
    letters().save_pretrained(path)
    return path


def run(*arguments: Any, **kwargs: Any) -> Result:
    """Type a command."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments], prog_name="lookahead", **kwargs)

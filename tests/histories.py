"""Small git repositories to mine."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

WHO = {f"GIT_{role}_{what}": "someone@example.org" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
WHEN = {"GIT_AUTHOR_DATE": "2020-01-01T00:00:00Z", "GIT_COMMITTER_DATE": "2020-01-01T00:00:00Z"}
NOWHERE = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}


def git(folder: Path, *arguments: str) -> str:
    environment = {**os.environ, **WHO, **WHEN, **NOWHERE}
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def commit(folder: Path, subject: str, **files: str | bytes) -> None:
    """Commit files whose names are written with __ for a slash and _dot_ for a dot."""
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    git(folder, "add", "--all")
    git(folder, "commit", "--allow-empty", "-m", subject)


def source(changed: str = "", line: int = 10, lines: int = 100) -> str:
    """Return a file of numbered lines, one of them replaced."""
    rows = [f"value_{number} = compute({number})\n" for number in range(lines)]
    if changed:
        rows[line] = f"{changed}\n"
    return "".join(rows)


def started(folder: Path) -> Path:
    """Make a repository with one commit."""
    folder.mkdir()
    git(folder, "init", "--initial-branch=main")
    commit(folder, "first commit", main_dot_py=source(), other_dot_py="x = 1\n", LICENSE="Permission is hereby granted")
    return folder

"""Which files git would ignore: git itself is the oracle."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from lookahead.cli.ignored import files_below

NAMES = ("a", "b.py", "build", "x.o", ".hidden", "ä ö", "[b]")
PATTERNS = (
    *("a", "*.o", "build/", "/a", "!a", "!x.o", "b.py", "*", "!*/", "!build/", "build/*", "!build/a", "a/**/x.o"),
    *("**/b.py", "a/", "!/a/", "[ab]*", "\\[b\\]", "# a", "", ".hidden", "*.py ", "a/b.py", "!a/b.py", "ä*", "?.o"),
    *("[!a]*", "!?.o", "[]x].o", "[z-a]", "a/**", "!a/**/a", "/**/x.o", "**", "b.py  ", "ä\\ ö/", "!/build/", "[^.]*"),
    *("*/a", "!*/", "build/**/", "x.o/*/", "a\\", "[\\[]b]", "[[a]*", "!.gitignore", "**/build/**"),
)
needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def git(folder: Path, *arguments: str) -> str:
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    environment["HOME"] = environment["XDG_CONFIG_HOME"] = str(folder)
    run = ["git", "-C", str(folder), *arguments]
    return subprocess.run(run, env=environment, check=True, capture_output=True, text=True).stdout


def plant(folder: Path, draws: random.Random, depth: int = 0) -> None:
    """Make files, folders and .gitignore files."""
    folder.mkdir(exist_ok=True)
    if draws.random() < 0.6:
        (folder / ".gitignore").write_text("\n".join(draws.choices(PATTERNS, k=draws.randint(1, 5))), "utf-8")
    for name in draws.sample(NAMES, draws.randint(1, 5)):
        if depth < 3 and draws.random() < 0.5:
            plant(folder / name, draws, depth + 1)
        else:
            (folder / name).write_text("text")


def found(folder: Path) -> set[str]:
    files = list(files_below(folder))
    assert files == sorted(files, key=lambda file: file.parts)
    return {file.relative_to(folder).as_posix() for file in files}


def listed(folder: Path) -> set[str]:
    return set(git(folder, "ls-files", "-o", "--exclude-standard", "-z").split("\0")) - {""}


@needs_git
@pytest.mark.parametrize("seed", range(60))
def test_the_files_are_those_that_git_lists(tmp_path: Path, seed: int) -> None:
    draws, root = random.Random(seed), tmp_path / "root"
    plant(root, draws)
    git(root, "init", "-q")
    (root / ".git" / "info" / "exclude").write_text("\n".join(draws.choices(PATTERNS, k=2)), "utf-8")
    assert found(root) == listed(root)
    for folder in sorted(one for one in root.rglob("*") if one.is_dir() and ".git" not in one.parts):
        below = listed(folder)
        if below:  # of an ignored folder git lists nothing; who names it wants it
            assert found(folder) == below


@needs_git
def test_work_trees_share_what_a_repository_excludes(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    git(root, "init", "-q")
    git(root, "-c", "user.name=a", "-c", "user.email=a", "commit", "-qm", "none", "--allow-empty")
    git(root, "worktree", "add", "-q", str(tmp_path / "tree"))
    (root / ".git" / "info" / "exclude").write_text("*.o\n")
    for name in ("a.o", "a.py"):
        (tmp_path / "tree" / name).write_text("text")
    assert found(tmp_path / "tree") == listed(tmp_path / "tree") == {"a.py"}


def test_without_a_repository_the_files_of_folders_count_and_links_are_left_out(tmp_path: Path) -> None:
    for name in (".gitignore", "a.o", "a.py", "sub/.gitignore", "sub/b.o", "sub/b.py", ".hg/c", ".svn/d"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("text")
    (tmp_path / ".gitignore").write_text("*.o")
    (tmp_path / "sub" / ".gitignore").write_text("!b.o\nb.py")
    (tmp_path / "link").symlink_to(tmp_path / "a.py")
    (tmp_path / "loop").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    assert found(tmp_path) == {".gitignore", "a.py", "sub/.gitignore", "sub/b.o"}

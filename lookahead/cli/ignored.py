"""The files below a folder that git would not ignore."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from pathspec import GitIgnoreSpec

__all__ = ["files_below"]

_ALWAYS = frozenset((".git", ".hg", ".svn", ".jj"))


class _Rules(NamedTuple):
    """The lines of a .gitignore, and the folder that they are about."""

    folder: Path
    spec: GitIgnoreSpec


def files_below(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder by name, without what .gitignore files and .git/info/exclude leave out.

    The .gitignore of every folder counts, and above `folder` those of its git work tree. Links are not followed.
    """
    yield from _walk(folder, _inherited(folder.resolve()), folder.resolve())


def _walk(folder: Path, rules: tuple[_Rules, ...], resolved: Path) -> Iterator[Path]:
    rules += _read(resolved / ".gitignore", resolved)
    with os.scandir(folder) as scan:
        entries = sorted(scan, key=lambda entry: entry.name)
    for entry in entries:
        is_folder = entry.is_dir(follow_symlinks=False)
        if entry.name in _ALWAYS or not (is_folder or entry.is_file(follow_symlinks=False)):
            continue
        if _is_ignored(resolved / entry.name, is_folder, rules):
            continue
        if is_folder:
            yield from _walk(folder / entry.name, rules, resolved / entry.name)
        else:
            yield folder / entry.name


def _is_ignored(path: Path, is_folder: bool, rules: tuple[_Rules, ...]) -> bool:
    """Whether the nearest rules that speak of a path leave it out."""
    for one in reversed(rules):
        name = PurePosixPath(path.relative_to(one.folder)).as_posix()
        said = one.spec.check_file(f"{name}/" if is_folder else name).include
        if said is not None:
            return said
    return False


def _inherited(folder: Path) -> tuple[_Rules, ...]:
    """Return the rules of a folder's git work tree that stand above it."""
    above = (folder, *folder.parents)
    depth = next((depth for depth, one in enumerate(above) if (one / ".git").exists()), None)
    if depth is None:
        return ()
    rules = _read(_git_folder(above[depth]) / "info" / "exclude", above[depth])
    for one in reversed(above[1 : depth + 1]):
        rules += _read(one / ".gitignore", one)
    return rules


def _git_folder(root: Path) -> Path:
    """Return where git keeps what all work trees of a repository share."""
    place = root / ".git"
    if place.is_file():  # a work tree beside the first one, or a submodule
        place = root / place.read_text("utf-8", "replace").removeprefix("gitdir:").strip()
        if (place / "commondir").is_file():
            place /= (place / "commondir").read_text("utf-8", "replace").strip()
    return place


def _read(file: Path, folder: Path) -> tuple[_Rules, ...]:
    """Return the rules of a file, none where it cannot be read."""
    try:
        lines = file.read_text("utf-8", "replace").splitlines()
    except OSError:
        return ()
    return (_Rules(folder, GitIgnoreSpec.from_lines(lines)),)

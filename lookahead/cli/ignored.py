"""The files below a folder that git would not ignore (gitignore(5))."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

__all__ = ["files_below"]

_ALWAYS = frozenset((".git", ".hg", ".svn", ".jj"))
_PART = re.compile(
    r"""(?:^|(?<=/))(?P<folders>\*\*/)      # any number of folders
    | (?<=/)(?P<inside>\*\*)$               # all that lies below
    | (?P<stars>\*+)
    | (?P<any>\?)
    | \[(?P<not>[!^])?(?P<set>\]?(?:\\.|[^\]\\])*)\]
    | \\?(?P<itself>.)""",
    re.VERBOSE | re.DOTALL,
)


class _Pattern(NamedTuple):
    """A line of a .gitignore."""

    regex: re.Pattern[str]
    is_for_folders: bool
    ignores: bool


class _Rules(NamedTuple):
    """The lines of a .gitignore, the last one first, and the folder that they are about."""

    folder: Path
    patterns: list[_Pattern]


def files_below(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder by name, without what .gitignore files and .git/info/exclude leave out.

    The .gitignore of every folder counts, and above `folder` those of its git work tree; whether git tracks a file does
    not. Links are not followed.
    """
    resolved = folder.resolve()
    yield from _walk(folder, resolved, _inherited(resolved))


def _walk(folder: Path, resolved: Path, rules: tuple[_Rules, ...]) -> Iterator[Path]:
    """Yield the files below a folder."""
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
            yield from _walk(folder / entry.name, resolved / entry.name, rules)
        else:
            yield folder / entry.name


def _is_ignored(path: Path, is_folder: bool, rules: tuple[_Rules, ...]) -> bool:
    """Whether the last line of the nearest file that speaks of a path leaves it out."""
    for folder, patterns in reversed(rules):
        name = path.relative_to(folder).as_posix()
        for one in patterns:
            if (is_folder or not one.is_for_folders) and one.regex.fullmatch(name):
                return one.ignores
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
        lines = file.read_text("utf-8-sig", "surrogateescape").split("\n")
    except OSError:
        return ()
    patterns = [pattern for line in lines if (pattern := _parse(line.removesuffix("\r")))]
    return (_Rules(folder, patterns[::-1]),)


def _parse(line: str) -> _Pattern | None:
    """Return the pattern of a line, None where there is none that can match."""
    bare = line.rstrip(" ")
    if bare.endswith("\\") and bare != line:
        bare += " "
    ignores = not bare.startswith("!")
    body = bare.removeprefix("!")
    is_for_folders = body.endswith("/")
    body = body.removesuffix("/")
    if not body or bare.startswith("#"):
        return None
    anywhere = "" if "/" in body else "(?:.*/)?"
    try:
        regex = re.compile(anywhere + "".join(map(_translated, _PART.finditer(body.removeprefix("/")))), re.DOTALL)
    except re.error:  # a set whose end comes before its beginning
        return None
    return _Pattern(regex, is_for_folders, ignores)


def _translated(part: re.Match[str]) -> str:
    """Return the regular expression of a part of a pattern."""
    if part["set"] is not None:
        members = re.sub(r"\\?(.)", lambda one: one[0] if one[0] == "-" else re.escape(one[1]), part["set"])
        return f"(?!/)[{'^' if part['not'] else ''}{members}]"
    if part["itself"] is not None:
        return re.escape(part["itself"])
    return {"folders": "(?:.*/)?", "inside": ".+", "stars": "[^/]*", "any": "[^/]"}[str(part.lastgroup)]

"""A git repository's history: what each commit changed in which file, and the files' texts."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Change", "History"]

_LICENCES = {  # what a licence's text says, the more special before the more general
    "Apache License": "Apache-2.0",
    "Mozilla Public License": "MPL-2.0",
    "GNU AFFERO GENERAL PUBLIC": "AGPL",
    "GNU LESSER GENERAL PUBLIC": "LGPL",
    "GNU GENERAL PUBLIC": "GPL",
    "Neither the name": "BSD-3-Clause",
    "Redistributions in binary form": "BSD-2-Clause",
    "Permission is hereby granted, free of charge": "MIT",
    "Permission to use, copy, modify, and": "ISC",
}

_BEGINS = "commit"
_COMMIT = f"%x00{_BEGINS}%x00%H%x00%P%x00%s"


@dataclass(frozen=True)
class Change:
    """What one commit changed in one file that was there before and after."""

    commit: str
    parent: str
    subject: str
    path: str
    old: str  # the ids of both texts
    new: str


class History:
    """The history of HEAD, read through git's own commands; a context manager, since one of them keeps running.

    Raises
    ------
    ValueError
        When the folder is in no git repository, the repository has no commits, or the clone is shallow.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        # A hook's variables would lead git elsewhere.
        self._environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        if not folder.is_dir():
            raise ValueError(f"{folder} is no folder; give the folder of a git repository")
        try:
            shallow = self._git("rev-parse", "--is-shallow-repository").strip()
        except FileNotFoundError:
            raise ValueError("git was not found; install it, or put it on the PATH") from None
        if shallow == "true":
            raise ValueError(f"{folder} is a shallow clone, whose history is cut off; run: git fetch --unshallow")
        if not self._git("rev-list", "--max-count=1", "--all").strip():
            raise ValueError(f"{folder} has no commits yet; give a repository with a history")
        self.head = self._git("rev-parse", "--verify", "HEAD").strip()
        self.name = self._name()
        self._blobs = self._start("cat-file", "--batch")

    def __enter__(self) -> History:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the command that reads texts."""
        self._blobs.communicate()

    def count(self) -> int:
        """Return the number of commits that are no merges."""
        return int(self._git("rev-list", "--count", "--no-merges", "HEAD"))

    def commits(self, most: int | None = None) -> Iterator[list[Change]]:
        """Yield each commit's changes of files, the newest commit first, without merges, at most so many commits."""
        limit = [] if most is None else [f"--max-count={most}"]
        options = ("--no-renames", "--no-show-signature", f"--format={_COMMIT}", *limit)
        log = self._git("log", "-z", "--raw", "--no-abbrev", "--no-merges", *options, "HEAD")
        fields = iter(log.split("\0"))  # zeros are what neither a subject nor a path can hold
        commit, parent, subject, changes = "", "", "", list[Change]()
        for field in fields:
            if field == _BEGINS:
                if commit:
                    yield sorted(changes, key=lambda change: change.path)
                commit, parent, subject, changes = next(fields), next(fields), next(fields), []
            elif row := field.lstrip("\n:"):
                path, (before, after, old, new, status) = next(fields), row.split(" ")
                if status == "M" and before.startswith("100") and after.startswith("100"):  # no links, no submodules
                    changes.append(Change(commit, parent, subject.strip(), path, old, new))
        if commit:
            yield sorted(changes, key=lambda change: change.path)

    def files(self, commit: str) -> list[tuple[str, str, int]]:
        """Return path, id and size of every file at a commit."""
        rows = []
        for entry in self._git("ls-tree", "-r", "-z", "--long", commit).split("\0")[:-1]:
            about, path = entry.split("\t", 1)
            mode, _, blob, size = about.split()
            if mode.startswith("100"):
                rows.append((path, blob, int(size)))
        return rows

    def text(self, blob: str) -> str | None:
        """Return a file's text by its id; None where it is no UTF-8 text."""
        assert self._blobs.stdin is not None and self._blobs.stdout is not None
        self._blobs.stdin.write(f"{blob}\n".encode())
        self._blobs.stdin.flush()
        header = self._blobs.stdout.readline().split()
        if len(header) != 3:
            raise ValueError(f"git does not find the object {blob} in {self._folder}; run: git fsck")
        content = self._blobs.stdout.read(int(header[2]) + 1)[:-1]
        try:
            return None if b"\0" in content else content.decode("utf-8")
        except UnicodeDecodeError:
            return None

    def licence(self) -> str:
        """Return the licence's SPDX name by the text at HEAD's root, ``"unknown"`` where it is none of the usual."""
        for path, blob, _ in self.files(self.head):
            if re.match(r"(?i)(licen[cs]e|copying)[^/]*$", path):
                text = self.text(blob) or ""
                return next((name for words, name in _LICENCES.items() if words in text), "unknown")
        return "unknown"

    def _name(self) -> str:
        """Return owner/name of the remote that the repository was cloned from, else the folder's name."""
        remotes = self._git("config", "--default", "", "--get", "remote.origin.url").strip()
        found = re.search(r"://[^/]+/([\w.-]+/[\w.-]+?)(\.git)?/?$|^[\w.@-]+:([\w.-]+/[\w.-]+?)(\.git)?$", remotes)
        return (found[1] or found[3]) if found else self._folder.resolve().name

    def _git(self, *arguments: str) -> str:
        """Run a git command to its end and return what it says."""
        process = self._start(*arguments)
        out, error = process.communicate()
        if process.returncode:
            reason = error.decode(errors="replace").strip()
            raise ValueError(f"git {arguments[0]} failed in {self._folder}; give a git repository. git says: {reason}")
        return str(out.decode("utf-8", errors="replace"))

    def _start(self, *arguments: str) -> subprocess.Popen[Any]:
        """Start a git command."""
        pipe = subprocess.PIPE
        command = ["git", "-C", str(self._folder), *arguments]
        return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=self._environment)

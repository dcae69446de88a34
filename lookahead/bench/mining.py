"""Edit tasks from a git repository's history; the same history always gives the same.

A task is one commit's change of one file: the commit's subject is the instruction, the file before is what the prompt
shows, the file after is the answer. A trace is consecutive changes of one file, one for each turn of a conversation,
and the repository's other files as they were before the first.
"""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, TypeAlias

from .history import Change, History

__all__ = ["Limits", "mine_edits", "mine_traces"]

_FOREIGN = {
    "vendor",
    "vendored",
    "_vendor",
    "third_party",
    "thirdparty",
    "external",
    "node_modules",
    "bower_components",
}
_BUILT = {"dist", "build", "target", "site-packages", "__snapshots__", "generated", "gen"}
_GENERATED = re.compile(
    r"\.min\.(js|css)$|\.(lock|snap|svg|ipynb|map|po|csv|sum)$|-lock\.(json|ya?ml)$|_pb2(_grpc)?\.pyi?$|\.pb\.\w+$"
)
_SAYS_SO = re.compile(r"generated (by|from|using|file)|do not edit|@generated|auto-?generated", re.IGNORECASE)
_LONGEST_LINE = 400  # longer ones stand in data and in minified code
_CORPUS_FILE = 200_000  # most bytes of one of a trace's other files

Record: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Limits:
    """What makes a change a task.

    Attributes
    ----------
    sizes : (int, int)
        Least and most characters of the file, before and after.
    suffixes : tuple of str
        Endings of the paths that count, as ``".py"``; all when empty.
    files : int
        Most files that a commit changes (one that changes more is about all of them) and, of a commit with fewer, most
        files that become tasks: those with the most lines changed.
    kept : float
        Least share of the lines that stay.
    """

    sizes: tuple[int, int] = (1200, 16_000)
    suffixes: tuple[str, ...] = ()
    files: tuple[int, int] = (20, 3)
    kept: float = 0.5


def mine_edits(history: History, commits: Iterable[list[Change]], limits: Limits) -> Iterator[Record]:
    """Yield the tasks of a history, in the order of its commits and within one by path."""
    licence = history.licence()
    for changes in commits:
        if len(changes) > limits.files[0]:
            continue
        found = [record for change in changes if (record := _edit(history, change, licence, limits))]
        found.sort(key=lambda record: -record["lines_changed"])
        yield from sorted(found[: limits.files[1]], key=lambda record: str(record["path"]))


def mine_traces(
    history: History,
    commits: Iterable[list[Change]],
    limits: Limits,
    turns: tuple[int, int],
    corpus_bytes: int,
) -> Iterator[Record]:
    """Yield traces of at least and at most so many turns, those of the files that changed last first.

    A change follows another when it begins with the very text that the other left behind.
    """
    licence = history.licence()
    by_path: dict[str, list[Change]] = {}
    for changes in commits:
        for change in changes:
            by_path.setdefault(change.path, []).append(change)
    for changes in by_path.values():
        for chain in _chains(history, reversed(changes), licence, limits, turns[1]):
            if len(chain) >= turns[0]:
                yield _trace(history, chain, corpus_bytes)


def _edit(history: History, change: Change, licence: str, limits: Limits) -> Record | None:
    """Return the task that a change makes, None where it makes none."""
    if not _own(change.path, limits) or len(change.subject.split()) < 2:
        return None
    before, after = history.text(change.old), history.text(change.new)
    if before is None or after is None or not (_written(before, limits) and _written(after, limits)):
        return None
    if before.split() == after.split():  # nothing but white space
        return None
    old, new = before.splitlines(), after.splitlines()
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    places = [place for place in matcher.get_opcodes() if place[0] != "equal"]
    changed = sum(b - a + d - c for _, a, b, c, d in places)
    if changed > (1 - limits.kept) * (len(old) + len(new)):
        return None
    return {
        "id": hashlib.sha256(f"{change.commit}:{change.path}".encode()).hexdigest()[:12],
        "repo": history.name,
        "licence": licence,
        "commit": change.commit,
        "path": change.path,
        "instruction": change.subject,
        "hunks": len(places),
        "lines_changed": changed,
        "before": before,
        "after": after,
    }


def _own(path: str, limits: Limits) -> bool:
    """Whether a path is one that people of this project write."""
    given = PurePosixPath(path)
    if limits.suffixes and given.suffix not in limits.suffixes:
        return False
    return not set(given.parts[:-1]) & (_FOREIGN | _BUILT) and not _GENERATED.search(given.name)


def _written(text: str, limits: Limits) -> bool:
    """Whether a text has the right size and looks as if a person had written it."""
    if not limits.sizes[0] <= len(text) <= limits.sizes[1]:
        return False
    return not _SAYS_SO.search(text[:600]) and max(map(len, text.splitlines()), default=0) <= _LONGEST_LINE


def _chains(
    history: History, changes: Iterable[Change], licence: str, limits: Limits, most: int
) -> Iterator[list[tuple[Change, Record]]]:
    """Yield runs of changes, the oldest first, each of which begins with what the one before left behind."""
    chain: list[tuple[Change, Record]] = []
    for change in changes:
        record = _edit(history, change, licence, limits)
        if chain and (record is None or chain[-1][0].new != change.old or len(chain) == most):
            yield chain
            chain = []
        if record is not None:
            chain.append((change, record))
    if chain:
        yield chain


def _trace(history: History, chain: list[tuple[Change, Record]], corpus_bytes: int) -> Record:
    """Return the trace of a chain, with the repository's other files at the parent of its first commit."""
    change, first = chain[0]
    return {
        **{name: first[name] for name in ("id", "repo", "licence", "path", "before")},
        "parent": change.parent,
        "turns": [{name: record[name] for name in ("commit", "instruction", "after")} for _, record in chain],
        "files": list(_others(history, change, corpus_bytes)),
    }


def _others(history: History, change: Change, most: int) -> Iterator[Record]:
    """Yield the other files that people write, at the parent commit, up to so many bytes: the nearest folders first."""
    folder = PurePosixPath(change.path).parent

    def distance(path: str) -> tuple[int, str]:
        own, other = folder.parts, PurePosixPath(path).parent.parts
        shared = next((at for at, (one, two) in enumerate(zip(own, other, strict=False)) if one != two), None)
        shared = min(len(own), len(other)) if shared is None else shared
        return len(own) + len(other) - 2 * shared, path

    rows = [row for row in history.files(change.parent) if row[0] != change.path and 0 < row[2] <= _CORPUS_FILE]
    for path, blob, size in sorted(rows, key=lambda row: distance(row[0])):
        text = history.text(blob) if size <= most and _own(path, Limits()) else None
        if text is not None:
            most -= size
            yield {"path": path, "text": text}

"""Texts to index: files, what lies below folders, and past outputs in JSON Lines; and how they become documents."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..index.static_corpus import Document, StaticCorpus
from ..views.tokens import Tokens
from .ignored import files_below

__all__ = ["Reader", "Source", "find"]

_BATCH = 4_000_000  # bytes of text that are tokenized together
_START = 8192  # bytes in which a zero shows that a file is no text, as git has it
_SETTLED = 2_000_000_000  # nanoseconds after which a file's time tells its versions apart on every file system
_NONE = np.empty(0, np.int32)

Item = TypeVar("Item")


class Source(NamedTuple):
    """A file that is there."""

    path: Path
    size: int
    mtime_ns: int
    is_lines: bool
    """Whether it is JSON Lines, a text on each line."""


def find(paths: Sequence[Path]) -> list[Source]:
    """Return the files that are given or lie below folders that are given, each once.

    A .jsonl file that is given itself has a text on each line; one in a folder is a text as others are.

    Raises
    ------
    ValueError
        For a path that does not exist.
    """
    found = list[Source]()
    for path in paths:
        try:
            if path.is_dir():
                found += [_source(file, False) for file in files_below(path)]
            else:
                found.append(_source(path, path.suffix == ".jsonl"))
        except OSError as error:
            raise ValueError(
                f"{error.filename or path} cannot be read: {error.strerror or error}; give files and folders"
            ) from error
    return list({os.path.realpath(source.path): source for source in found}.values())


def _source(path: Path, is_lines: bool) -> Source:
    """Look at a file."""
    status = path.stat()
    return Source(path, status.st_size, status.st_mtime_ns, is_lines)


class Reader:
    """Makes documents of sources; texts that an older corpus has are not tokenized again.

    Parameters
    ----------
    tokens : Tokens
        The tokenizer.
    old : StaticCorpus or None
        A corpus made with the same tokenizer.
    field : str
        What holds the text in a line of JSON Lines.
    max_bytes : int
        Larger files are skipped, JSON Lines apart.
    advance : callable
        Told the bytes that are done.

    Attributes
    ----------
    reused, tokenized : int
        Documents taken from the older corpus, and others.
    skipped : Counter of str
        How many files were left out for which reason.
    """

    def __init__(
        self, tokens: Tokens, old: StaticCorpus | None, field: str, max_bytes: int, advance: Callable[[int], object]
    ) -> None:
        self.reused = self.tokenized = 0
        self.skipped: Counter[str] = Counter()
        self._tokens, self._field, self._max_bytes, self._advance = tokens, field, max_bytes, advance
        known = old.documents if old else ()
        self._by_digest = {one.digest: one.tokens for one in known}
        self._by_file = {(one.path, one.size, one.mtime_ns): one.digest for one in known if one.mtime_ns}

    def documents(self, sources: Iterable[Source]) -> Iterator[Document]:
        """Yield the documents of some sources, in order."""
        for batch in _batches(self._texts(sources), lambda pair: len(pair[1]), _BATCH):
            fresh = [text for _, text in batch if text]
            encoded = iter(self._tokens.encode_all(fresh) if fresh else [])
            for one, text in batch:
                tokens: NDArray[np.int32] = next(encoded) if text else self._by_digest[one.digest].copy()
                self.tokenized += bool(text)
                self.reused += not text
                yield replace(one, tokens=tokens)

    def _texts(self, sources: Iterable[Source]) -> Iterator[tuple[Document, str]]:
        """Yield documents without tokens, each with its text, or with none where the older corpus has it."""
        for source in sources:
            name = source.path.as_posix()
            if source.is_lines:
                for number, text in self._lines(source.path):
                    yield self._compared(Document(f"{name}:{number}", _NONE), text)
                continue
            digest = self._by_file.get((name, source.size, source.mtime_ns))
            if digest and source.size <= self._max_bytes:
                yield Document(name, _NONE, source.size, source.mtime_ns, digest), ""
            elif text := self._text(source):
                settled = source.mtime_ns < time.time_ns() - _SETTLED
                yield self._compared(Document(name, _NONE, mtime_ns=source.mtime_ns if settled else 0), text)
            self._advance(source.size)

    def _compared(self, one: Document, text: str) -> tuple[Document, str]:
        """Complete a document, and leave its text out where the older corpus has it."""
        said = text.encode()
        one = replace(one, size=len(said), digest=hashlib.blake2b(said, digest_size=16).digest())
        return one, "" if one.digest in self._by_digest else text

    def _text(self, source: Source) -> str:
        """Return a file's text, nothing where it is left out."""
        if source.size > self._max_bytes:
            return self._skip("too large")
        try:
            data = source.path.read_bytes()
        except OSError:
            return self._skip("unreadable")
        if b"\0" in data[:_START]:
            return self._skip("binary")
        try:
            return data.decode() or self._skip("empty")
        except UnicodeDecodeError:
            return self._skip("not UTF-8")

    def _skip(self, reason: str) -> str:
        """Count a file that is left out."""
        self.skipped[reason] += 1
        return ""

    def _lines(self, path: Path) -> Iterator[tuple[int, str]]:
        """Yield the texts of a JSON Lines file and the numbers of their lines."""
        try:
            with path.open("rb") as file:
                for number, line in enumerate(file, 1):
                    self._advance(len(line))
                    if line.strip() and (text := self._value(line, f"line {number} of {path}")):
                        yield number, text
        except OSError as error:
            raise ValueError(f"{path} cannot be read: {error.strerror or error}; give files and folders") from error

    def _value(self, line: bytes, place: str) -> str:
        """Return the text of a line."""
        try:
            value = json.loads(line.decode("utf-8-sig"))
        except (ValueError, RecursionError) as error:
            raise ValueError(
                f'{place} is not JSON in UTF-8 ({error}); a line is {{"{self._field}": "text"}}'
            ) from error
        text = value.get(self._field) if isinstance(value, dict) else None
        if not isinstance(text, str):
            raise ValueError(f'{place} has no text "{self._field}"; give the name of the text\'s field with --field')
        return text.encode("utf-8", "replace").decode()  # JSON can hold halves of characters, which no tokenizer takes


def _batches(items: Iterable[Item], size: Callable[[Item], int], most: int) -> Iterator[list[Item]]:
    """Cut items into lists of some size together."""
    batch, total = list[Item](), 0
    for item in items:
        batch.append(item)
        total += size(item)
        if total >= most:
            yield batch
            batch, total = [], 0
    if batch:
        yield batch

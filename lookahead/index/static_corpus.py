"""Many documents in a file: built once, mapped into memory, never changed, and searched for what is being said."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import static_corpus_kernels as kernels
from .storage import Stored, check_tokenizer, read, write
from .suffix_array import places_in_order
from .suffix_tree import CANDIDATE, token_array

__all__ = ["Document", "Documents", "StaticCorpus", "StaticCursor", "Tokenizer", "build"]

LONGEST = 256  # tokens of a stream that are looked up; a longer match counts as one of that length
_MOST_TOKENS = 2**31 - 2
_BORDER = np.full(1, -1, np.int32)
_ROW = np.dtype(
    [("begin", "<i8"), ("end", "<i8"), ("size", "<i8"), ("mtime_ns", "<i8"), ("path_end", "<i8"), ("digest", "u1", 16)]
)


class Tokenizer(Protocol):
    """What tells which tokenizer made some tokens, as `views.tokens.Tokens` does."""

    @property
    def fingerprint(self) -> str:
        """A hash of all that decides which ids a text gets."""


@dataclass(frozen=True)
class Document:
    """A text of a corpus: its token ids, int32 [n], and where it came from."""

    path: str
    tokens: NDArray[np.int32]
    size: int = 0
    """Bytes of the text."""
    mtime_ns: int = 0
    digest: bytes = bytes(16)
    """A hash of the text, 16 bytes."""


class Documents(Sequence[Document]):
    """The documents of a corpus, read from the file when they are asked for."""

    def __init__(self, stored: Stored, tokens: NDArray[np.int32]) -> None:
        self._tokens = tokens
        self._rows = stored.array("documents", _ROW)
        self._paths = stored.array("paths", np.uint8)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._rows)

    @overload
    def __getitem__(self, number: int) -> Document: ...

    @overload
    def __getitem__(self, number: slice) -> list[Document]: ...

    def __getitem__(self, number: int | slice) -> Document | list[Document]:
        """Return a document, or several."""
        if isinstance(number, slice):
            return [self[one] for one in range(*number.indices(len(self)))]
        number = range(len(self))[number]
        row = self._rows[number]
        begun = int(self._rows[number - 1]["path_end"]) if number else 0
        path = self._paths[begun : int(row["path_end"])].tobytes().decode("utf-8", "surrogateescape")
        tokens = self._tokens[int(row["begin"]) : int(row["end"])]
        return Document(path, tokens, int(row["size"]), int(row["mtime_ns"]), row["digest"].tobytes())


class StaticCorpus:
    """Documents in a file that `build` has written, shared by all processes that have it open.

    It never changes: any number of threads may read it, each stream with a cursor of its own. A file that is replaced
    stays as it was for those who have it open; one that is cut short by other means while it is open ends the process
    (the system's SIGBUS), as with everything that is mapped.

    Attributes
    ----------
    name : str
        The file's name without its suffix.
    tokens : NDArray[np.int32]
        The stream, int32 [n], read-only: all documents, each with a border (-1) behind it.
    documents : Documents
        What it was built from.
    nbytes : int
        The file's size.
    fingerprint : str
        The tokenizer's.
    """

    def __init__(self, stored: Stored) -> None:
        self._stored = stored
        self.name = stored.path.stem
        self.nbytes = stored.nbytes
        self.fingerprint = str(stored.facts.get("fingerprint"))
        self.tokens: NDArray[np.int32] = stored.array("tokens", np.int32)
        self.order: NDArray[np.int32] = stored.array("order", np.int32)
        self.starts: NDArray[np.int32] = stored.array("starts", np.int32)
        self.documents = Documents(stored, self.tokens)

    @classmethod
    def open(cls, path: str | Path, tokenizer: Tokenizer | None = None) -> StaticCorpus:
        """Map a corpus into memory, which takes the same time for one of any size.

        Checked are the kind, the version, the byte order, the header with its checksum, the file's size, sixteen blocks
        of 4 KiB of each section, and the tokenizer. What is damaged elsewhere is found by `verify` alone; until then it
        can lead to other drafts, but not out of the file.

        Parameters
        ----------
        path : str or Path
            A file that `build` has written.
        tokenizer : Tokenizer, optional
            `Tokens.of(tokenizer)` of the tokenizer that the corpus is used with; None leaves that check out.

        Raises
        ------
        StorageError
            For a file that cannot be used: a ValueError that says what was found, what is needed and what to do.
        TypeError
            For a tokenizer without a fingerprint.
        """
        given = getattr(tokenizer, "fingerprint", None)
        if tokenizer is not None and not isinstance(given, str):
            raise TypeError(f"{type(tokenizer).__name__} has no fingerprint; give views.tokens.Tokens.of(tokenizer)")
        corpus = cls(read(Path(path).expanduser()))
        if given is not None:
            then = "build a corpus with this one: lookahead index PATH -o OTHER.lkh --tokenizer NAME_OR_FOLDER"
            check_tokenizer(str(path), corpus.fingerprint, given, then)
        return corpus

    def verify(self) -> None:
        """Compare every byte with the checksums, about a second for each gigabyte.

        Raises
        ------
        StorageError
            Where they differ.
        """
        self._stored.verify()

    def __len__(self) -> int:
        """Tokens and borders."""
        return len(self.tokens)

    def cursor(self) -> StaticCursor:
        """Return a cursor at the beginning of a stream."""
        return StaticCursor(self)


class StaticCursor:
    """What the end of one stream matches in a corpus. One thread at a time.

    The last 256 tokens of the stream are kept. They are looked up anew when something is asked after an `advance`, by
    one binary search; going on from the last match would save that search only where nobody asks for candidates, which
    need the ranks around it.
    """

    def __init__(self, corpus: StaticCorpus) -> None:
        self._corpus = corpus
        self._arrays = corpus.tokens, corpus.order
        self._said = np.empty(0, np.int32)  # the last token first
        self._found: tuple[int, int] | None = (0, 0)

    def advance(self, tokens: ArrayLike | Sequence[int]) -> None:
        """Tell what the stream went on with: token ids [m].

        Raises
        ------
        ValueError
            When the ids are not integers, not one-dimensional, or outside 0..2**31 - 1.
        """
        said = token_array(tokens)
        self._said = np.concatenate((said[::-1], self._said))[:LONGEST]
        self._found = None

    def _search(self) -> tuple[int, int]:
        if self._found is None:
            rank, length = kernels.search(*self._arrays, self._corpus.starts, self._said)
            self._found = int(rank), int(length)
        return self._found

    @property
    def match_length(self) -> int:
        """Length of the longest end of the stream that the corpus has before some token, up to 256."""
        return self._search()[1]

    def candidates(self, limit: int = 16, per_token: int = 4) -> NDArray[np.void]:
        """Places to copy from, CANDIDATE [at most limit]: by distinct next token, the longest match that it followed.

        Next tokens come by falling match length, then by falling `count`, which tells how often the token followed that
        match; of each up to `per_token` places come. The work is bounded: 128 places are looked at in all, 64 of one
        match length, evenly spread where there are more. Where a bound is met, `count` is a lower bound.

        Raises
        ------
        ValueError
            When `limit` is below 1 or `per_token` is below 1.
        """
        if limit < 1 or per_token < 1:
            raise ValueError(f"limit is {limit} and per_token is {per_token}; 1 or more is allowed")
        rows: NDArray[Any] = np.empty(limit, CANDIDATE)
        return rows[: kernels.suggest(*self._arrays, self._said, *self._search(), rows, int(per_token))]

    def continuation(self, position: int, length: int) -> NDArray[np.int32]:
        """Copy up to `length` tokens of the corpus from `position` on, int32; stops at a border.

        Raises
        ------
        ValueError
            When `position` lies outside the corpus or `length` is negative.
        """
        tokens = self._corpus.tokens
        if not 0 <= position <= tokens.size:
            raise ValueError(f"position is {position}; 0 to {tokens.size} is allowed: take one of candidates()")
        if length < 0:
            raise ValueError(f"length is {length}; 0 or more is allowed")
        found: NDArray[np.int32] = tokens[position : position + length]
        borders = np.flatnonzero(found < 0)
        return (found[: borders[0]] if borders.size else found).copy()


# ---- Building ----


def build(documents: Iterable[Document], path: str | Path, fingerprint: str) -> None:
    """Write a corpus: to a file beside `path` first, which takes its name once it is whole and on the disk.

    It takes some 20 bytes of memory for each token.

    Parameters
    ----------
    documents : iterable of Document
        Read once, one after the other.
    path : str or Path
        A corpus that is there is replaced.
    fingerprint : str
        `Tokens.of(tokenizer).fingerprint` of the tokenizer that made the ids.

    Raises
    ------
    ValueError
        Where there is no token, or there are more than 2**31 - 2; or for ids outside 0..2**31 - 1.
    ModuleNotFoundError
        Without the package that sorts; its message says what to install.
    """
    rows, paths, pieces, size = list[Any](), list[bytes](), list[NDArray[np.int32]](), 0
    for one in documents:
        tokens = token_array(one.tokens)
        paths.append(one.path.encode("utf-8", "surrogateescape"))
        path_end = len(paths[-1]) + (rows[-1][4] if rows else 0)
        rows.append((size, size + tokens.size, one.size, one.mtime_ns, path_end, tuple(one.digest)))
        pieces += [tokens, _BORDER]
        size += tokens.size + 1
    if not len(rows) < size <= _MOST_TOKENS:
        raise ValueError(
            f"the documents have {size - len(rows)} tokens; 1 to {_MOST_TOKENS} is allowed, one more for each document"
        )
    stream = np.concatenate(pieces)
    pieces.clear()
    order = places_in_order(stream)
    sections = {
        "tokens": stream,
        "order": order,
        "starts": _starts(stream),
        "documents": np.array(rows, _ROW),
        "paths": np.frombuffer(b"".join(paths), np.uint8),
    }
    write(Path(path).expanduser(), {"fingerprint": fingerprint}, sections)


def _starts(stream: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the first rank of the places behind each token, int32 [greatest token + 2], or none.

    The table shortens a search by half, and is left out where it would be longer than the stream.
    """
    if int(stream.max()) + 2 > stream.size:
        return np.empty(0, np.int32)
    before = stream[:-1][(stream[:-1] >= 0) & (stream[1:] >= 0)]
    counts = np.bincount(before, minlength=int(stream.max()) + 1)
    return np.concatenate(([0], np.cumsum(counts))).astype(np.int32)

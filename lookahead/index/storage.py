"""Arrays in one file that is mapped into memory: written all at once, refused where it is not what it claims to be.

The file begins with 64 bytes: a magic number, a mark that shows the byte order, the version, the length of the header
and its checksum. The header is JSON: the kind of file, facts about the contents, the size of the file, and for each
section its type, its place and two checksums, of all of it and of sixteen blocks of 4 KiB spread over it. Sections
begin at multiples of 64.

`read` checks the first 64 bytes, the header's checksum, the size of the file and the blocks, which takes the same time
for a file of any size. `Stored.verify` reads everything.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import mmap
import os
import secrets
import struct
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["CORPUS", "SESSION", "Kind", "StorageError", "Stored", "check_tokenizer", "is_corpus", "read", "write"]

MAGIC = b"\x89lkh\r\n\x1a\n"  # as PNG's: shows whether it was sent as text
VERSION = 2
_MARK = 0x01020304
_START = struct.Struct("=8sIIQ")  # then the checksum
_CHECKSUM = 16
_ALIGNMENT = 64
_BLOCK, _BLOCKS = 4096, 16
_HEADER = {"kind": str, "facts": dict, "size": int, "sections": dict}
_SECTION = {"offset": int, "nbytes": int, "checksum": str, "sample": str}


class Kind(NamedTuple):
    """What a file is, and for its errors: which files are of that kind, and what to do without one."""

    name: str
    wanted: str
    again: str


CORPUS = Kind("corpus", "a file that lookahead index has written", "build it anew with lookahead index")
SESSION = Kind("session", "a file that Session.save has written", "start with a new Session")


class StorageError(ValueError):
    """A file that cannot be used: what was found, what is needed, and what to do."""


def check_tokenizer(what: str, fingerprint: str, given: str, then: str) -> None:
    """Refuse what was made with a tokenizer of another fingerprint than the given one; `then` says what to do."""
    if fingerprint != given:
        raise StorageError(
            f"{what} was made with another tokenizer ({fingerprint or 'none'}; this one is {given}); {then}"
        )


class Stored:
    """The facts and arrays of a file; the arrays are read-only and mapped, so that processes share their memory."""

    def __init__(self, path: Path, kind: Kind, data: mmap.mmap, header: dict[str, Any]) -> None:
        self.path = path
        self.kind = kind
        self.facts: dict[str, Any] = header["facts"]
        self.nbytes = len(data)
        self._data = data
        self._sections: dict[str, dict[str, Any]] = header["sections"]

    def array(self, name: str, dtype: Any) -> NDArray[Any]:
        """Return a section as an array of a type, read-only.

        Raises
        ------
        StorageError
            Where there is no section of that name and type.
        """
        section, wanted = self._sections.get(name), np.dtype(dtype)
        if section is None or section["dtype"] != _described(wanted) or section["nbytes"] % wanted.itemsize:
            raise StorageError(f"{self.path} has no section {name} of {wanted}; {self.kind.again}")
        count = section["nbytes"] // wanted.itemsize
        array: NDArray[Any] = np.frombuffer(self._data, wanted, count, section["offset"])
        return array

    def verify(self) -> None:
        """Compare every byte of the sections with their checksums.

        Raises
        ------
        StorageError
            Where they differ.
        """
        for name, section in self._sections.items():
            if _checksum([self._bytes(section)]) != section["checksum"]:
                raise StorageError(
                    f"{self.path} is damaged: its section {name} is not what was written; {self.kind.again}"
                )

    def look(self) -> None:
        """Compare a few blocks of each section with their checksums; raise as `verify`."""
        for name, section in self._sections.items():
            if _checksum(_blocks(self._bytes(section))) != section["sample"]:
                raise StorageError(
                    f"{self.path} is damaged: its section {name} is not what was written; {self.kind.again}"
                )

    def _bytes(self, section: dict[str, Any]) -> memoryview:
        return memoryview(self._data)[section["offset"] : section["offset"] + section["nbytes"]]


# ---- Reading ----


def is_corpus(path: Path) -> bool:
    """Whether a file begins as one of these does."""
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def read(path: Path, kind: Kind = CORPUS) -> Stored:
    """Map a file of some kind.

    Raises
    ------
    StorageError
        For a file that cannot be read, is of another kind, another version or another byte order, or is damaged where
        this looks.
    """
    try:
        with path.open("rb") as file:
            header = _header(file, path, kind)
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error.strerror or error}; give {kind.wanted}") from error
    stored = Stored(path, kind, data, header)
    stored.look()
    return stored


def _header(file: BinaryIO, path: Path, kind: Kind) -> dict[str, Any]:
    """Return the header of a file whose beginning and size are right."""
    start = file.read(_ALIGNMENT)
    if start[: len(MAGIC)] != MAGIC:
        raise StorageError(f"{path} is no {kind.name}; give {kind.wanted}")
    if len(start) < _ALIGNMENT:
        raise StorageError(f"{path} is cut off after {len(start)} bytes; {kind.again}")
    _, mark, version, length = _START.unpack_from(start)
    if mark != _MARK:
        raise StorageError(f"{path} was written on a machine of another byte order; {kind.again} on this one")
    if version != VERSION:
        raise StorageError(
            f"{path} has version {version} of the format, and version {VERSION} is known; {kind.again}, or install the "
            "release of hf-lookahead that wrote it"
        )
    size = os.fstat(file.fileno()).st_size
    text, checksum = file.read(min(length, size)), start[_START.size : _START.size + _CHECKSUM].hex()
    if _checksum([start[: _START.size], text]) != checksum:
        raise StorageError(f"{path} is damaged: its header is not what was written; {kind.again}")
    try:
        header: Any = json.loads(text)
    except (ValueError, RecursionError):
        header = None
    if not _is_header(header):
        raise StorageError(f"{path} is damaged: its header is none; {kind.again}")
    if size != header["size"]:
        raise StorageError(
            f"{path} has {size} bytes and was written with {header['size']}: it is cut off; {kind.again}"
        )
    if header["kind"] != kind.name:
        raise StorageError(f"{path} is a {header['kind']}, no {kind.name}; give {kind.wanted}")
    known: dict[str, Any] = header
    return known


def _is_header(header: Any) -> bool:
    """Whether a header says what `write` says, and its sections lie within the file: anybody can make a checksum."""
    if not isinstance(header, dict) or [type(header.get(name)) for name in _HEADER] != list(_HEADER.values()):
        return False
    return all(
        isinstance(one, dict)
        and [type(one.get(name)) for name in _SECTION] == list(_SECTION.values())
        and one["offset"] % _ALIGNMENT == 0
        and 0 <= one["offset"] <= one["offset"] + one["nbytes"] <= header["size"]
        for one in header["sections"].values()
    )


# ---- Writing ----


def write(path: Path, facts: Mapping[str, Any], sections: Mapping[str, NDArray[Any]], kind: Kind = CORPUS) -> None:
    """Write a file beside `path` and give it that name when it is whole and on the disk; else leave nothing.

    Parameters
    ----------
    path : Path
        A file that is there is replaced; who has it open keeps the old one.
    facts : mapping
        What JSON can hold.
    sections : mapping of str to array
        One-dimensional arrays.
    kind : Kind
        Of which it is; nobody will take it for another.
    """
    header = _laid_out(kind, facts, sections)
    text = json.dumps(header).encode()
    begun = _START.pack(MAGIC, _MARK, VERSION, len(text))
    with _replacing(path.resolve()) as file:
        file.write((begun + bytes.fromhex(_checksum([begun, text]))).ljust(_ALIGNMENT, b"\0"))
        file.write(text)
        for name, array in sections.items():
            file.write(b"\0" * (header["sections"][name]["offset"] - file.tell()))
            file.write(_raw(array))


def _laid_out(kind: Kind, facts: Mapping[str, Any], sections: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    """Return the header; where sections begin depends on its length, and that on the numbers in it."""
    described = {
        name: {
            "dtype": _described(array.dtype),
            "offset": 0,
            "nbytes": array.nbytes,
            "checksum": _checksum([_raw(array)]),
            "sample": _checksum(_blocks(_raw(array))),
        }
        for name, array in sections.items()
    }
    header = {"kind": kind.name, "facts": dict(facts), "size": 0, "sections": described}
    room = _aligned(_ALIGNMENT + len(json.dumps(header)) + 20 * (len(sections) + 1))
    for section in described.values():
        section["offset"] = room
        room = _aligned(room + section["nbytes"])
    header["size"] = max(section["offset"] + section["nbytes"] for section in described.values())
    return header


@contextlib.contextmanager
def _replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a new file beside `path` that takes its name at the end; where something fails it is removed."""
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "there is no such folder; make it first", str(path.parent))
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "this is a folder; name a file in it", str(path))
    beside = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        with open(beside, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    _settle(path.parent)


def _settle(folder: Path) -> None:
    """Have the new name on the disk, too, where folders can be opened."""
    with contextlib.suppress(OSError):
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


# ---- Both ----


def _described(dtype: np.dtype[Any]) -> Any:
    """Return a type as JSON has it."""
    return json.loads(json.dumps(dtype.descr))


def _aligned(offset: int) -> int:
    """Return the next place where a section may begin."""
    return -(-offset // _ALIGNMENT) * _ALIGNMENT


def _raw(array: NDArray[Any]) -> memoryview:
    """Return the bytes of an array in one piece."""
    return array.view(np.uint8).data if array.size else memoryview(b"")


def _checksum(parts: Iterable[Any]) -> str:
    """Return the BLAKE2b of some bytes, in hexadecimal."""
    digest = hashlib.blake2b(digest_size=_CHECKSUM)
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


def _blocks(data: memoryview) -> list[memoryview]:
    """Return blocks that are evenly spread, the first and the last among them."""
    last = max(0, len(data) - _BLOCK)
    return [data[begin : begin + _BLOCK] for begin in (last * at // (_BLOCKS - 1) for at in range(_BLOCKS))]

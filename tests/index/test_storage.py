from __future__ import annotations

import hashlib
import json
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookahead.index import storage
from lookahead.index.storage import StorageError, is_corpus, read, write

ARRAYS = {
    "numbers": np.arange(5000, dtype=np.int32),
    "empty": np.empty(0, np.int64),
    "pairs": np.array([(1, [2, 3])], np.dtype([("a", "<i8"), ("b", "u1", 2)])),
}
LARGE = np.random.default_rng(0).integers(0, 9, 200_000, np.int32)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    write(tmp_path / "a.lkh", {"who": "ä"}, ARRAYS)
    return tmp_path / "a.lkh"


def test_what_is_written_is_read(path: Path) -> None:
    stored = read(path)
    stored.verify()
    assert (stored.facts, stored.nbytes, is_corpus(path)) == ({"who": "ä"}, path.stat().st_size, True)
    for name, array in ARRAYS.items():
        found = stored.array(name, array.dtype)
        assert found.tobytes() == array.tobytes()
        assert found.ctypes.data % 64 == 0 or not found.size
        assert not found.flags.writeable
    for name, dtype in (("numbers", np.int64), ("none", np.int32)):
        with pytest.raises(StorageError, match=f"no section {name} of {np.dtype(dtype)}"):
            stored.array(name, dtype)


def test_a_file_is_replaced_as_a_whole_and_readers_keep_the_old_one(path: Path) -> None:
    old = read(path)
    write(path, {}, {"numbers": LARGE})
    assert old.array("numbers", np.int32).tolist() == ARRAYS["numbers"].tolist()
    assert read(path).array("numbers", np.int32).tolist() == LARGE.tolist()
    assert [file.name for file in path.parent.iterdir()] == ["a.lkh"]


@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()], ids=repr)
def test_what_is_interrupted_leaves_the_old_file_and_nothing_else(
    path: Path, step: str, error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise error

    before = path.read_bytes()
    with monkeypatch.context() as patch, pytest.raises(type(error)):
        patch.setattr(os, step, fail)
        write(path, {}, {"numbers": LARGE})
    assert [file.name for file in path.parent.iterdir()] == ["a.lkh"]
    assert path.read_bytes() == before


def test_a_link_stays_a_link(path: Path) -> None:
    link = path.with_name("link.lkh")
    link.symlink_to(path)
    write(link, {}, {"numbers": LARGE})
    assert link.is_symlink()
    assert read(path).array("numbers", np.int32).size == LARGE.size


@given(st.data())
def test_damaged_bytes_are_refused_or_do_not_matter(tmp_path_factory: pytest.TempPathFactory, data: Any) -> None:
    folder = tmp_path_factory.getbasetemp()
    path, damaged = folder / "sound.lkh", folder / "damaged.lkh"
    if not path.exists():
        write(path, {"who": "me"}, {**ARRAYS, "large": LARGE})
    whole = bytearray(path.read_bytes())
    place = data.draw(st.integers(0, 700) | st.integers(0, len(whole) - 1))
    damage = data.draw(st.sampled_from(["flip", "cut", "zeros", "more"]))
    if damage == "flip":
        whole[place] ^= data.draw(st.integers(1, 255))
    elif damage == "cut":
        del whole[place:]
    elif damage == "zeros":
        whole[place:] = bytes(len(whole) - place)
    else:
        whole += bytes(1 + place)
    damaged.write_bytes(whole)
    try:
        stored = read(damaged)
        stored.verify()
    except StorageError as error:
        assert str(damaged) in str(error)
        return
    assert damage in ("flip", "zeros")  # of what lies between two sections, or was zero anyway
    assert stored.facts == {"who": "me"}
    for name, array in {**ARRAYS, "large": LARGE}.items():
        assert stored.array(name, array.dtype).tobytes() == array.tobytes()


def test_large_sections_are_looked_at_in_places_when_read_and_wholly_when_verified(path: Path) -> None:
    write(path, {}, {"large": LARGE})
    whole = path.read_bytes()
    for place, is_seen in ((5000, False), (len(whole) // 2, False), (len(whole) - 1, True), (400, True)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        if is_seen:
            with pytest.raises(StorageError, match="is damaged"):
                read(path)
        else:
            stored = read(path)
            with pytest.raises(StorageError, match="section large is not what was written; build it anew"):
                stored.verify()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda whole: b"", "is no corpus; give a file that lookahead index has written"),
        (lambda whole: b"\x89PNG" + whole[4:], "is no corpus"),
        (lambda whole: whole[:40], "is cut off after 40 bytes; build it anew"),
        (lambda whole: whole[:8] + whole[8:12][::-1] + whole[12:], "a machine of another byte order"),
        (lambda whole: whole[:12] + struct.pack("=I", 7) + whole[16:], "has version 7 of the format, and version 2 is"),
        (lambda whole: whole[:16] + struct.pack("=Q", 2**63) + whole[24:], "its header is not what was written"),
        (lambda whole: whole[:-1], r"has \d+ bytes and was written with \d+: it is cut off"),
    ],
)
def test_refusals_say_what_was_found_and_what_to_do(path: Path, change: Any, says: str) -> None:
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(StorageError, match=says) as caught:
        read(path)
    assert isinstance(caught.value, ValueError)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    "change",
    [
        lambda header: [1],
        lambda header: "[" * 100_000,
        lambda header: "{",
        *(lambda header, name=name: header.pop(name) and header for name in ("size", "kind", "facts", "sections")),
        lambda header: header | {"sections": {"numbers": 1}},
        *(
            lambda header, change=change: header["sections"]["numbers"].update(change) or header
            for change in (
                *({"offset": 2**40}, {"offset": -64}, {"offset": "0"}, {"offset": 65}),
                *({"nbytes": 2**40}, {"nbytes": -4}, {"nbytes": None}, {"checksum": None}, {"sample": 1}),
            )
        ),
    ],
)
def test_headers_that_are_forged_with_their_checksum_are_refused(path: Path, change: Any) -> None:
    whole = path.read_bytes()
    length = struct.unpack_from("=Q", whole, 16)[0]
    header = json.loads(whole[64 : 64 + length])
    begin = min(section["offset"] for section in header["sections"].values())
    forged = change(header)
    text = (forged if isinstance(forged, str) else json.dumps(forged)).encode()
    start = whole[:16] + struct.pack("=Q", len(text))
    checksum = hashlib.blake2b(start + text, digest_size=16).digest()
    path.write_bytes(((start + checksum).ljust(64, b"\0") + text).ljust(begin, b"\0") + whole[begin:])
    with pytest.raises(StorageError, match="is damaged: its header is none; build it anew"):
        read(path)


def test_what_cannot_be_read_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none"):
        assert not is_corpus(path)
        with pytest.raises(StorageError, match="cannot be read: .*; give a file"):
            read(path)
    assert storage.VERSION == 2

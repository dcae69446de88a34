"""`lookahead index` as it is typed: what goes into a corpus, and what a second run does anew."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

from lookahead.cli import index as command
from lookahead.index.static_corpus import StaticCorpus
from lookahead.index.storage import StorageError
from lookahead.views.tokens import Tokens
from tests.cli.commands import run
from tests.vocabularies import SAMPLE, vocabulary

TEXTS = {"a.py": SAMPLE, "sub/b.py": SAMPLE[:100], "sub/c ä.txt": "x = 1\r\n" * 9}


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tokenizer")
    vocabulary("byte_level").save_pretrained(path)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in TEXTS.items():
        write(tmp_path / "files" / name, text.encode())
    return tmp_path / "files"


def write(path: Path, data: bytes, age: float = 60) -> None:
    """Write a file, some seconds ago."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    os.utime(path, (time.time() - age, time.time() - age))


@pytest.fixture
def build(tmp_path: Path, tokenizer: Path) -> Callable[..., dict[str, Any]]:
    def build(*arguments: Any) -> dict[str, Any]:
        result = run("index", *arguments, "-o", tmp_path / "c.lkh", "--tokenizer", tokenizer, "--json")
        assert result.exit_code == 0, result.output
        figures: dict[str, Any] = json.loads(result.stdout)
        corpus = StaticCorpus.open(tmp_path / "c.lkh", Tokens.of(kept))
        corpus.verify()
        assert figures["path"] == str(tmp_path / "c.lkh")
        assert figures["bytes"] == corpus.nbytes
        assert figures["documents"] == len(corpus.documents) == figures["reused"] + figures["tokenized"]
        assert figures["tokens"] == len(corpus) - len(corpus.documents)
        assert figures["fingerprint"] == corpus.fingerprint
        return figures

    kept = AutoTokenizer.from_pretrained(tokenizer)
    return build


def contents(tmp_path: Path) -> dict[str, str]:
    corpus = StaticCorpus.open(tmp_path / "c.lkh")
    return {
        one.path.removeprefix(f"{tmp_path.as_posix()}/"): vocabulary("byte_level").decode(one.tokens)
        for one in corpus.documents
    }


Build = Callable[..., dict[str, Any]]


def test_a_folder_becomes_a_corpus(folder: Path, tmp_path: Path, build: Build) -> None:
    write(folder / "image.png", b"\x89PNG\0\0")
    write(folder / "latin.txt", b"caf\xe9")
    write(folder / "large.txt", b"a" * 3000)
    write(folder / "empty.txt", b"")
    write(folder / "ignored.o", b"text")
    write(folder / ".gitignore", b"*.o\n")
    figures = build(folder, "--max-bytes", 2000)
    assert contents(tmp_path) == {f"files/{name}": text for name, text in {".gitignore": "*.o\n", **TEXTS}.items()}
    assert figures["skipped"] == {"binary": 1, "not UTF-8": 1, "too large": 1, "empty": 1}
    assert (figures["tokenized"], figures["reused"], figures["written"]) == (4, 0, True)
    cursor = StaticCorpus.open(tmp_path / "c.lkh").cursor()
    cursor.advance(vocabulary("byte_level")("class Basket:\n    def").input_ids)
    (position, *_), *_ = cursor.candidates().tolist()
    assert vocabulary("byte_level").decode(cursor.continuation(position, 5)).startswith(" __init__")


def test_lines_become_documents(tmp_path: Path, build: Build) -> None:
    lines = [{"text": SAMPLE, "id": 1}, {"text": ""}, {"text": "half \ud800"}]
    write(tmp_path / "past.jsonl", b"\n".join(json.dumps(line).encode() for line in lines) + b"\n\n")
    build(tmp_path / "past.jsonl")
    assert contents(tmp_path) == {"past.jsonl:1": SAMPLE, "past.jsonl:3": "half ?"}
    write(tmp_path / "past.jsonl", b'\xef\xbb\xbf{"text": "with a mark of its byte order"}\r\n')
    build(tmp_path / "past.jsonl")
    assert contents(tmp_path) == {"past.jsonl:1": "with a mark of its byte order"}
    write(tmp_path / "past.jsonl", json.dumps({"text": SAMPLE, "answer": "yes"}).encode())
    build(tmp_path / "past.jsonl", "--field", "answer")
    assert contents(tmp_path) == {"past.jsonl:1": "yes"}
    write(tmp_path / "files" / "past.jsonl", b'{"text": "in a folder it is a text"}')
    build(tmp_path / "files", tmp_path / "files" / "past.jsonl", "--field", "text")
    assert contents(tmp_path) == {"files/past.jsonl:1": "in a folder it is a text"}
    build(tmp_path / "files")
    assert contents(tmp_path) == {"files/past.jsonl": '{"text": "in a folder it is a text"}'}


def test_a_file_of_two_names_is_taken_once(
    folder: Path, tmp_path: Path, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "link").symlink_to(folder)
    monkeypatch.chdir(tmp_path)
    assert build("files", folder / "sub", "files/../files/a.py", "link")["documents"] == 3


def test_only_what_has_changed_is_tokenized_again(
    folder: Path, tmp_path: Path, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(folder)
    tokenized: list[str] = []
    encode_all = Tokens.encode_all

    def noted(self: Tokens, texts: list[str]) -> Any:
        tokenized.extend(texts)
        return encode_all(self, texts)

    monkeypatch.setattr(Tokens, "encode_all", noted)
    before = (tmp_path / "c.lkh").stat().st_ino
    figures = build(folder)
    assert (tokenized, figures["written"], figures["reused"]) == ([], False, 3)
    write(folder / "a.py", SAMPLE.encode(), age=50)  # another time, the same text
    assert not build(folder)["written"]
    assert (tokenized, (tmp_path / "c.lkh").stat().st_ino) == ([], before)
    write(folder / "a.py", b"new = True\n", age=50)
    write(folder / "sub" / "moved.py", TEXTS["sub/b.py"].encode())
    (folder / "sub" / "b.py").unlink()
    figures = build(folder)
    assert (tokenized, figures["written"], figures["reused"]) == (["new = True\n"], True, 2)
    expected = {"files/a.py": "new = True\n", "files/sub/moved.py": TEXTS["sub/b.py"]}
    assert contents(tmp_path) == {**expected, "files/sub/c ä.txt": TEXTS["sub/c ä.txt"]}
    assert build(folder, "--max-bytes", 20)["skipped"] == {"too large": 2}


def test_a_change_right_after_the_first_run_is_seen(folder: Path, tmp_path: Path, build: Build) -> None:
    moment = time.time()
    for text in (b"old", b"new"):
        (folder / "a.py").write_bytes(text)
        os.utime(folder / "a.py", (moment, moment))  # a clock too coarse to tell the two
        build(folder)
    assert contents(tmp_path)["files/a.py"] == "new"


def test_nothing_is_taken_from_a_corpus_of_another_tokenizer_or_a_damaged_one(
    folder: Path, tmp_path: Path, build: Build, tokenizer: Path
) -> None:
    other = tmp_path / "other"
    vocabulary("word_piece").save_pretrained(other)
    result = run("index", folder, "-o", tmp_path / "c.lkh", "--tokenizer", other)
    assert result.exit_code == 0, result.output
    assert "c.lkh is written: 3 documents" in result.stdout
    assert "3 documents were tokenized, 0 taken" in result.stdout
    for _ in range(2):
        result = run("index", folder, "-o", tmp_path / "c.lkh", "--tokenizer", tokenizer)
        assert "nothing is taken from the corpus that is there" in result.stderr
        assert "3 documents were tokenized" in result.stdout
        whole = (tmp_path / "c.lkh").read_bytes()
        (tmp_path / "c.lkh").write_bytes(whole[:-1])
    build(folder)
    result = run("index", folder, "-o", tmp_path / "c.lkh", "--tokenizer", tokenizer)
    assert "c.lkh is up to date: 3 documents" in result.stdout
    assert "0 documents were tokenized, 3 taken" in result.stdout


def test_an_interrupted_run_leaves_what_was_there(
    folder: Path, tmp_path: Path, build: Build, tokenizer: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    build(folder)
    before, files = (tmp_path / "c.lkh").read_bytes(), sorted(tmp_path.iterdir())
    write(folder / "a.py", b"new = True\n")
    for place in ("lookahead.views.tokens.Tokens.encode_all", "os.fsync"):
        with monkeypatch.context() as patch:
            patch.setattr(place, interrupt)
            assert run("index", folder, "-o", tmp_path / "c.lkh", "--tokenizer", tokenizer).exit_code == 130
        assert (tmp_path / "c.lkh").read_bytes() == before
        assert sorted(tmp_path.iterdir()) == files


def test_verifying(folder: Path, tmp_path: Path, build: Build, tokenizer: Path) -> None:
    figures = build(folder)
    result = run("index", "--verify", tmp_path / "c.lkh", "--tokenizer", tokenizer)
    assert (result.exit_code, result.stdout) == (
        0,
        f"{tmp_path / 'c.lkh'}: sound, 3 documents, {figures['tokens']} tokens\n",
    )
    (tmp_path / "d.lkh").write_bytes((tmp_path / "c.lkh").read_bytes()[:-1])
    result = run("index", "--verify", tmp_path / "d.lkh", tmp_path / "c.lkh", "--json")
    assert result.exit_code == 1
    damaged, sound = json.loads(result.stdout)
    with pytest.raises(StorageError) as caught:
        StaticCorpus.open(tmp_path / "d.lkh")
    assert damaged == {"path": str(tmp_path / "d.lkh"), "problem": str(caught.value)}
    assert (sound["problem"], sound["tokens"], sound["documents"]) == (None, figures["tokens"], 3)
    vocabulary("word_piece").save_pretrained(tmp_path / "other")
    result = run("index", "--verify", tmp_path / "c.lkh", "--tokenizer", tmp_path / "other")
    assert (result.exit_code, "another tokenizer" in result.stdout) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Missing argument"),
        (["FILES"], "there is no -o FILE"),
        (["FILES", "-o", "TMP/c.lkh"], "there is no --tokenizer NAME_OR_FOLDER"),
        (["TMP/none", "-o", "TMP/c.lkh", "--tokenizer", "MODEL"], "TMP/none cannot be read: No such file"),
        (["FILES", "-o", "TMP/c.lkh", "--tokenizer", "TMP"], "TMP cannot be loaded"),
        (["FILES", "-o", "TMP/no/c.lkh", "--tokenizer", "MODEL"], "there is no folder TMP/no; make it"),
        (["FILES", "-o", "FILES/a.py", "--tokenizer", "MODEL"], "a.py is there and no corpus; remove it"),
        (["FILES", "-o", "TMP", "--tokenizer", "MODEL"], "is there and no corpus"),
        (["TMP/bad.jsonl", "-o", "TMP/c.lkh", "--tokenizer", "MODEL"], "line 2 of TMP/bad.jsonl is not JSON"),
        (["TMP/deep.jsonl", "-o", "TMP/c.lkh", "--tokenizer", "MODEL"], "line 1 of TMP/deep.jsonl is not JSON"),
        (["TMP/other.jsonl", "-o", "TMP/c.lkh", "--tokenizer", "MODEL"], 'other.jsonl has no text "text"; give the'),
        (["TMP/empty", "-o", "TMP/c.lkh", "--tokenizer", "MODEL"], "there is no text in what is given"),
        (["FILES", "-o", "TMP/c.lkh", "--tokenizer", "MODEL", "--max-bytes", "0"], "--max-bytes"),
        (["--verify", "FILES", "-o", "TMP/c.lkh"], "--verify writes nothing"),
    ],
)
def test_wrong_usage_exits_with_64_and_one_line(
    folder: Path, tokenizer: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    write(tmp_path / "bad.jsonl", b'{"text": "a"}\n{\n')
    write(tmp_path / "other.jsonl", b'{"answer": "a"}\n')
    write(tmp_path / "deep.jsonl", b"[" * 100_000 + b"\n")
    (tmp_path / "empty").mkdir()
    for name, place in (("FILES", folder), ("TMP", tmp_path), ("MODEL", tokenizer)):
        arguments = [argument.replace(name, str(place)) for argument in arguments]
        message = message.replace(name, str(place))
    result = run("index", *arguments)
    assert (result.exit_code, result.stdout) == (64, "")
    assert message in result.stderr and result.stderr.count("\n") == 1
    assert not (tmp_path / "c.lkh").exists()


def test_a_full_disk_is_told(folder: Path, tmp_path: Path, tokenizer: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(command, "build", fail)
    result = run("index", folder, "-o", tmp_path / "c.lkh", "--tokenizer", tokenizer)
    assert (result.exit_code, "cannot be written: No space left" in result.stderr) == (64, True)


def test_without_the_package_that_sorts_the_line_to_install_it_is_told(folder: Path, tokenizer: Path) -> None:
    script = "import sys; sys.modules['pydivsufsort'] = None; from lookahead.cli import main; main()"
    arguments = ["index", str(folder), "-o", str(folder.parent / "c.lkh"), "--tokenizer", str(tokenizer)]
    run_ = [sys.executable, "-c", script, *arguments]
    result = subprocess.run(run_, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (69, "")
    assert result.stderr == (
        "lookahead: building a corpus needs the package pydivsufsort; run: pip install 'hf-lookahead[index]'\n"
    )


@pytest.mark.model
def test_the_small_model_is_known_by_its_name(folder: Path, tmp_path: Path) -> None:
    from lookahead.hf import smollm2

    result = run("index", folder, "-o", tmp_path / "c.lkh", "--tokenizer", "smollm2")
    assert result.exit_code == 0, result.output
    tokenizer = smollm2.load_tokenizer()
    StaticCorpus.open(tmp_path / "c.lkh", Tokens.of(tokenizer))  # raises for another tokenizer's

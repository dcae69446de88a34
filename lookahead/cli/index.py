"""``lookahead index``: a corpus on the disk of a repository, folders, files or past outputs."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from ..index.static_corpus import Document, StaticCorpus, build
from ..index.storage import StorageError, is_corpus
from ..index.suffix_array import sorter
from ..views.tokens import Tokens
from .sources import Reader, Source, find
from .usage import usage

__all__ = ["index"]

_DAMAGED = 1


def index(
    paths: Annotated[list[Path], typer.Argument(help="Folders, files, and .jsonl files of past outputs.")],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Where the corpus goes, as corpus.lkh.")] = None,
    tokenizer: Annotated[
        str | None, typer.Option(help="The folder of the model's tokenizer, or its name on the Hugging Face hub.")
    ] = None,
    field: Annotated[str, typer.Option(help="What holds the text in a line of a .jsonl file.")] = "text",
    max_bytes: Annotated[int, typer.Option(min=1, help="Skip larger files, .jsonl files apart.")] = 1_000_000,
    trust_remote_code: Annotated[bool, typer.Option("--trust-remote-code", help="Run the tokenizer's code.")] = False,
    verify: Annotated[bool, typer.Option("--verify", help="Check the corpora PATHS, every byte; write none.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was done as JSON.")] = False,
) -> None:
    """Index files as they are, without what git ignores, so that drafts can be copied from them.

    Where the output is there already, only what has changed is tokenized. It is replaced once the new one is whole; an
    interrupted run leaves it as it was.

    Exit codes: 0; 1 a corpus is damaged (--verify); 64 wrong usage; 130 interrupted.
    """
    with usage():
        from ..hf.loading import load_tokenizer  # torch is loaded only where a tokenizer is

        given = None if tokenizer is None else load_tokenizer(tokenizer, trust_remote_code)
        if verify:
            if output is not None:
                raise ValueError(f"--verify writes nothing, and -o {output} is given; leave one of them out")
            raise typer.Exit(_verify(paths, given, as_json))
        if output is None or given is None:
            missing = "-o FILE, where the corpus goes" if output is None else "--tokenizer NAME_OR_FOLDER"
            raise ValueError(f"there is no {missing}; both are needed, or --verify")
        sorter()  # says at once what is not installed
        output = output.expanduser()
        _refuse(output)
        started = time.perf_counter()
        figures = _write(find([path.expanduser() for path in paths]), output, given, field, max_bytes, as_json)
    _tell({"path": str(output), **figures, "seconds": round(time.perf_counter() - started, 3)}, as_json)


def _write(
    sources: list[Source], output: Path, tokenizer: Any, field: str, max_bytes: int, is_quiet: bool
) -> dict[str, Any]:
    """Write a corpus where something has changed, and return what was done."""
    tokens = Tokens.of(tokenizer)
    with _progress(is_quiet) as progress:
        task = progress.add_task("reading", total=sum(source.size for source in sources))
        old = _old(output, tokens)
        reader = Reader(tokens, old, field, max_bytes, lambda size: progress.advance(task, size))
        documents = list(reader.documents(sources))
        is_same = old is not None and _same(old, documents)
        counts = {"reused": reader.reused, "tokenized": reader.tokenized, "skipped": dict(reader.skipped)}
        del old, reader  # some systems replace no file that is open
        if not is_same:
            progress.update(task, visible=False)
            progress.add_task("sorting", total=None)
            _build(documents, output, tokens.fingerprint)
    return {
        "fingerprint": tokens.fingerprint,
        "documents": len(documents),
        "tokens": sum(one.tokens.size for one in documents),
        "bytes": output.stat().st_size,
        "written": not is_same,
        **counts,
    }


def _refuse(output: Path) -> None:
    """Refuse a place for the corpus where it cannot be written, or would take that of something else."""
    if not output.parent.is_dir():
        raise ValueError(f"{output} cannot be written: there is no folder {output.parent}; make it, or change -o")
    if output.exists() and not is_corpus(output):
        raise ValueError(f"{output} is there and no corpus; remove it, or give another file with -o")


def _old(output: Path, tokens: Tokens) -> StaticCorpus | None:
    """Return the corpus that is there, every byte checked, and None where it cannot be used."""
    if not output.exists():
        return None
    try:
        old = StaticCorpus.open(output, tokens)
        old.verify()
    except StorageError as error:
        print(f"nothing is taken from the corpus that is there: {error}", file=sys.stderr)
        return None
    return old


def _same(old: StaticCorpus, documents: list[Document]) -> bool:
    """Whether a corpus has the same texts under the same names."""
    return [(one.path, one.digest) for one in old.documents] == [(one.path, one.digest) for one in documents]


def _build(documents: list[Document], output: Path, fingerprint: str) -> None:
    """Write a corpus."""
    if not documents:
        raise ValueError("there is no text in what is given; give other files or folders")
    try:
        build(documents, output, fingerprint)
    except OSError as error:
        raise ValueError(f"{output} cannot be written: {error.strerror or error}; make room, or change -o") from error


def _verify(paths: list[Path], tokenizer: Any, as_json: bool) -> int:
    """Check corpora, and return the exit code."""
    found = []
    for path in paths:
        facts: dict[str, Any] = {"path": str(path), "problem": None}
        try:
            corpus = StaticCorpus.open(path, None if tokenizer is None else Tokens.of(tokenizer))
            corpus.verify()
            facts |= {"documents": len(corpus.documents), "tokens": len(corpus) - len(corpus.documents)}
            facts |= {"bytes": corpus.nbytes, "fingerprint": corpus.fingerprint}
        except StorageError as error:
            facts["problem"] = str(error)
        found.append(facts)
        if not as_json:
            print(facts["problem"] or f"{path}: sound, {facts['documents']} documents, {facts['tokens']} tokens")
    if as_json:
        print(json.dumps(found, indent=2, ensure_ascii=False))
    return _DAMAGED if any(facts["problem"] for facts in found) else 0


def _progress(is_hidden: bool) -> Progress:
    """Return a bar on the standard error, where that is a terminal."""
    console = Console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn()
    return Progress(*columns, console=console, transient=True, disable=is_hidden or not console.is_terminal)


def _tell(figures: dict[str, Any], as_json: bool) -> None:
    """Print what was done."""
    if as_json:
        print(json.dumps(figures, indent=2, ensure_ascii=False))
        return
    what = "is written" if figures["written"] else "is up to date"
    print(f"{figures['path']} {what}: {figures['documents']} documents, {figures['tokens']} tokens, ", end="")
    print(f"{figures['bytes']} bytes, {figures['seconds']:.1f} s")
    print(f"{figures['tokenized']} documents were tokenized, {figures['reused']} taken from the corpus that was there")
    if figures["skipped"]:
        print("skipped: " + ", ".join(f"{count} {reason}" for reason, count in sorted(figures["skipped"].items())))

"""``lookahead install``: a model's folder whose ``generate`` decodes with lookahead, also in ``transformers serve``."""

from __future__ import annotations

import importlib.metadata
import shutil
from pathlib import Path
from typing import Annotated

import typer

from .usage import usage

__all__ = ["install"]

_FOLDER, _MARK = "custom_generate", "written by `lookahead install`"
_CODE = f'''"""Decodes with lookahead; {_MARK}."""

from lookahead.hf.installed import generate

__all__ = ["generate"]
'''


def install(
    model: Annotated[Path, typer.Argument(help="A model's folder, as save_pretrained writes it.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The new folder; by itself the model's with -lookahead added.")
    ] = None,
    copied: Annotated[bool, typer.Option("--copy", help="Copy the model's files rather than link to them.")] = False,
) -> None:
    """Make a folder with the model's files and a custom_generate that decodes with lookahead.

    Use it with trust_remote_code: AutoModelForCausalLM.from_pretrained(FOLDER, trust_remote_code=True), or
    transformers serve FOLDER --trust-remote-code. The model's own folder stays as it is.

    Exit codes: 0; 64 wrong usage.
    """
    with usage():
        source = _source(model)
        target = _target(source, output)
    shutil.rmtree(target / _FOLDER, ignore_errors=True)
    (target / _FOLDER).mkdir(parents=True)
    for file in sorted(source.rglob("*")):
        if file.is_file() and ".git" not in file.relative_to(source).parts:
            _put(file, target / file.relative_to(source), copied)
    (target / _FOLDER / "generate.py").write_text(_CODE, encoding="utf-8")
    (target / _FOLDER / "requirements.txt").write_text(f"hf-lookahead>={_release()}\n", encoding="utf-8")
    print(f"{target} is ready; it needs trust_remote_code, as in: transformers serve {target} --trust-remote-code")


def _source(model: Path) -> Path:
    """Return the model's folder."""
    folder = model.expanduser().resolve()
    if not (folder / "config.json").is_file():
        raise ValueError(f"{model} is no folder with a config.json; give one that save_pretrained has written")
    if (folder / _FOLDER).exists():
        raise ValueError(
            f"{model} brings a {_FOLDER} of its own, which would be lost; give the folder of a plain model"
        )
    return folder


def _target(source: Path, output: Path | None) -> Path:
    """Return the new folder; one that holds something else is left alone."""
    target = output.expanduser().resolve() if output else source.with_name(f"{source.name}-lookahead")
    code = target / _FOLDER / "generate.py"
    is_ours = code.is_file() and _MARK in code.read_text(encoding="utf-8", errors="replace")
    if target == source or source in target.parents:
        raise ValueError(f"{target} lies in the model's folder; give another one with --output")
    if target.exists() and not is_ours and (not target.is_dir() or any(target.iterdir())):
        raise ValueError(f"{target} exists and was not made by lookahead install; give another one with --output")
    return target


def _put(file: Path, place: Path, copied: bool) -> None:
    """Put a file of the model in its place."""
    place.parent.mkdir(parents=True, exist_ok=True)
    place.unlink(missing_ok=True)
    if not copied:
        try:
            place.symlink_to(file)
            return
        except OSError:  # a system without links
            pass
    shutil.copy2(file, place)


def _release() -> str:
    """Return the installed release of lookahead."""
    try:
        return importlib.metadata.version("hf-lookahead")
    except importlib.metadata.PackageNotFoundError:
        return "0"

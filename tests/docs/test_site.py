"""The documentation is built without a warning, and names everything that is public."""

from __future__ import annotations

import dataclasses
import html
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import lookahead
from tests.docs.pages import PAGES, ROOT

pytest.importorskip("mkdocs")
pytest.importorskip("material")
pytest.importorskip("mkdocstrings")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    env = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT)}
    built = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


def page(site: Path, name: str) -> str:
    return (site / name / "index.html").read_text(encoding="utf-8")


def test_every_public_name_has_its_place(site: Path) -> None:
    found = re.findall(r'id="lookahead\.(\w+)"', page(site, "api"))
    missing = [f"::: lookahead.{name}" for name in lookahead.__all__ if name not in found]
    assert not missing, f"docs/api.md lacks {', '.join(missing)}"
    assert not set(found) - set(lookahead.__all__) - {"hf"}


def test_every_option_is_told(site: Path) -> None:
    for field in dataclasses.fields(lookahead.Options):
        assert f'"lookahead.Options.{field.name}"' in page(site, "api")
        row = re.search(rf"^\| `{field.name}` \| (\S+) \|", PAGES["tuning.md"].read_text(), re.MULTILINE)
        assert row, f"docs/tuning.md lacks {field.name}"
        assert row[1] == str(field.default) or (field.name, row[1]) == ("cost", "measured")


def test_every_flag_of_every_command_is_told(site: Path) -> None:
    pytest.importorskip("typer")
    from typer.main import get_command

    from lookahead.cli.app import app

    text = page(site, "commands")
    commands: dict[str, Any] = get_command(app).commands  # type: ignore[attr-defined]
    for name, command in commands.items():
        start = text.index(f'id="lookahead-{name}"')
        part = text[start : text.find("<h2", start)]
        for parameter in command.params:
            written = parameter.opts[0] if parameter.param_type_name == "option" else parameter.name.upper()
            assert re.search(rf"<code>\[?{written}\b", part), f"docs/commands.md lacks {name} {written}"
            assert html.escape(parameter.help.split("`")[0], quote=False) in part


def test_the_pages_load_nothing_from_elsewhere(site: Path) -> None:
    for file in site.rglob("*.html"):
        text = file.read_text(encoding="utf-8")
        found = re.findall(r'<(?:script|link|img)\b[^>]*(?:src|href)="(https?:[^"]*)"', text)
        assert found == [], file


def test_programs_are_shown_as_they_are(site: Path) -> None:
    text = page(site, "recipes")
    shown = re.findall(r"<details.*?</details>", text, re.DOTALL)
    programs = re.findall(r"<summary>(examples/\w+\.py)</summary>", text)
    assert len(programs) == len(shown) == 5
    for program, part in zip(programs, shown, strict=True):
        code = html.unescape(re.sub(r"<[^>]+>", "", part.partition("</summary>")[2]))
        assert code.strip() == (ROOT / program).read_text(encoding="utf-8").strip()
    assert "--8" not in text and "???" not in text and "[[lookahead" not in page(site, "commands")

"""`lookahead trace` as it is typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lookahead.cli.trace import _spark
from lookahead.trace.page import figures
from lookahead.trace.record import Trace
from tests.cli.commands import run
from tests.trace.traces import long_trace, trace_of


@pytest.fixture
def file(tmp_path: Path) -> Path:
    trace_of(1, 9, rows=2).save(tmp_path / "out.json")
    return tmp_path / "out.json"


def test_the_terminal_shows_text_and_figures(file: Path) -> None:
    trace = long_trace(300)
    trace.note = "for a reason"
    trace.save(file)
    result = run("trace", file)
    assert result.exit_code == 0, result.output
    text = "".join(trace.texts([token for step in trace.steps for token in step.tokens]))
    assert result.stdout.startswith(text)
    for name, value in figures(trace):
        assert f"{name}: {value}" in result.stdout
    assert "decoded plainly: for a reason" in result.stdout
    assert all(source in result.stdout for source in trace.by_source())
    colours = run("trace", file, env={"FORCE_COLOR": "1", "TERM": "xterm-256color"})
    assert "\x1b[34m" in colours.stdout and "\x1b[1;31m" in colours.stdout


def test_a_row_of_a_batch(file: Path) -> None:
    trace = Trace.load(file)
    first, second = run("trace", file).stdout, run("trace", file, "--row", 2).stdout
    assert first.partition("─")[0] != second.partition("─")[0]
    texts = trace.texts([token for step in trace.row(1) for token in step.tokens])
    assert [one for one in "".join(texts) if one.isalpha()] == [
        one for one in second.partition("─")[0] if one.isalpha()
    ]


def test_orders_to_the_terminal_are_not_given(tmp_path: Path) -> None:
    trace = long_trace(50)
    trace.pieces = lambda ids: [b"\x1b]0;owned\x07[bold]" for _ in ids]
    trace.note = "\x1b[31m"
    trace.save(tmp_path / "out.json")
    result = run("trace", tmp_path / "out.json", env={"NO_COLOR": "1"})
    assert "\x1b" not in result.stdout and "\u241b]0;owned\u2407[bold]" in result.stdout


def test_figures_as_json(file: Path) -> None:
    trace, found = Trace.load(file), json.loads(run("trace", file, "--json").stdout)
    assert (found["tokens"], found["forwards"], found["rows"]) == (trace.tokens, 9, 2)
    assert {name: (one["drafted"], one["output"]) for name, one in found["sources"].items()} == trace.by_source()


def test_the_page_is_written_beside_the_trace_or_where_it_is_asked_for(file: Path, tmp_path: Path) -> None:
    page = Trace.load(file).html()
    for arguments, path in [((), file.with_suffix(".html")), (("-o", tmp_path / "b.html"), tmp_path / "b.html")]:
        result = run("trace", file, "--html", *arguments)
        assert (result.exit_code, result.stdout) == (0, "") and str(path) in result.stderr
        assert path.read_text("utf-8") == page
    assert run("trace", file, "--html", "-o", "-").stdout == page


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Missing argument"),
        (["TMP/none.json"], "none.json cannot be read: No such file"),
        (["TMP"], "cannot be read: Is a directory"),
        (["TMP/text"], "is no trace; give a file that"),
        (["FILE", "--row", "3"], "--row 3 is not there; FILE has rows 1 to 2"),
        (["FILE", "-o", "page.html"], "give --html, too"),
        (["FILE", "--html", "--json"], "one is allowed"),
        (["FILE", "--html", "-o", "TMP/no/page.html"], "cannot be written: No such file"),
    ],
)
def test_wrong_usage_exits_with_64_and_one_line(file: Path, tmp_path: Path, arguments: list[str], message: str) -> None:
    (tmp_path / "text").write_text("hello\n")
    for name, place in (("FILE", file), ("TMP", tmp_path)):
        arguments = [argument.replace(name, str(place)) for argument in arguments]
        message = message.replace(name, str(place))
    result = run("trace", *arguments)
    assert (result.exit_code, result.stdout) == (64, "")
    assert message in result.stderr and result.stderr.count("\n") == 1


def test_bars_fit_the_width() -> None:
    assert _spark([], 10) == "" and _spark([0, 0], 10) == "  "
    assert _spark([0, 1, 2, 4, 8], 10) == " ▁▂▄█"
    assert len(_spark(list(range(1000)), 10)) == 10

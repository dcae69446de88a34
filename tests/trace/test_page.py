"""The page shows what the trace holds, and does nothing that the text asks for; looked at in a real browser."""

from __future__ import annotations

import html.parser
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lookahead import Draft
from lookahead.trace.page import columns
from lookahead.trace.record import Trace
from lookahead.trace.step import Step
from tests import browser
from tests.trace.traces import long_trace, trace_of

HOSTILE = [
    "</script><script>window.hacked = 1</script>",
    "<img src=x onerror='window.hacked = 2'>",
    "<!-- <script> {{data}} {{script}} ]]> &lt;&amp; \\u003c",
    "\u2028\u2029\x00\x1b[31m'\"`${window.hacked = 3}",
    "javascript:window.hacked=4 __proto__ constructor",
]


def hostile() -> Trace:
    """Return a trace of which every text is an attack."""
    names = [*HOSTILE, "model", "__proto__", "constructor"]
    trace = Trace([[0, 1, 2]], pieces=lambda ids: [HOSTILE[one % len(HOSTILE)].encode() for one in ids])
    trace.about, trace.note = {"model": HOSTILE[0], HOSTILE[1]: HOSTILE[2]}, HOSTILE[0]
    draft = Draft(
        *(Draft.chain(range(8)).tokens, Draft.chain(range(8)).parents, Draft.chain(range(8)).probs), tuple(names)
    )
    places = draft.tokens.astype(int)
    trace.steps = [Step(1, 0, draft, places, places, [*range(8), 3], list(range(8)), 0.1, 0.2, 0.3)]
    return trace


class Elements(html.parser.HTMLParser):
    """Reads a page as a browser does, and keeps its elements."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.data = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attributes)))

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1][1].get("id") == "data":
            self.data += data


def test_the_data_stand_in_the_page_and_nothing_in_them_is_markup() -> None:
    plain, attacked = Elements(trace_of(0, 3).html()), Elements(hostile().html())
    assert [tag for tag, _ in attacked.tags] == [tag for tag, _ in plain.tags]
    assert json.loads(attacked.data) == json.loads(json.dumps(columns(hostile())))
    assert json.loads(attacked.data)["rows"][0]["texts"] == [HOSTILE[one % 5] for one in [*range(8), 3]]


def test_the_page_names_nothing_outside_and_its_policy_allows_nothing() -> None:
    page = Elements(trace_of(0, 3).html())
    assert not [attributes for _, attributes in page.tags if {"src", "href", "action", "srcset"} & set(attributes)]
    (policy,) = (attributes["content"] for _, attributes in page.tags if "http-equiv" in attributes)
    assert policy and policy.startswith("default-src 'none'; style-src 'sha256-") and "unsafe" not in policy


def test_rows_have_their_own_columns() -> None:
    trace = trace_of(5, 6, rows=3)
    rows = columns(trace)["rows"]
    for number, row in enumerate(rows):
        steps = trace.row(number)
        tokens = [token for step in steps for token in step.tokens]
        assert row["texts"] == trace.texts(tokens) and row["path"] == [node for step in steps for node in step.path]
        assert sum(row["steps"]["drafted"]) == len(row["nodes"]["piece"])
    assert len(rows) == 3


# ---- In a browser ----


@pytest.fixture(scope="module")
def page() -> Iterator[browser.Page]:
    if browser.browser() is None:
        pytest.skip(f"no browser: none of {', '.join(browser.NAMES)} is on the PATH (Debian: apt install chromium)")
    with browser.opened() as opened:
        yield opened


def show(page: browser.Page, trace: Trace, folder: Path, **how: Any) -> float:
    """Open a trace's page, which must load nothing and report no error."""
    path = folder / "page.html"
    path.write_text(trace.html(), encoding="utf-8")
    page.errors.clear()
    page.requests.clear()
    seconds = page.open(path, **how)
    assert page.errors == []
    assert page.requests == [path.resolve().as_uri()]
    return seconds


TEXT = 'document.getElementById("text")'
SPANS = f'[...{TEXT}.querySelectorAll(".token")]'
DETAILS = 'document.getElementById("details").textContent'


def test_every_token_is_shown_with_its_source(page: browser.Page, tmp_path: Path) -> None:
    trace = trace_of(3, 12)
    show(page, trace, tmp_path)
    emitted = [one for step in trace.steps for one in step.emitted()]
    texts = trace.texts([one.token for one in emitted])
    assert page.run(f"{SPANS}.map(one => one.textContent)") == texts
    shown = page.run(f"{SPANS}.map(one => one.classList[1])")
    assert shown == ["other-0" if one.source == "escaped" else one.source for one in emitted]
    first = page.run(f'{SPANS}.flatMap((one, at) => one.classList.contains("first") ? [at] : [])')
    assert len(first) == len(trace.steps)
    rows = page.run(
        '[...document.querySelectorAll("#sources tr")].map(row => [...row.cells].map(one => one.innerText))'
    )
    told = [(row[0].split()[-1], row[2], row[3]) for row in rows]
    expected = [(name, *(map(str, counts) if name != "model" else "--")) for name, counts in trace.by_source().items()]
    assert told == expected


def test_pointing_at_a_token_tells_about_it_and_a_click_keeps_it(page: browser.Page, tmp_path: Path) -> None:
    draft = Draft.chain([97, 98, 99], [0.9, 0.8, 0.7])
    origins = Draft.chain(range(3)).tokens.astype(int)
    trace = Trace([list(b"abcdef")], pieces=lambda ids: [bytes([one]) for one in ids])
    trace.steps = [Step(1, 0, draft, origins, origins + 7, [97, 98, 120], [0, 1], 0.001, 0.02, 0.003)]
    show(page, trace, tmp_path)
    page.point(f"{SPANS}[1]")
    details = page.run(DETAILS)
    for said in ('Token 2: "b"', "prompt", "0.800", "8 tokens before it", "token 2 of the prompt", "2 accepted"):
        assert said in details
    assert page.run('document.querySelector("#details mark").textContent') == "b"
    assert page.run('document.getElementById("tip").textContent') == "prompt · step 1 · match of 8 · probability 0.80"
    tree = page.run('[...document.querySelectorAll("#details .tree .token")].map(one => [one.textContent, one.title])')
    assert [text for text, _ in tree] == ["a", "b", "c"]
    assert [said.rpartition(", ")[2] for _, said in tree] == ["accepted", "accepted", "not accepted"]
    page.point(f"{SPANS}[2]", click=True)
    page.point(f"{SPANS}[0]")
    assert "Token 3" in page.run(DETAILS) and "model, not drafted" in page.run(DETAILS)


def test_the_keyboard_reaches_every_token_and_what_is_reached_is_said(page: browser.Page, tmp_path: Path) -> None:
    trace = trace_of(4, 9)
    show(page, trace, tmp_path)
    starts = [0]
    for step in trace.steps:
        starts.append(starts[-1] + len(step.tokens))
    page.run(f"{TEXT}.focus()")

    def chosen() -> int:
        (found,) = page.run(f'{SPANS}.flatMap((one, at) => one.classList.contains("chosen") ? [at] : [])')
        assert f"Token {found + 1}:" in page.run(DETAILS)
        return int(found)

    moves = {"Home": 0, "ArrowRight": 1, "End": starts[-1] - 1, "ArrowLeft": starts[-1] - 2}
    for key, expected in moves.items():
        page.key(key)
        assert chosen() == expected
    page.key("Home")
    for start in starts[1:-1]:
        page.key("ArrowDown")
        assert chosen() == start
    page.key("ArrowUp")
    assert chosen() == starts[-3]
    assert "step 8" in page.run('document.getElementById("said").textContent')
    assert page.run('document.getElementById("at").textContent') == "8 of 9"


def test_rows_and_sources_can_be_chosen(page: browser.Page, tmp_path: Path) -> None:
    trace = trace_of(6, 8, rows=2)
    show(page, trace, tmp_path)
    page.run('(one => { one.value = "1"; one.onchange({ target: one }); })(document.getElementById("row"))')
    texts = trace.texts([token for step in trace.row(1) for token in step.tokens])
    assert page.run(f"{SPANS}.map(one => one.textContent)") == texts
    page.point('document.querySelector("#sources button")', click=True)
    dim, model = (page.run(f'{SPANS}.filter(one => one.matches("{name}")).length') for name in (".dim", ".model"))
    assert dim == model > 0
    assert page.run('document.querySelector("#sources button").getAttribute("aria-pressed")') == "false"


@pytest.mark.parametrize("dark", [False, True])
def test_text_is_legible_in_light_and_dark(page: browser.Page, tmp_path: Path, dark: bool) -> None:
    show(page, trace_of(3, 12), tmp_path, dark=dark)
    contrast = """(() => {
        const pen = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
        const paint = (colours) => {
            pen.clearRect(0, 0, 1, 1);
            for (const colour of colours) { pen.fillStyle = colour; pen.fillRect(0, 0, 1, 1); }
            return [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3);
        };
        const light = (rgb) => rgb.map((one) => one / 255)
            .map((one) => one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4)
            .reduce((sum, one, at) => sum + one * [0.2126, 0.7152, 0.0722][at], 0);
        const paper = getComputedStyle(document.body).backgroundColor;
        return [...document.querySelectorAll("#text .token, #help, th, dt")].map((one) => {
            const style = getComputedStyle(one);
            const [a, b] = [paint([paper, style.backgroundColor]), paint([paper, style.color])].map(light);
            return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        });
    })()"""
    ratios = page.run(contrast)
    assert len(ratios) > 30 and min(ratios) >= 4.5  # WCAG 2.2, level AA
    dark_paper = 'getComputedStyle(document.body).backgroundColor !== "rgb(255, 255, 255)"'
    assert page.run(dark_paper) is dark
    for expected in (False, True):  # whatever the system says: first light, then dark
        page.point('document.getElementById("theme")', click=True)
        assert page.run(dark_paper) is expected


def test_sources_are_told_apart_without_colour(page: browser.Page, tmp_path: Path) -> None:
    show(page, trace_of(3, 12), tmp_path)
    look = """[...document.querySelectorAll("#sources .token")].map((one) => {
        const style = getComputedStyle(one);
        return [style.textDecorationLine, style.textDecorationStyle, style.fontWeight].join(" ");
    })"""
    looks = page.run(look)
    names = page.run('[...document.querySelectorAll("#sources th")].map(one => one.innerText.split(/\\s+/).pop())')
    assert len({said for said, name in zip(looks, names, strict=True) if name != "escaped"}) == len(names) - 1


def test_hostile_text_is_text(page: browser.Page, tmp_path: Path) -> None:
    show(page, hostile(), tmp_path)
    for token in range(9):
        page.point(f"{SPANS}[{token}]")
        assert page.run(f"{SPANS}[{token}].textContent") == HOSTILE[[*range(8), 3][token] % 5]
    time.sleep(0.1)
    assert page.run("[typeof window.hacked, document.images.length, document.scripts.length]") == ["undefined", 0, 2]
    assert page.errors == []


def test_a_trace_without_steps_is_a_page_too(page: browser.Page, tmp_path: Path) -> None:
    for trace in (Trace(), Trace([[1, 2, 3]])):
        show(page, trace, tmp_path)
        assert "Nothing was emitted" in page.run(f"{TEXT}.textContent")
        page.run(f"{TEXT}.focus()")
        page.key("ArrowDown")
        page.point('document.querySelector(".plot")', click=True)
        assert page.errors == []


def test_a_long_output_stays_usable(page: browser.Page, tmp_path: Path) -> None:
    trace = long_trace(200_000)
    assert show(page, trace, tmp_path) < 15  # 0.8 s on two cores of a server
    texts = trace.texts([token for step in trace.steps for token in step.tokens])
    assert page.run(f"{TEXT}.textContent.length") == len("".join(texts))
    page.run(f"{TEXT}.focus()")
    started = time.perf_counter()
    for key in ("End", "Home", "End", "ArrowUp"):
        page.key(key)
        page.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        assert page.run(f"{SPANS}.length") < 20_000
        (top, bottom), box = page.run(
            f"""[(one => [one.top, one.bottom])({TEXT}.querySelector(".chosen").getBoundingClientRect()),
            (one => [one.top, one.bottom])({TEXT}.getBoundingClientRect())]"""
        )
        assert box[0] <= top and bottom <= box[1] + 1
    assert time.perf_counter() - started < 15

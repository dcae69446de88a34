"""A trace as one page: the data, what draws it and how it looks, in a single file that fetches nothing.

The data stand in the page as JSON, column by column; all that the page writes it writes as text, and its policy
(Content-Security-Policy) runs no script but its own.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from .step import Step

if TYPE_CHECKING:
    from .record import Trace

__all__ = ["columns", "figures", "page"]


def page(trace: Trace) -> str:
    """Return the page."""
    template, style, *scripts = (files(__package__).joinpath("web", name).read_text("utf-8") for name in _FILES)
    script = "\n".join(scripts)
    data = json.dumps(columns(trace), ensure_ascii=False, separators=(",", ":"))
    parts = {
        "policy": f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}",
        "title": html.escape(f"lookahead trace: {trace.about.get('model', 'no name')}"),
        "style": style,
        "script": script,
        "data": re.sub("[<>&]", lambda found: f"\\u{ord(found[0]):04x}", data),  # nothing in it ends the element
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], template)


_FILES = ("page.html", "page.css", "columns.js", "text.js", "plots.js", "page.js")


def _hash(content: str) -> str:
    """Return the source expression that allows just this content."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


def columns(trace: Trace) -> dict[str, Any]:
    """Return what the page draws, with a list for each property of all steps, nodes and tokens of a row."""
    numbers = {source: number for number, source in enumerate(trace.sources)}
    drafted = dict.fromkeys(token for step in trace.steps for token in step.draft.tokens.tolist())
    pieces = {token: place for place, token in enumerate(drafted)}
    return {
        "about": trace.about,
        "note": trace.note,
        "figures": figures(trace),
        "sources": [[source, *counts] for source, counts in trace.by_source().items()],
        "pieces": [piece.decode("utf-8", "backslashreplace") for piece in trace.pieces(list(pieces))],
        "rows": [_row(trace, row, numbers, pieces) for row in range(len(trace.prompts))],
    }


def figures(trace: Trace) -> list[tuple[str, str]]:
    """Return the figures of a whole call, each with its name."""
    drafted = sum(len(step.draft) for step in trace.steps)
    accepted = sum(len(step.path) for step in trace.steps)
    draft, verify, rest = trace.seconds
    seconds = draft + verify + rest
    return [
        ("tokens", f"{trace.tokens:,}"),
        ("forwards", f"{trace.forwards:,}"),
        ("tokens per forward", f"{trace.tokens / max(1, trace.forwards):.2f}"),
        ("draft tokens accepted", f"{accepted:,} of {drafted:,} ({accepted / max(1, drafted):.0%})"),
        ("seconds", f"{seconds:.2f}"),
        ("tokens per second", f"{trace.tokens / seconds:.1f}" if seconds else "-"),
        ("draft / verify / rest", " / ".join(f"{one / (seconds or 1):.1%}" for one in (draft, verify, rest))),
    ]


def _row(trace: Trace, row: int, numbers: dict[str, int], pieces: dict[int, int]) -> dict[str, Any]:
    """Return the columns of one row."""
    steps = trace.row(row)
    tokens = [token for step in steps for token in step.tokens]
    nodes: dict[str, Any] = {
        "piece": [pieces[token] for step in steps for token in step.draft.tokens.tolist()],
        "parent": [parent for step in steps for parent in step.draft.parents.tolist()],
        "chance": [chance for step in steps for chance in _thousandths(step)],
        "source": [numbers[source] for step in steps for source in step.draft.sources],
        "place": [place for step in steps for place in step.places.tolist()],
        "length": [length for step in steps for length in step.lengths.tolist()],
    }
    return {
        "prompt": trace.texts(trace.prompts[row]),
        "texts": trace.texts(tokens),
        "steps": {
            "forward": [step.forward for step in steps],
            "drafted": [len(step.draft) for step in steps],
            "accepted": [len(step.path) for step in steps],
            "emitted": [len(step.tokens) for step in steps],
            "times": [
                [round(1e6 * one) for one in (step.draft_seconds, step.verify_seconds, step.rest_seconds)]
                for step in steps
            ],
        },
        "path": [node for step in steps for node in step.path],
        "nodes": nodes,
    }


def _thousandths(step: Step) -> list[int]:
    """Return the probabilities of a step's nodes in thousandths, which JSON writes short."""
    found: list[int] = np.rint(1000 * np.clip(np.nan_to_num(step.draft.probs), 0, 1)).astype(int).tolist()
    return found

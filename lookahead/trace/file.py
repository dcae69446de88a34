"""Traces as files: JSON Lines, a header and then one line for each step.

The header names format and version and holds the prompts, the names of the sources and every token's text: a string, or
a list of bytes where a token is only a part of a character. A step's draft has one list for each property of its nodes;
sources are numbers of the header's list.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..tree import Draft
from .step import Step

if TYPE_CHECKING:
    from .record import Trace

__all__ = ["Parts", "Pieces", "read", "write"]

FORMAT, VERSION = "lookahead-trace", 1

Pieces = Callable[[list[int]], list[bytes]]
"""Gives the bytes that each token adds to the text."""


class Parts(NamedTuple):
    """What a trace is made of; see `Trace`."""

    prompts: list[list[int]]
    steps: list[Step]
    pieces: Pieces
    about: dict[str, str]
    note: str | None


def write(trace: Trace, path: Path) -> None:
    """Write a trace to a file."""
    with path.expanduser().open("w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in _lines(trace))


def read(path: Path) -> Parts:
    """Read a trace from a file.

    Raises
    ------
    ValueError
        For a file that cannot be read, is no trace, is damaged, or comes from a later version.
    """
    try:
        with path.expanduser().open(encoding="utf-8") as file:
            return _parse(file, str(path))
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror or error}; {_ALLOWED}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not text in UTF-8 (byte {error.start}); {_ALLOWED}") from error


_ALLOWED = "give a file that Trace.save or lookahead run --trace has written"


def _lines(trace: Trace) -> Iterator[str]:
    """Yield a trace's lines, without ends."""
    used = dict.fromkeys(token for prompt in trace.prompts for token in prompt)
    for step in trace.steps:
        used.update(dict.fromkeys([*step.draft.tokens.tolist(), *step.tokens]))
    ids, numbers = list(used), {source: number for number, source in enumerate(trace.sources)}
    header = {
        "format": FORMAT,
        "version": VERSION,
        "about": trace.about,
        "note": trace.note,
        "sources": list(numbers),
        "prompts": trace.prompts,
        "pieces": {str(one): _text(piece) for one, piece in zip(ids, trace.pieces(ids), strict=True)},
    }
    yield _json(header)
    for step in trace.steps:
        yield _json(_plain(step, numbers))


def _json(value: Any) -> str:
    """Return a value on one line."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _text(piece: bytes) -> str | list[int]:
    """Return bytes as text, or as they are where they are only a part of a character."""
    try:
        return piece.decode()
    except UnicodeDecodeError:
        return list(piece)


def _plain(step: Step, numbers: dict[str, int]) -> dict[str, Any]:
    """Return a step as JSON has it."""
    draft = step.draft
    return {
        "forward": step.forward,
        "row": step.row,
        "seconds": [round(one, 7) for one in (step.draft_seconds, step.verify_seconds, step.rest_seconds)],
        "tokens": step.tokens,
        "path": step.path,
        "draft": {
            "tokens": draft.tokens.tolist(),
            "parents": draft.parents.tolist(),
            "probs": [round(prob, 5) for prob in np.nan_to_num(draft.probs).tolist()],
            "sources": [numbers[source] for source in draft.sources],
            "places": step.places.tolist(),
            "lengths": step.lengths.tolist(),
        },
    }


def _parse(given: Iterable[str], name: str) -> Parts:
    """Return the trace of some lines."""
    rows = iter(enumerate(given, 1))
    header = _header(next(rows, (1, ""))[1], name)
    try:
        pieces = {int(one): _bytes(text) for one, text in header["pieces"].items()}
        prompts = [[int(token) for token in prompt] for prompt in header["prompts"]]
        sources = [_sound(source) for source in header["sources"]]
        about = {_sound(key): _sound(value) for key, value in header["about"].items()}
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise ValueError(f"the header of {name} is damaged ({error}); {_ALLOWED}") from error
    steps = list[Step]()
    for number, line in rows:
        try:
            steps.append(_step(json.loads(line), sources, len(prompts)))
        except (KeyError, TypeError, ValueError, IndexError, OverflowError, RecursionError) as error:
            raise ValueError(f"line {number} of {name} is damaged ({error}); {_ALLOWED}") from error
    note = None if header.get("note") is None else _sound(header["note"])
    return Parts(prompts, steps, lambda ids: [pieces.get(one, b"") for one in ids], about, note)


def _header(line: str, name: str) -> dict[str, Any]:
    """Return the header."""
    try:
        header = json.loads(line)
    except (ValueError, RecursionError):
        header = None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ValueError(f"{name} is no trace; {_ALLOWED}")
    if header.get("version") != VERSION:
        raise ValueError(
            f"{name} has version {header.get('version')!r} of the format, and version {VERSION} is known; install the "
            "release of hf-lookahead that wrote it, or record it anew"
        )
    return header


def _sound(text: Any) -> str:
    """Return text that can be written as UTF-8: JSON also knows halves of characters."""
    return str(text).encode("utf-8", "replace").decode()


def _bytes(text: Any) -> bytes:
    """Return the bytes of a token."""
    return text.encode("utf-8", "replace") if isinstance(text, str) else bytes(text)


def _step(plain: dict[str, Any], sources: list[str], rows: int) -> Step:
    """Return the step that JSON tells of; raise for one that cannot be."""
    nodes, path = plain["draft"], [int(node) for node in plain["path"]]
    draft = Draft(
        np.asarray(nodes["tokens"], np.int32),
        np.asarray(nodes["parents"], np.int32),
        np.asarray(nodes["probs"], np.float32),
        tuple(sources[number] for number in nodes["sources"]),
    )
    places, lengths = (np.asarray(nodes[name], np.int64) for name in ("places", "lengths"))
    tokens, row = [int(token) for token in plain["tokens"]], int(plain["row"])
    times = [float(one) for one in plain["seconds"]]
    before = np.arange(-1, len(draft) - 1)
    _demand(len(places) == len(lengths) == len(draft), "places and lengths are as many as tokens")
    _demand(bool(((draft.parents >= -1) & (draft.parents <= before)).all()), "a parent stands before its children")
    _demand(0 <= row < rows and len(times) == 3, "a row has a prompt, and a step three times")
    _demand(all(map(math.isfinite, [*times, *draft.probs.tolist()])), "times and probabilities are finite")
    known = draft.tokens.tolist()
    _demand(all(0 <= node < len(draft) for node in path), "the path leads through the draft")
    _demand([known[node] for node in path] == tokens[: len(path)], "the path's tokens were emitted")
    return Step(int(plain["forward"]), row, draft, places, lengths, tokens, path, *times)


def _demand(holds: bool, rule: str) -> None:
    """Raise where a rule is broken."""
    if not holds:
        raise ValueError(f"broken is the rule that {rule}")

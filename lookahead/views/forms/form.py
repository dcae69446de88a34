"""The two nouns of this room: a `Passage` is read out of a text, a `Form` reads and writes one surface form."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

LEAST_LINES = 3  # with content; a shorter passage is not worth a document of its own


@dataclass(frozen=True)
class Passage:
    r"""Plain lines that a text holds in some surface form.

    Attributes
    ----------
    form : str
        Name of the form it was read from, ``"plain"`` for text as it is.
    lines : tuple of str
        Plain lines without their newline; a ``"\r"`` before it belongs to the line.
    starts : tuple of int, one for each line
        Offset in the text at which the surface of the line begins, its number or prefix included.
    """

    form: str
    lines: tuple[str, ...]
    starts: tuple[int, ...]


@dataclass(frozen=True)
class Form:
    r"""One surface form of text.

    Attributes
    ----------
    name : str
        Its name, which users see as the source ``"view:json"`` of a draft's token.
    write : callable
        Plain lines to surface lines, one for one.
    joint : str
        Stands between two surface lines: a newline, or ``\n`` in two characters within a string.
    read : callable
        Every passage of a text that stands in this form; forms that are found together share one reader, and the
        passages tell which form it was. Linear in time, never raises.
    openings : tuple of str
        Strings which say, where an answer holds them, that this form is being written there.
    lead : str
        What usually stands right before the first line; tokenized with the lines, so that the border is a natural one.
    quote : str
        Where set, a known line in a string between such quotes says so, too.
    """

    name: str
    write: Callable[[Sequence[str]], list[str]]
    joint: str
    read: Callable[[str], list[Passage]]
    openings: tuple[str, ...]
    lead: str = ""
    quote: str = ""


def surface(form: Form, lines: Sequence[str]) -> tuple[str, list[int]]:
    """Write plain lines in a form, after its lead.

    Returns
    -------
    text : str
        The surface.
    starts : list of int, one for each line
        Offset in `text` at which the surface of the line begins.

    """
    written = form.write(lines)
    return form.lead + form.joint.join(written), offsets(written, len(form.lead), len(form.joint))


def offsets(lines: Sequence[str], first: int = 0, joint: int = 1) -> list[int]:
    """Return where each line begins when the first one begins at `first` and `joint` characters stand between two."""
    return list(accumulate((len(line) + joint for line in lines[:-1]), initial=first)) if lines else []


def passages(form: str, lines: Sequence[str], starts: Sequence[int]) -> list[Passage]:
    """Return the lines as the one passage of a list, or the empty list when too few of them have content."""
    content = 0
    for line in lines:
        content += bool(line) and not line.isspace()
        if content == LEAST_LINES:
            return [Passage(form, tuple(lines), tuple(starts))]
    return []

"""Formats that say the same passage twice: after the second opening the text behind the first one comes again."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["PAIRS"]

# (first opening, second opening): what is searched for, and what replaces it, mostly begin and end alike.
_PLAIN = (
    ("<<<<<<< SEARCH\n", "=======\n"),
    ("--- a/", "+++ b/"),
    ('"old_str": "', '"new_str": "'),
    ('"old_string": "', '"new_string": "'),
    ('"old_text": "', '"new_text": "'),
    ('"search": "', '"replace": "'),
    ("<old_str>", "<new_str>"),
    ("<old_string>", "<new_string>"),
    ("<search>", "<replace>"),
    ("<parameter=old_str>", "<parameter=new_str>"),
    ('<parameter name="old_str">', '<parameter name="new_str">'),
    ('<parameter name="old_string">', '<parameter name="new_string">'),
)


def _spaceless(opening: str) -> str:
    """Write JSON without spaces."""
    return opening.replace('": "', '":"')


def _escaped(opening: str) -> str:
    """Write JSON in a JSON string."""
    return opening.replace('"', '\\"')


_WAYS: tuple[Callable[[str], str], ...] = (_spaceless, _escaped, lambda opening: _escaped(_spaceless(opening)))
PAIRS: tuple[tuple[str, str], ...] = _PLAIN + tuple(
    (way(first), way(second)) for first, second in _PLAIN if '": "' in first for way in _WAYS
)

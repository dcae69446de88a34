"""The forms that are known: each is one small file beside this one, and one name in `FORMS`."""

from __future__ import annotations

from .diff import ADDED, CONTEXT, REMOVED
from .entities import ENTITIES, ENTITIES_QUOTED
from .fenced import PLAIN
from .form import Form
from .indented import INDENTED
from .indented import named as indented_named
from .json_strings import JSON, JSON_ASCII, JSON_TWICE
from .literals import SINGLE
from .numbered import ARROW, BAR, COLON, COLUMN, LETTER, NUMBERED
from .numbered import named as numbered_named
from .quoted import QUOTED

FORMS: tuple[Form, ...] = (
    *(PLAIN, INDENTED, QUOTED),
    *(JSON, JSON_ASCII, JSON_TWICE),
    *(CONTEXT, REMOVED, ADDED),
    *(NUMBERED, ARROW, BAR, COLUMN, COLON, LETTER),
    *(ENTITIES, ENTITIES_QUOTED, SINGLE),
)
_KNOWN = {each.name: each for each in FORMS}


def form(name: str) -> Form:
    """Return the form of a name, also ``"indented_8"`` and the like.

    Raises
    ------
    ValueError
        When no form has that name.

    """
    found = _KNOWN.get(name) or indented_named(name) or numbered_named(name)
    if found is None:
        raise ValueError(f"name is {name!r}; allowed is one of {', '.join(_KNOWN)}, or 'indented_' with a number")
    return found

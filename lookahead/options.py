"""Everything that can be set, each field checked once, here."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

__all__ = ["Options"]

_PHRASES, _PHRASE_BYTES = 4096, 1_000_000


@dataclass(frozen=True)
class Options:
    """Settings of drafting; the defaults ask for no tuning.

    Attributes
    ----------
    budget : int
        Most tokens drafted in one step, 0 to 4096 (0 drafts nothing: plain decoding through the same loop).
    cost : str, callable or None
        What a forward with k draft tokens costs: ``"linear:0.03"`` for 1 + 0.03 k, or a function of k that does not
        fall. None has it measured while the model runs; a given one makes runs repeat whatever the clock says.
    recycling : bool
        Draft also what the model almost said when it last said the same token, for text that is no copy.
    tree : bool
        Draft several branches where one forward of the model can verify them; False drafts chains only.
    max_bytes : int or None
        Cap on the memory of the index, in bytes, 65,536 and above; beyond it the oldest tokens are forgotten. None
        sets no cap.
    phrases : sequence of str
        Texts that are drafted from their first few tokens on, whether or not the prompt holds them: licence texts,
        headers of imports, what a format dictates; a tuple in the end. At most 4096 of at most a million bytes in
        all; they need a tokenizer.

    Raises
    ------
    ValueError
        When a value is out of its range.
    TypeError
        When a value is of another type.
    """

    budget: int = 128
    cost: str | Callable[[int], float] | None = None
    recycling: bool = True
    tree: bool = True
    max_bytes: int | None = None
    phrases: Sequence[str] = ()

    def __post_init__(self) -> None:
        """Check every field."""
        _require("budget", self.budget, int, lambda value: 0 <= value <= 4096, "an int from 0 to 4096")
        if self.cost is not None and not callable(self.cost):
            allowed = "None, a function of the number of draft tokens, or 'linear:' and a number of 0 and above"
            _require("cost", self.cost, str, _is_linear, allowed)
        _require("recycling", self.recycling, bool, lambda value: True, "True or False")
        _require("tree", self.tree, bool, lambda value: True, "True or False")
        if self.max_bytes is not None:
            allowed = "an int of 65536 and above, or None for no cap"
            _require("max_bytes", self.max_bytes, int, lambda value: value >= 65536, allowed)
        _check_phrases(self.phrases)
        object.__setattr__(self, "phrases", tuple(self.phrases))

    @classmethod
    def of(cls, given: dict[str, Any]) -> Options:
        """Build options from keywords, and name the known ones when a keyword is unknown."""
        known = [field.name for field in fields(cls)]
        unknown = sorted(set(given) - set(known))
        if unknown:
            raise TypeError(f"unknown option {', '.join(unknown)}; the options are {', '.join(known)}")
        return cls(**given)


def _check_phrases(phrases: Any) -> None:
    """Raise for phrases that are none, too many or too long."""
    allowed = f"a list of at most {_PHRASES} texts, none of them empty, of at most {_PHRASE_BYTES} bytes in all"
    if not isinstance(phrases, (list, tuple)):
        raise TypeError(f"phrases={phrases!r:.60} is of type {type(phrases).__name__}; allowed is {allowed}")
    wrong = [one for one in phrases if not isinstance(one, str)]
    if wrong:
        raise TypeError(f"phrases hold {wrong[0]!r:.60} of type {type(wrong[0]).__name__}; allowed is {allowed}")
    size = sum(len(phrase.encode("utf-8", "replace")) for phrase in phrases)
    bad = sum(not phrase.strip() or any("\ud800" <= one <= "\udfff" for one in phrase) for phrase in phrases)
    if len(phrases) > _PHRASES or size > _PHRASE_BYTES or bad:
        raise ValueError(
            f"phrases are {len(phrases)} texts of {size} bytes, {bad} of them empty or no Unicode; allowed is {allowed}"
            ": leave out the rarest, or have lookahead.phrases.mine choose"
        )


def _is_linear(value: str) -> bool:
    """Whether a cost is written as it should be."""
    return bool(re.fullmatch(r"linear:(\d+(\.\d*)?|\.\d+)(e-?\d+)?", value))


def _require(name: str, value: Any, kind: type, in_range: Any, allowed: str) -> None:
    """Raise when an option has the wrong type (an int serves as a float, a bool as nothing else) or is out of range."""
    kinds = (int, float) if kind is float else kind
    if not isinstance(value, kinds) or (isinstance(value, bool) and kind is not bool):
        raise TypeError(f"{name}={value!r} is of type {type(value).__name__}; allowed is {allowed}")
    if not in_range(value):
        raise ValueError(f"{name}={value!r} is out of range; allowed is {allowed}")

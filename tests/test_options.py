from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from lookahead import Drafter, Lookahead, Options
from lookahead.index.corpus import SMALLEST_CAP

DEFAULTS = {"budget": 128, "cost": None, "recycling": True, "tree": True, "max_bytes": None, "phrases": ()}


def test_the_defaults() -> None:
    assert dataclasses.asdict(Options()) == DEFAULTS
    assert Options.of({}) == Options()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("budget", 0),
        ("budget", 1),
        ("budget", 4096),
        ("cost", "linear:0"),
        ("cost", "linear:.03"),
        ("cost", "linear:2e-3"),
        ("cost", None),
        ("recycling", False),
        ("recycling", True),
        ("tree", False),
        ("tree", True),
        ("max_bytes", SMALLEST_CAP),
        ("max_bytes", 10**12),
        ("max_bytes", None),
    ],
)
def test_what_is_allowed(name: str, value: Any) -> None:
    assert getattr(Options.of({name: value}), name) == value
    Drafter(**{name: value}).begin([1, 2, 3])


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("budget", -1, "an int from 0 to 4096"),
        ("budget", 4097, "an int from 0 to 4096"),
        ("cost", "linear:-1", "'linear:' and a number of 0 and above"),
        ("cost", "linear:", "'linear:' and a number of 0 and above"),
        ("cost", "square:1", "'linear:' and a number of 0 and above"),
        ("cost", "linear:nan", "'linear:' and a number of 0 and above"),
        ("max_bytes", 0, "None for no cap"),
        ("max_bytes", -5, "None for no cap"),
        ("max_bytes", SMALLEST_CAP - 1, f"an int of {SMALLEST_CAP} and above"),
    ],
)
def test_what_is_out_of_range(name: str, value: Any, allowed: str) -> None:
    with pytest.raises(ValueError, match=f"^{name}={value!r} is out of range; allowed is .*{allowed}"):
        Options.of({name: value})


@pytest.mark.parametrize(
    ("name", "value", "kind"),
    [
        ("budget", 64.0, "float"),
        ("budget", "64", "str"),
        ("budget", None, "NoneType"),
        ("budget", True, "bool"),
        ("budget", np.int64(64), "int64"),
        ("cost", 0.03, "float"),
        ("cost", [1.0], "list"),
        ("cost", True, "bool"),
        ("tree", 1, "int"),
        ("tree", None, "NoneType"),
        ("tree", "yes", "str"),
        ("max_bytes", 1e6, "float"),
        ("max_bytes", "1 GB", "str"),
        ("max_bytes", True, "bool"),
        ("phrases", "one text", "str"),
        ("phrases", None, "NoneType"),
    ],
)
def test_what_is_of_the_wrong_type(name: str, value: Any, kind: str) -> None:
    with pytest.raises(TypeError, match=f"^{name}=.* is of type {kind}; allowed is "):
        Options.of({name: value})


@pytest.mark.parametrize("make", [lambda **given: Options.of(given), Drafter, Lookahead])
def test_an_unknown_option_is_named_and_the_known_ones_with_it(make: Any) -> None:
    known = "budget, cost, recycling, tree, max_bytes, phrases"
    with pytest.raises(TypeError, match=f"unknown option beams, num_tokens; the options are {known}"):
        make(num_tokens=5, beams=2, budget=3)


def test_options_are_equal_by_value_and_do_not_change() -> None:
    assert Options(budget=3) == Options(budget=3) != Options()
    assert hash(Options(budget=3)) == hash(Options(budget=3))
    with pytest.raises(dataclasses.FrozenInstanceError):
        Options().budget = 3  # type: ignore[misc]


def test_phrases_become_a_tuple() -> None:
    assert Options(phrases=["one", "two"]).phrases == ("one", "two")


@pytest.mark.parametrize("phrases", [[""], ["one", " \n"], ["\ud83d"], ["a"] * 4097, ["word " * 200_001]])
def test_phrases_that_are_empty_or_too_many_or_too_long(phrases: list[str]) -> None:
    with pytest.raises(ValueError, match="allowed is a list of at most 4096 texts, none of them empty"):
        Options(phrases=phrases)


def test_phrases_of_which_one_is_no_text() -> None:
    with pytest.raises(TypeError, match="phrases hold 3 of type int; allowed is a list"):
        Options(phrases=["one", 3])  # type: ignore[list-item]


@pytest.mark.parametrize("make", [Drafter, Lookahead])
def test_phrases_need_a_tokenizer(make: Any) -> None:
    with pytest.raises(ValueError, match="got 1 phrases but no tokenizer; .*make the Drafter"):
        make(phrases=["one"])

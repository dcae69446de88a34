"""The places of a stream in the order of what stands before them: a suffix array of the stream read backwards."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["places_in_order", "sorter"]

_CHUNK = 1 << 24  # bytes taken at a time, to need little memory beside the large arrays


def places_in_order(tokens: NDArray[np.int32]) -> NDArray[np.int32]:
    """Sort the places of a stream by what stands before them, read backwards, int32 [places].

    A place is one where a token stands behind a token; borders (-1) come before all tokens. The sorting is done by
    libdivsufsort (Fischer and Kurpicz 2017, Dismantling DivSufSort), which sorts bytes: each token is written as two or
    three of them, the greatest first, and the suffixes that begin inside a token are left out afterwards.

    Raises
    ------
    ModuleNotFoundError
        Without the package pydivsufsort; its message says what to install.
    """
    divsufsort = sorter()
    width = next(size for size in (1, 2, 3, 4) if int(tokens.max(initial=0)) + 1 < 256**size)
    suffixes = divsufsort(_backwards(tokens, width))
    return _places(tokens, suffixes, width)


def sorter() -> Any:
    """Return the function that sorts the suffixes of bytes.

    Raises
    ------
    ModuleNotFoundError
        Without the package pydivsufsort; its message says what to install.
    """
    try:
        return importlib.import_module("pydivsufsort").divsufsort
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "building a corpus needs the package pydivsufsort; run: pip install 'hf-lookahead[index]'",
            name="pydivsufsort",
        ) from error


def _backwards(tokens: NDArray[np.int32], width: int) -> NDArray[np.uint8]:
    """Write a stream backwards as bytes, `width` for a token, which sort as the tokens do."""
    written = np.empty((tokens.size, width), np.uint8)
    for begin in range(0, tokens.size, _CHUNK):
        chunk = tokens[::-1][begin : begin + _CHUNK] + 1
        for place in range(width):
            written[begin : begin + _CHUNK, place] = chunk >> 8 * (width - 1 - place)
    return written.ravel()


def _places(tokens: NDArray[np.int32], suffixes: NDArray[Any], width: int) -> NDArray[np.int32]:
    """Return the place behind the token where each suffix begins, where a token stands behind a token."""
    found = []
    for begin in range(0, suffixes.size, _CHUNK):
        chunk = suffixes[begin : begin + _CHUNK]
        places = tokens.size - (chunk[chunk % width == 0] // width).astype(np.int64)
        places = places[places < tokens.size]
        found.append(places[(tokens[places] >= 0) & (tokens[places - 1] >= 0)].astype(np.int32))
    return np.concatenate(found)

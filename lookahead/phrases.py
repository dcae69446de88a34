"""Phrases mined from texts, to be drafted from their first tokens on: ``Lookahead(tokenizer, phrases=mine(...))``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .views.tokens import Tokens

__all__ = ["mine"]

_WINDOW = 8  # tokens of the shortest phrase
_LONGEST = 512  # tokens of the longest
_FACTOR = np.uint64(0x9E3779B97F4A7C15)


def mine(
    texts: Iterable[str], tokenizer: Any, *, count: int = 256, max_bytes: int = 65_536, least: int = 3
) -> list[str]:
    """Return passages that many of the texts hold, those that promise most first.

    A phrase is a stretch of 8 to 512 tokens of which all 8 in a row stand in at least `least` of the texts. What it
    promises is its length times the number of texts. A phrase of which half is known from better ones is left out.

    Parameters
    ----------
    texts : iterable of str
        Files, answers, ... of the kind that will be written.
    tokenizer : PreTrainedTokenizerBase
        The model's tokenizer.
    count, max_bytes : int
        Phrases at most, and bytes of all of them at most; 1 and above.
    least : int
        Texts that hold a phrase, at least; 2 and above.

    Raises
    ------
    ValueError
        When a number is out of its range.
    TypeError
        When the texts are one text, or hold what is none, or for what is no tokenizer.
    """
    for name, given, lowest in (("count", count, 1), ("max_bytes", max_bytes, 1), ("least", least, 2)):
        if given < lowest:
            raise ValueError(f"{name}={given} is out of range; allowed is {lowest} and above")
    tokens, known = Tokens.of(tokenizer), _checked(texts)
    encoded = tokens.encode_all(known) if known else []
    found, taken = list[str](), 0
    for ids in _chosen(encoded, least, count * 2):
        phrase = b"".join(tokens.pieces(ids.tolist())).decode("utf-8", "ignore").strip()
        size = len(phrase.encode())
        if phrase and phrase not in found and taken + size <= max_bytes and len(found) < count:
            found.append(phrase)
            taken += size
    return found


def _checked(texts: Iterable[str]) -> list[str]:
    """Return the texts as a list."""
    known = [texts] if isinstance(texts, str) else list(texts)
    wrong = [text for text in known if not isinstance(text, str)]
    if isinstance(texts, str) or wrong:
        given = f"one text of {len(texts)} characters" if isinstance(texts, str) else f"{wrong[0]!r:.60} among them"
        raise TypeError(f"got {given}; allowed is a list of texts, such as the contents of some files")
    return [text.encode("utf-8", "replace").decode() for text in known]  # no tokenizer takes halves of characters


def _chosen(encoded: list[NDArray[np.int32]], least: int, count: int) -> Iterable[NDArray[np.int32]]:
    """Yield the stretches that promise most, each mostly new."""
    windows = [_windows(ids) for ids in encoded]
    if not sum(map(len, windows)):
        return
    distinct = np.concatenate([np.unique(each) for each in windows])
    frequent, counts = np.unique(distinct, return_counts=True)
    frequent, counts = frequent[counts >= least], counts[counts >= least]
    stretches = [
        (int(texts.min()) * (end - begin), number, begin, end)
        for number, each in enumerate(windows)
        for begin, end, texts in _stretches(each, frequent, counts)
    ]
    known, given = set[int](), 0
    for _, number, begin, end in sorted(stretches, key=lambda one: (-one[0], one[1:])):
        hashes = windows[number][begin : end - _WINDOW + 1].tolist()
        if 2 * sum(one in known for one in hashes) < len(hashes):
            known.update(hashes)
            yield encoded[number][begin:end]
            given += 1
        if given == count:
            return


def _windows(ids: NDArray[np.int32]) -> NDArray[np.uint64]:
    """Return a number for every 8 tokens in a row, uint64 [n - 7], the same for the same (Karp and Rabin 1987)."""
    size = max(0, len(ids) - _WINDOW + 1)
    found = np.zeros(size, np.uint64)
    for offset in range(_WINDOW):
        found = (found + ids[offset : offset + size].astype(np.uint64) + np.uint64(1)) * _FACTOR
        found ^= found >> np.uint64(29)
    return found


def _stretches(
    windows: NDArray[np.uint64], frequent: NDArray[np.uint64], counts: NDArray[np.int64]
) -> Iterable[tuple[int, int, NDArray[np.int64]]]:
    """Yield first token, token behind the last, and texts that hold each window, of stretches of frequent windows."""
    if not len(frequent) or not len(windows):
        return
    at = np.minimum(np.searchsorted(frequent, windows), len(frequent) - 1)
    texts = np.where(frequent[at] == windows, counts[at], 0)
    borders = np.flatnonzero(np.diff(texts > 0, prepend=False, append=False))
    for begin, end in zip(borders[::2].tolist(), borders[1::2].tolist(), strict=True):
        for start in range(begin, end, _LONGEST):
            stop = min(end, start + _LONGEST - _WINDOW + 1)
            yield start, stop + _WINDOW - 1, texts[start:stop]

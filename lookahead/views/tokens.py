"""The tokenizer border: text to ids and back, the only file that calls a tokenizer."""

from __future__ import annotations

import hashlib
import json
import re
import weakref
from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Tokens"]

_made: weakref.WeakKeyDictionary[Any, Tokens] = weakref.WeakKeyDictionary()
_BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")


class Tokens:
    """What a tokenizer makes of text, and which bytes each of its tokens stands for.

    Knows the three kinds of fast tokenizers: bytes written as printable characters (GPT-2 and most since),
    SentencePiece's ``▁`` for a space with ``<0x0A>`` for bytes, and WordPiece's ``##`` for a word that goes on.

    Parameters
    ----------
    tokenizer : PreTrainedTokenizerBase
        Called as transformers' tokenizers are; the caller keeps it alive.
    """

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = weakref.proxy(tokenizer)  # what is made for a tokenizer must not keep it alive
        self._known: dict[int, bytes] = {}
        self._fixed: dict[str, NDArray[np.int32]] = {}
        self._added = frozenset(tokenizer.added_tokens_decoder)
        decoder = getattr(getattr(tokenizer, "backend_tokenizer", None), "decoder", None)
        kind = decoder.__getstate__() if decoder is not None else b""
        self._is_byte_level = b'"ByteLevel"' in kind
        self._is_word_piece = b'"WordPiece"' in kind

    @classmethod
    def of(cls, tokenizer: Any) -> Tokens:
        """Return the one object of a tokenizer, or of the one in a processor; it remembers what it has looked up.

        Raises
        ------
        TypeError
            For what does not work as transformers' tokenizers do.
        """
        if not hasattr(tokenizer, "convert_ids_to_tokens"):
            tokenizer = getattr(tokenizer, "tokenizer", tokenizer)
        if not (hasattr(tokenizer, "convert_ids_to_tokens") and hasattr(tokenizer, "added_tokens_decoder")):
            raise TypeError(
                f"{type(tokenizer).__name__} is no tokenizer; allowed is a fast tokenizer of transformers, such as "
                "AutoTokenizer.from_pretrained gives, or None to draft on token ids alone"
            )
        found = _made.get(tokenizer)
        if found is None:
            found = _made[tokenizer] = cls(tokenizer)
        return found

    def encode(self, text: str) -> NDArray[np.int32]:
        """Return the ids of a text, int32 [n], without special tokens."""
        return self.encode_all([text])[0]

    def encode_within(self, texts: Sequence[str]) -> list[NDArray[np.int32]]:
        """Return the ids of each text, int32 [n], as it is said within an answer: no space is put before it."""
        if not self._adds_space:
            return self.encode_all([*texts])
        lines = self.encode_all([f"\n{text}" for text in texts])
        begins = [
            next((at for at, piece in enumerate(self.pieces(ids.tolist())) if piece == b"\n"), -1) for ids in lines
        ]
        return [
            ids[at + 1 :] if at >= 0 else self.encode(text) for ids, at, text in zip(lines, begins, texts, strict=True)
        ]

    @cached_property
    def _adds_space(self) -> bool:
        """Whether a space is put before a text, as SentencePiece does."""
        return b"".join(self.pieces(self.encode("x").tolist())).startswith(b" ")

    def begins(self, text: bytes, ids: NDArray[np.int32]) -> list[int]:
        """Return the byte of a text at which each of its tokens begins."""
        pieces = self.pieces(ids.tolist())
        ends = accumulate(map(len, pieces), initial=min(0, len(text) - sum(map(len, pieces))))  # but for a space added
        return [max(0, end) for end in ends][:-1]

    def encode_all(self, texts: list[str]) -> list[NDArray[np.int32]]:
        """Return the ids of each text, int32 [n], without special tokens; several at once take less time."""
        backend: Any = getattr(self._tokenizer, "backend_tokenizer", None)
        if hasattr(backend, "encode_batch_fast") and backend.padding is None and backend.truncation is None:
            ids = [each.ids for each in backend.encode_batch_fast(texts, add_special_tokens=False)]
        else:
            ids = [self._tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"] for text in texts]
        return [np.asarray(each, dtype=np.int32) for each in ids]

    @property
    def fingerprint(self) -> str:
        """A hash of all that decides which ids a text gets, 32 hexadecimal digits.

        It covers the vocabulary, merges, normalizer, pre-tokenizer and added tokens as they are now; not special tokens
        put around a text, padding and truncation. Takes about a second for each million entries of the vocabulary.
        """
        backend: Any = getattr(self._tokenizer, "backend_tokenizer", None)
        if hasattr(backend, "to_str"):
            whole = json.loads(backend.to_str())
            parts = [whole[name] for name in ("added_tokens", "normalizer", "pre_tokenizer", "model")]
        else:
            added = {number: repr(token) for number, token in self._tokenizer.added_tokens_decoder.items()}
            parts = [self._tokenizer.__class__.__qualname__, self._tokenizer.get_vocab(), added]
        text = json.dumps(parts, sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    def encode_fixed(self, text: str) -> NDArray[np.int32]:
        """Return the ids of a text that comes up again and again, as of a format."""
        if text not in self._fixed:
            if len(self._fixed) >= 1024:
                self._fixed.clear()
            self._fixed[text] = self.encode_within([text])[0]
        return self._fixed[text]

    def pieces(self, ids: Sequence[int]) -> list[bytes]:
        """Return the bytes, in UTF-8, that each token adds to the text; a space between words belongs to the later."""
        known = self._known
        try:
            return [known[one] for one in ids]
        except KeyError:
            missing = [one for one in dict.fromkeys(ids) if one not in known]
        texts = self._tokenizer.convert_ids_to_tokens(missing)
        known.update((one, self._piece(one, text)) for one, text in zip(missing, texts, strict=True))
        return [known[one] for one in ids]

    def _piece(self, one: int, text: str | None) -> bytes:
        """Translate one token of the vocabulary; an id beyond it stands for nothing."""
        if text is None:
            return b""
        if (byte := _BYTE.fullmatch(text)) and not self._is_byte_level:
            return bytes([int(byte[1], 16)])
        if one in self._added:
            return text.encode()
        if self._is_byte_level:
            return b"".join(_BYTES.get(character, character.encode()) for character in text)
        if self._is_word_piece:
            return text[2:].encode() if text.startswith("##") else b" " + text.encode()
        return text.replace("\u2581", " ").encode()


def _printable_bytes() -> dict[str, bytes]:
    """Return the byte that each character of a byte-level vocabulary stands for (GPT-2's table).

    Printable bytes stand for themselves, the others follow from U+0100 on, in order.
    """
    plain = [*range(ord("!"), ord("~") + 1), *range(ord("\u00a1"), ord("\u00ac") + 1), *range(ord("\u00ae"), 256)]
    table = {chr(byte): bytes([byte]) for byte in plain}
    others = [byte for byte in range(256) if byte not in plain]
    return table | {chr(256 + place): bytes([byte]) for place, byte in enumerate(others)}


_BYTES = _printable_bytes()

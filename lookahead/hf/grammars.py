"""Answers that follow a JSON schema or a structural tag, through xgrammar."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

__all__ = ["Grammars"]

_INSTALL = "answers in JSON need the package xgrammar; run: pip install 'hf-lookahead[grammars]'"
_KEPT_BYTES = 2**28  # of compiled grammars
_DEPTH, _WIDTH, _PARTS, _LENGTH = 64, 256, 4000, 200_000  # beyond them xgrammar may compile for minutes


class Grammars:
    """Compiles JSON schemas for one model and its tokenizer, one at a time; the last ones are kept by xgrammar.

    Parameters
    ----------
    model : PreTrainedModel
    tokenizer : PreTrainedTokenizerBase
    """

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self._model, self._tokenizer = model, tokenizer
        self._compiler: Any = None
        self._lock = threading.Lock()

    def of_json(self, schema: Any = None) -> Callable[[], Any]:
        """Return what makes the logits processor of an answer: any JSON object, or JSON of a schema.

        Raises
        ------
        ValueError
            For a schema that xgrammar does not understand or that is too large, and where it is not installed.
        """
        wanted = {"type": "object"} if schema is None else schema
        return self._processors("compile_json_schema", wanted, any_whitespace=schema is None)

    def of_tag(self, tag: dict[str, Any]) -> Callable[[], Any]:
        """Return what makes the logits processor of an answer in the form of a structural tag of xgrammar.

        Raises
        ------
        ValueError
            As `of_json`.
        """
        return self._processors("compile_structural_tag", tag)

    def _processors(self, compile_by: str, wanted: Any, **options: Any) -> Callable[[], Any]:
        """Return what makes the logits processor of an answer in the form that a method of the compiler is given."""
        try:
            from xgrammar.contrib.hf import LogitsProcessor
        except ModuleNotFoundError as error:
            raise ValueError(_INSTALL) from error
        text = json.dumps(wanted)
        _check_size(wanted, text)
        with self._lock:
            grammar = self._compiled(compile_by, text, **options)
        return lambda: LogitsProcessor(grammar)

    def _compiled(self, compile_by: str, wanted: str, **options: Any) -> Any:
        """Return a compiled grammar."""
        import xgrammar

        if self._compiler is None:
            size = self._model.get_output_embeddings().weight.shape[0]
            info = xgrammar.TokenizerInfo.from_huggingface(self._tokenizer, vocab_size=size)
            self._compiler = xgrammar.GrammarCompiler(info, cache_limit_bytes=_KEPT_BYTES)
        try:
            return getattr(self._compiler, compile_by)(wanted, **options)
        except (RuntimeError, ValueError) as error:
            said = " ".join(str(error).split())
            raise ValueError(
                f"the JSON schema cannot be used; give one that xgrammar knows. It says: {said}"
            ) from error


def _check_size(schema: Any, text: str) -> None:
    """Refuse a schema that would take too long to compile."""
    level, depth, width, parts = [schema], 0, 0, 0
    while level := [one for one in level if isinstance(one, dict | list)]:
        depth, parts = depth + 1, parts + len(level)
        width = max([width, *(len(one) for one in level if isinstance(one, dict))])
        level = [value for one in level for value in (one.values() if isinstance(one, dict) else one)]
    for given, most, what in (
        (depth, _DEPTH, "levels"),
        (width, _WIDTH, "entries in one object"),
        (parts, _PARTS, "objects and lists"),
        (len(text), _LENGTH, "characters"),
    ):
        if given > most:
            raise ValueError(f"the JSON schema has {given} {what}, and {most} are allowed; make it smaller")

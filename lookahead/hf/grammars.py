"""Answers that follow a JSON schema, through xgrammar."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

__all__ = ["Grammars"]

_INSTALL = "answers in JSON need the package xgrammar; run: pip install 'hf-lookahead[grammars]'"
_KEPT_BYTES = 2**28  # of compiled grammars


class Grammars:
    """Compiles JSON schemas for one model and its tokenizer; what was compiled last is kept by xgrammar.

    Parameters
    ----------
    model : PreTrainedModel
    tokenizer : PreTrainedTokenizerBase
    """

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self._model, self._tokenizer = model, tokenizer
        self._compiler: Any = None

    def of_json(self, schema: Any = None) -> Callable[[], Any]:
        """Return what makes the logits processor of an answer: any JSON object, or JSON of a schema.

        Raises
        ------
        ValueError
            For a schema that xgrammar does not understand, and where it is not installed.
        """
        try:
            import xgrammar
            from xgrammar.contrib.hf import LogitsProcessor
        except ModuleNotFoundError as error:
            raise ValueError(_INSTALL) from error
        if self._compiler is None:
            size = self._model.get_output_embeddings().weight.shape[0]
            info = xgrammar.TokenizerInfo.from_huggingface(self._tokenizer, vocab_size=size)
            self._compiler = xgrammar.GrammarCompiler(info, cache_limit_bytes=_KEPT_BYTES)
        wanted = {"type": "object"} if schema is None else schema
        try:
            grammar = self._compiler.compile_json_schema(json.dumps(wanted), any_whitespace=schema is None)
        except (RuntimeError, ValueError) as error:
            said = " ".join(str(error).split())
            raise ValueError(
                f"the JSON schema cannot be used; give one that xgrammar knows. It says: {said}"
            ) from error
        return lambda: LogitsProcessor(grammar)

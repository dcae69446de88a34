"""``generate`` of a model whose folder `lookahead install` has made; its ``custom_generate/generate.py`` calls this."""

from __future__ import annotations

import copy
import weakref
from typing import Any

from transformers import AutoTokenizer

from .enable import enabled
from .loop import Lookahead

__all__ = ["generate"]

_OPTIONS, _PREDICTION = "lookahead", "prediction"  # what a generation config may bring
_KEPT = 8  # objects with different options that a model keeps
_lookaheads: weakref.WeakKeyDictionary[Any, dict[str, Lookahead]] = weakref.WeakKeyDictionary()


def generate(
    inputs: Any = None,
    generation_config: Any = None,
    *,
    model: Any,
    tokenizer: Any = None,
    prediction: Any = None,
    **kwargs: Any,
) -> Any:
    """Do what ``model.generate`` does, with lookahead where it decodes exactly the same.

    Parameters
    ----------
    inputs, generation_config, **kwargs
        As for ``model.generate``. The config may hold ``prediction``, what the output is expected to resemble, and
        ``lookahead``, a dict of the fields of `Options`.
    model : PreTrainedModel
        The model, whose own ``generate`` may be this function.
    tokenizer : PreTrainedTokenizerBase or ProcessorMixin, optional
        The model's; by itself the one that its folder holds.
    prediction : str or int [length], optional
        Comes before that of the config.
    """
    call = {"generation_config": generation_config, **kwargs}
    if tokenizer is not None:
        call["tokenizer"] = tokenizer
    if kwargs.get("custom_generate") is not None:
        return type(model).generate(model, inputs, **call)
    options = getattr(generation_config, _OPTIONS, None) or {}
    if not isinstance(options, dict):
        raise ValueError(f"lookahead={options!r} in the generation config; allowed is an object of options")
    ahead = copy.copy(_lookahead(model, getattr(tokenizer, "tokenizer", tokenizer), options))
    ahead.prediction = getattr(generation_config, _PREDICTION, None) if prediction is None else prediction
    with enabled(model, ahead):
        return type(model).generate(model, inputs, **call)


def _lookahead(model: Any, tokenizer: Any, options: dict[str, Any]) -> Lookahead:
    """Return the object that decodes with these options; it goes on with what earlier calls of the model taught it."""
    known = _lookaheads.setdefault(model, {})
    name = repr(sorted(options.items()))
    if name not in known:
        while len(known) >= _KEPT:
            known.pop(next(iter(known)))
        known[name] = Lookahead(_own_tokenizer(model) if tokenizer is None else tokenizer, **options)
    return known[name]


def _own_tokenizer(model: Any) -> Any:
    """Return the tokenizer of the model's folder, None where there is none: then drafts are found by tokens alone."""
    load: Any = AutoTokenizer.from_pretrained
    try:
        return load(model.name_or_path, local_files_only=True)
    except (OSError, ValueError, KeyError):
        return None

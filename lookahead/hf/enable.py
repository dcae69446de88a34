"""Lookahead for code that calls ``model.generate`` somewhere deep inside."""

from __future__ import annotations

import functools
import inspect
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from transformers import GenerationMixin

from . import names
from .loop import Lookahead
from .refusals import Unsupported

__all__ = ["disable", "enable", "enabled"]

_USES = "_lookahead_uses"  # the attribute of a model that holds who enabled it; the last one counts
_lock = threading.RLock()


def enable(model: Any, tokenizer: Any = None, **options: Any) -> Lookahead:
    """Have every later ``model.generate(...)`` decode with lookahead where that is exact, and as always elsewhere.

    Calls that `Lookahead` does not support (beams, no cache, a model that forgets its state, a custom loop or an
    assistant of the caller's) are decoded by `generate` alone, with one warning for each reason. Arguments and errors
    stay those of `generate`; the output is as exact as that of `Lookahead`, where sampled rows of a batch draw in
    another order. A copy of the model, deep or pickled, is a plain one.

    Where the model's own `generate` calls that of a model inside it (BLIP-2), that one is enabled, too. Enabling a
    model again replaces the object of the call before; one `disable` ends it.

    Parameters
    ----------
    model : PreTrainedModel
        The model whose `generate` will be called, also inside torch.compile or peft.
    tokenizer : PreTrainedTokenizerBase or Lookahead, optional
        As for `Lookahead`; or an object made before, to go on with what it learnt.
    **options
        As for `Lookahead`: ``prediction``, and the fields of `Options`.

    Returns
    -------
    Lookahead
        The object that decodes, with the ``stats`` of the call that began last.

    Raises
    ------
    ValueError
        When there is no model with transformers' `generate`, or options come with an object that has its own.
    """
    use = _Use(_lookahead_of(tokenizer, options))
    for target in _targets(model):
        _change(target, lambda uses: (*(one for one in uses if one.is_scoped), use))
    return use.lookahead


@contextmanager
def enabled(model: Any, tokenizer: Any = None, **options: Any) -> Iterator[Lookahead]:
    """Do what `enable` does until the block is left, in whatever way; then what was before counts again.

    Blocks may be nested, and overlap in several threads: of those not yet left, the one entered last counts.
    """
    targets, use = _targets(model), _Use(_lookahead_of(tokenizer, options), is_scoped=True)
    for target in targets:
        _change(target, lambda uses: (*uses, use))
    try:
        yield use.lookahead
    finally:
        for target in targets:
            _change(target, lambda uses: tuple(one for one in uses if one is not use))


def disable(model: Any) -> None:
    """Take lookahead off a model, whoever enabled it; a model without it stays as it is."""
    for target in _targets(model):
        _change(target, lambda uses: ())


@dataclass(eq=False)
class _Use:
    """One call of `enable`, or one block."""

    lookahead: Lookahead
    is_scoped: bool = False
    warned: set[str] = field(default_factory=set)

    def warn(self, reason: str) -> None:
        """Say once why lookahead is left out."""
        with _lock:
            if reason in self.warned:
                return
            self.warned.add(reason)
        warnings.warn(
            f"lookahead is left out of this call of generate: {reason}. It is decoded as usual, without the speed-up.",
            stacklevel=2,
        )


def _lookahead_of(tokenizer: Any, options: dict[str, Any]) -> Lookahead:
    """Return the object that decodes."""
    if not isinstance(tokenizer, Lookahead):
        return Lookahead(tokenizer, **options)
    if options:
        raise ValueError(
            f"{', '.join(options)} cannot be given with a Lookahead object, which has its own; give them to "
            "Lookahead(...), or give the tokenizer here"
        )
    return tokenizer


def _targets(model: Any) -> list[Any]:
    """Return the model itself, and those inside it whose `generate` a `generate` of its own may call (BLIP-2)."""
    found = names.generating(model)
    if found is None:
        raise ValueError(
            f"{type(model).__name__} has no generate of transformers; allowed is a model such as "
            "AutoModelForCausalLM.from_pretrained(...), also inside torch.compile or peft: give the model that is in it"
        )
    if inspect.unwrap(type(found).generate) is inspect.unwrap(GenerationMixin.generate):
        return [found]
    return [one for one in found.modules() if isinstance(one, GenerationMixin)]


def _uses(model: Any) -> tuple[_Use, ...]:
    """Return who enabled a model, in the order in which they did."""
    uses: tuple[_Use, ...] = vars(model).get(_USES, ())
    return uses


def _change(model: Any, change: Callable[[tuple[_Use, ...]], tuple[_Use, ...]]) -> None:
    """Change who enabled a model; it has the class of an enabled one while there is anyone."""
    with _lock:
        uses = change(_uses(model))
        kind: Any = type(model)
        if uses:
            vars(model)[_USES] = uses
            if not hasattr(kind, "_is_enabled"):
                model.__class__ = _enabled_class(kind)
        else:
            vars(model).pop(_USES, None)
            if "_is_enabled" in vars(kind):  # not where someone has put another class on top
                model.__class__ = kind.__base__


# `generate` looks its decoding loops up in the model's class, so a loop is replaced for one model by giving it a class
# of its own, as torch does in `parametrize` and `fully_shard`. All that `generate` checks, prepares and streams before
# stays its own, and the stock loop is at hand for calls that cannot be decoded exactly.


@functools.cache
def _enabled_class(kind: Any) -> Any:
    """Return the class of enabled models of some class; it carries the same name, which others look up."""
    methods = {loop: _announced(getattr(kind, loop), loop) for loop in names.other_loops() if hasattr(kind, loop)}
    methods[names.PLAIN_LOOP] = _replaced(getattr(kind, names.PLAIN_LOOP))
    methods["generate"] = _watched(kind.generate)
    methods["__reduce_ex__"] = _reduced_to(kind)
    told = {name: getattr(kind, name) for name in ("__module__", "__qualname__", "__doc__")}
    return type(kind.__name__, (kind,), {**told, **methods, "_is_enabled": True})


def _replaced(stock: Callable[..., Any]) -> Callable[..., Any]:
    """Return the loop for greedy search and sampling."""

    @functools.wraps(stock)
    def decode(self: Any, *args: Any, inputs_tensor: Any = None, **kwargs: Any) -> Any:
        uses = _uses(self)
        if not uses:
            return stock(self, *args, **kwargs)
        try:
            reason = uses[-1].lookahead.refuse(self, *args, **kwargs)
        except Unsupported as refusal:
            reason = refusal.reason
        if reason is None:
            kwargs["inputs_tensor"] = inputs_tensor
            return uses[-1].lookahead.decode(self, *args, **kwargs)
        uses[-1].warn(reason)
        return stock(self, *args, **kwargs)

    known = inspect.signature(stock)  # by which `generate` knows that it is to pass on what an encoder read
    read = inspect.Parameter("inputs_tensor", inspect.Parameter.KEYWORD_ONLY, default=None)
    *others, rest = known.parameters.values()
    vars(decode)["__signature__"] = known.replace(parameters=[*others, read, rest])
    return decode


def _announced(stock: Callable[..., Any], loop: str) -> Callable[..., Any]:
    """Return another mode's loop as it was, with a warning."""
    mode = loop.strip("_").replace("_", " ")

    @functools.wraps(stock)
    def decode(self: Any, *args: Any, **kwargs: Any) -> Any:
        for use in _uses(self)[-1:]:
            use.warn(f"it asks for {mode}, and Lookahead replaces greedy search and sampling only")
        return stock(self, *args, **kwargs)

    return decode


def _watched(stock: Callable[..., Any]) -> Callable[..., Any]:
    """Return `generate` as it was, with a warning where the caller brings a loop of another kind."""

    @functools.wraps(stock)
    def generate(self: Any, *args: Any, **kwargs: Any) -> Any:
        custom = kwargs.get("custom_generate")
        if custom is not None and not isinstance(getattr(custom, "func", custom), Lookahead):
            for use in _uses(self)[-1:]:
                use.warn("it brings a custom_generate of its own")
        return stock(self, *args, **kwargs)

    return generate


def _reduced_to(kind: Any) -> Callable[..., Any]:
    """Return how an enabled model is copied and pickled: as a plain one, which needs no lookahead to be loaded."""

    def __reduce_ex__(self: Any, protocol: Any) -> Any:
        made, args, state, *others = kind.__reduce_ex__(self, 1)  # later protocols insist on the object's own class
        if isinstance(state, dict):
            state = {name: value for name, value in state.items() if name != _USES}
        return made, tuple(kind if one is type(self) else one for one in args), state, *others

    return __reduce_ex__

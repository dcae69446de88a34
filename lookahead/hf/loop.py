"""The way in: what stands behind ``model.generate(..., custom_generate=Lookahead(tokenizer))``."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

import torch
from transformers.generation.stopping_criteria import StoppingCriteriaList, StopStringCriteria

from ..draft.calibration import Calibration
from ..draft.cost import Cost, MeasuredCost
from ..draft.drafter import Drafter
from ..draft.memory import Memory
from ..draft.policy import Policy
from ..draft.recycling import Successors
from ..options import Options
from ..stats import Stats
from ..trace.record import Trace
from . import costs, names
from .batch import BatchGeneration
from .fallback import check_fallback
from .generation import Generation
from .plain import decode_plainly, why_plain
from .refusals import refuse, refuse_exact
from .tracing import check_trace, recorder_of

__all__ = ["Lookahead"]


class Lookahead:
    """Model-free speculative decoding for `generate`: the same output in fewer forwards.

    Pass it as ``model.generate(..., custom_generate=Lookahead(tokenizer))``, or call `Lookahead.generate` where the
    installed `generate` loses arguments on the way to a custom loop (``streamer``, ``stop_strings``). One object
    serves many calls, also at the same time.

    Parameters
    ----------
    tokenizer : PreTrainedTokenizerBase, optional
        The model's tokenizer. With it copies are found through other surface forms too (escaped, numbered, in a diff
        ...); and ``stop_strings`` in `Lookahead.generate` need it.
    prediction : str or int [length], optional
        What the outputs are expected to resemble, whether or not it stands in the prompt: text, which needs the
        tokenizer, or token ids. A call may bring its own.
    fallback : optional
        Who drafts where there is nothing to copy, one prompt at a time: an assistant model, also one that reads the
        target's states (DFlash, Gemma 4); ``"mtp"`` for the target's own heads of multi-token prediction; a pair
        (model, tokenizer) of an assistant with another tokenizer; a `CandidateGenerator` of transformers, or a function
        that makes one for a call. When sampling, the output keeps its distribution, but a seed gives other tokens.
    exact : bool
        For half precision and greedy search, one prompt at a time, with processors that keep no state: before a token
        that wins by less than the noise of the arithmetic, what was fed together is fed once more token by token, as
        plain decoding does, and the token is chosen from that. The README says how often outputs differ then, and what
        it costs.
    trace : bool
        Record every step: what was drafted from where, what was accepted, and how long it took.
    **options
        The fields of `Options`.

    Attributes
    ----------
    stats : Stats
        What happened in the call that began last.
    trace : Trace or None
        Its steps, where they are recorded; before the first call there are none.
    """

    def __init__(
        self,
        tokenizer: Any = None,
        prediction: Any = None,
        fallback: Any = None,
        exact: bool = False,
        trace: bool = False,
        **options: Any,
    ) -> None:
        if isinstance(tokenizer, torch.nn.Module):
            raise TypeError(
                f"tokenizer is a model, {type(tokenizer).__name__}; pass the tokenizer, and "
                "an object to generate: custom_generate=Lookahead(tokenizer), not the class itself"
            )
        check_fallback(fallback)
        self.tokenizer = tokenizer
        self.fallback = fallback
        self.exact = exact
        self.prediction = prediction
        self.options = Options.of(options)
        _expected(Drafter(tokenizer, **options), prediction)  # says at once what is wrong with any of them
        self.stats = Stats()
        self._records = check_trace(trace)
        self.trace: Trace | None = None
        self._calibration = Calibration()
        self._memory: Memory | None = None
        self._others: Sequence[Lookahead] = ()
        self._policies: dict[str, Policy] = {}
        self._successors: dict[str, Successors] = {}

    def remember(self, memory: Memory) -> Lookahead:
        """Share what other calls have said and learnt, as `Session.lookahead` arranges it; return this object."""
        self._memory, self._calibration = memory, memory.calibration
        return self

    def of_rows(self, others: Sequence[Lookahead]) -> Lookahead:
        """Return an object for a batch, each row of which shares what one of the others does, and nothing besides."""
        together = copy.copy(self)
        together._others = others
        return together

    def __call__(
        self,
        model: Any,
        input_ids: torch.Tensor,
        logits_processor: Any,
        stopping_criteria: Any,
        generation_config: Any,
        synced_gpus: bool | None = False,
        streamer: Any = None,
        prediction: Any = None,
        inputs_tensor: Any = None,
        **model_kwargs: Any,
    ) -> Any:
        """Decode as the stock methods do; called by `generate`, which prepares the arguments.

        ``generate(..., prediction=...)`` arrives here too and comes before the object's own.

        Returns
        -------
        int64 [rows, length] or GenerateDecoderOnlyOutput
            As `generate` returns them; the latter carries the call's `Stats` as ``stats``.

        Raises
        ------
        Unsupported
            A ValueError before any work, for what is not supported (beams, no cache).
        """
        call = logits_processor, stopping_criteria, generation_config
        self.refuse(model, input_ids, *call, synced_gpus, streamer, **model_kwargs)
        return self.decode(model, input_ids, *call, synced_gpus, streamer, prediction, inputs_tensor, **model_kwargs)

    def refuse(
        self,
        model: Any,
        input_ids: torch.Tensor,
        logits_processor: Any,
        stopping_criteria: Any,
        generation_config: Any,
        synced_gpus: bool | None = False,
        streamer: Any = None,
        **model_kwargs: Any,
    ) -> str | None:
        """Raise Unsupported for a call that would not be decoded exactly; return why it is decoded plainly, if so."""
        call = logits_processor, stopping_criteria, generation_config
        reason = refuse(model, input_ids, *call, synced_gpus, streamer, **model_kwargs)
        if self.exact and reason is None:
            cache = model_kwargs.get(names.cache_name())
            refuse_exact(len(input_ids), logits_processor, generation_config, cache)
        return reason

    def decode(
        self,
        model: Any,
        input_ids: torch.Tensor,
        logits_processor: Any,
        stopping_criteria: Any,
        generation_config: Any,
        synced_gpus: bool | None = False,
        streamer: Any = None,
        prediction: Any = None,
        inputs_tensor: Any = None,
        **model_kwargs: Any,
    ) -> Any:
        """Decode a call that `refuse` let pass, as calling the object does."""
        call, cache = (logits_processor, stopping_criteria, generation_config), model_kwargs.get(names.cache_name())
        stats = Stats(note=why_plain(model, cache, generation_config, len(input_ids)))
        drafters = self._drafters(model, len(input_ids))
        expected = _expected(drafters[0], self.prediction if prediction is None else prediction)
        recorder = recorder_of(model, self.tokenizer, stats.note) if self._records else None
        self.stats, self.trace = stats, None if recorder is None else recorder.trace
        if stats.note is not None:
            return decode_plainly(model, stats, input_ids, *call, recorder=recorder, streamer=streamer, **model_kwargs)
        generation: Generation | BatchGeneration
        if len(input_ids) == 1:
            generation = Generation(drafters[0], stats, model, input_ids, generation_config, model_kwargs)
            generation.read(inputs_tensor)
            generation.listen(logits_processor, stopping_criteria, streamer)
            generation.ask(self.fallback, self.tokenizer)
            generation.doubt(self.exact)
        else:
            policy_of = partial(self._policy, model, drafters[0].policy.cost)
            generation = BatchGeneration(drafters, policy_of, stats, model, input_ids, generation_config, model_kwargs)
            generation.listen(logits_processor, stopping_criteria)
        generation.record(recorder)
        try:
            with torch.no_grad():
                generation.run(expected)
        finally:
            for drafter in drafters:
                drafter.end()
        costs.save()
        if streamer is not None:
            streamer.end()
        return generation.result()

    def _drafters(self, model: Any, rows: int) -> list[Drafter]:
        """Return a drafter for each row of a call; they share what earlier calls learnt."""
        drafters = [Drafter(self.tokenizer, **asdict(self.options)) for _ in range(rows)]
        policy = self._policy(model, drafters[0].policy.cost, rows)
        successors = self._successors.setdefault(costs.key_of(model), Successors())
        for drafter, other in zip(drafters, self._others or [self] * rows, strict=True):
            drafter.policy, drafter.successors = policy, successors
            drafter.calibration, drafter.memory = other._calibration, other._memory
        return drafters

    def _policy(self, model: Any, cost: Cost, rows: int) -> Policy:
        """Return the policy for a number of rows, with what earlier calls learnt; a cost that is given stays."""
        key = costs.key_of(model, rows)
        if key not in self._policies:
            self._policies[key] = Policy(costs.known(key, model) if isinstance(cost, MeasuredCost) else cost, rows)
        return self._policies[key]

    def generate(
        self, model: Any, inputs: Any = None, *, streamer: Any = None, tokenizer: Any = None, **kwargs: Any
    ) -> Any:
        """Call ``model.generate`` with this loop and with all of its arguments kept.

        Parameters
        ----------
        model : PreTrainedModel
            The target model.
        inputs : int64 [1, length], optional
            The prompt, as for ``model.generate``.
        streamer : BaseStreamer, optional
            Receives the prompt, then every token once, then `end`.
        tokenizer : PreTrainedTokenizerBase, optional
            For ``stop_strings``; the object's own when left out.
        **kwargs
            Everything else that ``model.generate`` takes.
        """
        if "custom_generate" in kwargs:
            raise ValueError("custom_generate is set by Lookahead.generate itself; leave it out")
        criteria = self._stop_strings(model, tokenizer or self.tokenizer, kwargs)
        if criteria is not None:
            kwargs["stopping_criteria"] = StoppingCriteriaList([criteria, *(kwargs.get("stopping_criteria") or [])])
        return model.generate(inputs, streamer=streamer, custom_generate=partial(self, streamer=streamer), **kwargs)

    @staticmethod
    def _stop_strings(model: Any, tokenizer: Any, kwargs: dict[str, Any]) -> StopStringCriteria | None:
        """Take the stop strings out of the arguments and return them as a criterion, which survives the way."""
        configs = [
            config for config in (kwargs.get("generation_config"), model.generation_config) if config is not None
        ]
        configured = [config.stop_strings for config in configs if config.stop_strings is not None]
        strings = kwargs.pop("stop_strings", configured[0] if configured else None)
        if configured:
            kwargs["stop_strings"] = None  # an argument that overrules the configs
        if not strings:
            return None
        if tokenizer is None:
            raise ValueError("stop_strings need the tokenizer: give it to Lookahead(tokenizer) or to this call")
        return StopStringCriteria(stop_strings=strings, tokenizer=tokenizer)


def _expected(drafter: Drafter, prediction: Any) -> list[int]:
    """Return the ids of a prediction."""
    try:
        return drafter.ids(prediction)
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"prediction of type {type(prediction).__name__} cannot be read ({error}); allowed is a text, or the token "
            "ids of one sequence, which all rows of a batch are expected to resemble"
        ) from error

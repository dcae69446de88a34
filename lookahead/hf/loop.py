"""The decoding loop behind ``model.generate(..., custom_generate=Lookahead(tokenizer))``."""

from __future__ import annotations

import time
from dataclasses import asdict, replace
from functools import partial
from typing import Any

import torch
from transformers.generation.stopping_criteria import StoppingCriteriaList, StopStringCriteria
from transformers.generation.utils import GenerateDecoderOnlyOutput, GenerateEncoderDecoderOutput

from ..draft.calibration import Calibration
from ..draft.cost import Cost, MeasuredCost
from ..draft.drafter import Drafter
from ..draft.policy import Policy
from ..draft.recycling import Successors
from ..options import Options
from ..stats import MODEL, Stats
from ..tree import Accepted, Draft
from ..verify.doubt import Doubt
from ..verify.sequence import Sequence, unpadded
from ..verify.walk import Record, Verifier
from . import costs, names
from .batch import BatchGeneration
from .branching import takes_trees
from .fallback import Fallback, check_fallback
from .forward import Target
from .plain import decode_plainly, why_plain
from .ranks import Ranks
from .recording import Recording
from .refusals import refuse

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
        Who drafts where there is nothing to copy, one prompt at a time: an assistant model; a pair (model, tokenizer)
        of an assistant with another tokenizer; a `CandidateGenerator` of transformers, or a function that makes one for
        a call. When sampling, the output keeps its distribution, but a seed gives other tokens.
    exact : bool
        For half precision and greedy search: a token that wins by less than the noise of the arithmetic is chosen anew,
        by a forward over one token as plain decoding makes it. Output differs less often then, at the price of one more
        forward for each such token; the README says how often and how much.
    **options
        The fields of `Options`.

    Attributes
    ----------
    stats : Stats
        What happened in the call that began last.
    """

    def __init__(
        self, tokenizer: Any = None, prediction: Any = None, fallback: Any = None, exact: bool = False, **options: Any
    ) -> None:
        check_fallback(fallback)
        self.tokenizer = tokenizer
        self.fallback = fallback
        self.exact = exact
        self.prediction = prediction
        self.options = Options.of(options)
        Drafter(tokenizer).ids(prediction)  # says at once what is wrong with either
        self.stats = Stats()
        self._calibration = Calibration()
        self._policies: dict[str, Policy] = {}
        self._successors: dict[str, Successors] = {}

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
        refuse(model, input_ids, *call, synced_gpus, streamer, **model_kwargs)
        return self.decode(model, input_ids, *call, synced_gpus, streamer, prediction, inputs_tensor, **model_kwargs)

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
        """Decode a call that is known to be supported, as calling the object does."""
        call = logits_processor, stopping_criteria, generation_config
        stats = Stats(note=why_plain(model, model_kwargs.get(names.cache_name()), generation_config))
        drafters = self._drafters(model, len(input_ids))
        expected = drafters[0].ids(self.prediction if prediction is None else prediction)
        self.stats = stats
        if stats.note is not None:
            return decode_plainly(model, stats, input_ids, *call, streamer=streamer, **model_kwargs)
        generation: _Generation | BatchGeneration
        if len(input_ids) == 1:
            generation = _Generation(drafters[0], stats, model, input_ids, generation_config, model_kwargs)
            generation.read(inputs_tensor)
            generation.listen(logits_processor, stopping_criteria, streamer)
            generation.ask(self.fallback, self.tokenizer)
            generation.doubt(self.exact)
        else:
            policy_of = partial(self._policy, model, drafters[0].policy.cost)
            generation = BatchGeneration(drafters, policy_of, stats, model, input_ids, generation_config, model_kwargs)
            generation.listen(logits_processor, stopping_criteria)
        with torch.no_grad():
            generation.run(expected)
        costs.save()
        if streamer is not None:
            streamer.end()
        return generation.result()

    def _drafters(self, model: Any, rows: int) -> list[Drafter]:
        """Return a drafter for each row of a call; they share what earlier calls learnt."""
        drafters = [Drafter(self.tokenizer, **asdict(self.options)) for _ in range(rows)]
        policy = self._policy(model, drafters[0].policy.cost, rows)
        successors = self._successors.setdefault(costs.key_of(model), Successors())
        for drafter in drafters:
            drafter.calibration, drafter.policy, drafter.successors = self._calibration, policy, successors
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


class _Generation:
    """One call from prompt to result."""

    def __init__(
        self, drafter: Drafter, stats: Stats, model: Any, input_ids: torch.Tensor, config: Any, model_kwargs: Any
    ) -> None:
        self._drafter = drafter
        self._stats = stats
        self._model = model
        self._config = config
        self._prompt = unpadded(input_ids, model_kwargs.get(names.mask_name(model)))
        self._sequence = Sequence(input_ids)
        self._target = Target(model, config, model_kwargs)
        self._ranks = Ranks(model)
        returns = config.return_dict_in_generate
        self._record = Record(
            scores=() if returns and config.output_scores else None,
            logits=() if returns and config.output_logits else None,
        )
        self._recording = Recording(
            bool(returns and config.output_attentions),
            bool(returns and config.output_hidden_states),
            model.config.is_encoder_decoder,
        )
        self._encoded = model_kwargs.get("encoder_outputs")

    def read(self, inputs: torch.Tensor | None) -> None:
        """Draft from what an encoder read, too: `inputs`, int64 [1, length] where it was text."""
        is_text = inputs is not None and inputs.ndim == 2 and not inputs.is_floating_point()
        if self._model.config.is_encoder_decoder and inputs is not None and is_text:
            self._prompt = torch.cat([inputs[0].cpu(), self._prompt])

    def listen(self, processors: Any, criteria: Any, streamer: Any) -> None:
        """Connect the caller's processors, stopping criteria and streamer."""
        self._streamer, self._processors = streamer, processors
        stops = names.plain_stops(criteria, self._config)
        self._verifier = Verifier(
            sequence=self._sequence,
            processors=processors if len(processors) else None,
            criteria=criteria if stops is None else None,
            do_sample=self._config.do_sample,
            end_tokens=stops[0] if stops else frozenset(),
            max_length=stops[1] if stops else self._config.max_length,
            on_token=self._on_token,
            record=self._record,
        )

    def ask(self, fallback: Any, tokenizer: Any) -> None:
        """Let somebody else draft where there is nothing to copy."""
        self._fallback = None if fallback is None else Fallback(fallback, tokenizer, self._config.do_sample)

    def doubt(self, exact: bool) -> None:
        """Choose near-ties by forwards over one token, where there are maxima to choose."""
        if exact and not self._config.do_sample and not len(self._processors):
            self._verifier.doubt = Doubt()

    def run(self, prediction: list[int]) -> None:
        """Decode: propose, forward and walk, roll back, learn, until the generation ends."""
        started = time.perf_counter()
        try:
            accepted = self._prefill(prediction)
            with names.decoding(self._model):
                while not accepted.finished:
                    accepted = self._step()
            if self._config.return_dict_in_generate or names.is_callers(self._target.cache):
                self._target.settle(self._sequence)
        finally:
            names.deactivate_past_recording(self._target.cache)
            self._stats.total_seconds = time.perf_counter() - started

    def _prefill(self, prediction: list[int]) -> Accepted:
        """Run the prompt and emit the first token; the prompt is indexed while an accelerator still computes."""
        started = time.perf_counter()
        logits = self._target.prefill(self._sequence)
        forwarded = time.perf_counter()
        self._drafter.begin(names.without_placeholders(self._model, self._prompt), prediction)
        self._drafter.vocabulary = logits.shape[-1]
        if self._drafter.tree:
            self._target.tree_mask = takes_trees(self._model, self._target.cache)
            self._drafter.tree = self._target.tree_mask is not None
        drafted = time.perf_counter()
        accepted = self._verifier.walk(Draft.empty(), logits)
        self._recording.prompt(self._target.outputs)
        self._stats.draft_seconds += drafted - forwarded
        self._stats.verify_seconds += time.perf_counter() - started - (drafted - forwarded)
        self._drafter.accept(accepted)
        self._stats.count([Draft.empty()], [accepted])
        return accepted

    def _step(self) -> Accepted:
        """Go one draft's way: from the index to what the model makes of it."""
        started = time.perf_counter()
        draft = self._propose()
        drafted = time.perf_counter()
        accepted = self._verify(draft)
        verified = time.perf_counter()
        if accepted.tokens:
            self._drafter.accept(replace(accepted, seconds=verified - drafted))
        if self._fallback is not None:
            self._fallback.hear(self._sequence.ids, draft, accepted)
        learnt = time.perf_counter()
        self._stats.count([draft], [accepted])
        self._stats.draft_seconds += drafted - started + learnt - verified
        self._stats.verify_seconds += verified - drafted
        return accepted

    def _propose(self) -> Draft:
        """Return the next draft, as far as it can be verified, whatever the drafter says; none after a near-tie."""
        doubt = self._verifier.doubt
        budget = 0 if doubt is not None and doubt.pending else self._drafter.allowed(self._room())
        draft = self._drafter.propose(budget)
        if self._fallback is not None:
            call = {
                "model": self._model,
                "input_ids": self._sequence.ids,
                "logits_processor": self._processors,
                "generation_config": self._config,
                "model_kwargs": self._target.kwargs,
            }
            draft = self._fallback.propose(draft, budget, call)
        return self._ranks.share([draft.sound(self._drafter.vocabulary, budget, self._target.tree_mask is not None)])[0]

    def _room(self) -> int:
        """Draft tokens that may follow: one token is the model's own, and none may pass the length limit."""
        room: int = self._config.max_length - len(self._sequence) - 1
        return max(0, min(room, self._target.room()))  # a direct call may go on past the limit of the config

    def _verify(self, draft: Draft) -> Accepted:
        """Run and walk a draft; whatever happens, the cache holds only emitted tokens afterwards."""
        logits, accepted = self._target.forward(self._sequence, draft), Accepted([])
        try:
            accepted = self._verifier.walk(draft, logits)
            rows = [0, *(node + 1 for node in accepted.cached)]
            self._recording.step(self._target.outputs, self._target.before, rows, names.windows(self._target.cache))
        finally:
            if self._verifier.doubt is not None and not accepted.tokens:
                self._target.drop()
            else:
                self._target.keep(accepted.cached)
        return accepted

    def _on_token(self, token: int, source: str | None) -> None:
        """Count an emitted token, then show it to the streamer as `generate` does: int64 [1] on the host."""
        self._stats.emit(source or MODEL)
        if self._streamer is not None:
            self._streamer.put(torch.tensor([token]))

    def result(self) -> Any:
        """Return what `generate` returns."""
        if not self._config.return_dict_in_generate:
            return self._sequence.ids
        own: dict[str, Any] = {
            "sequences": self._sequence.ids,
            "scores": self._record.scores,
            "logits": self._record.logits,
        }
        own[self._target.cache_name] = self._target.cache
        recording = self._recording
        output: Any
        if self._model.config.is_encoder_decoder:
            encoded: Any = self._encoded
            output = GenerateEncoderDecoderOutput(
                **own,
                encoder_attentions=encoded.get("attentions") if recording.attentions is not None else None,
                encoder_hidden_states=encoded.get("hidden_states") if recording.hidden_states is not None else None,
                decoder_attentions=recording.attentions,
                cross_attentions=recording.cross_attentions,
                decoder_hidden_states=recording.hidden_states,
            )
        else:
            output = GenerateDecoderOnlyOutput(
                **own, attentions=recording.attentions, hidden_states=recording.hidden_states
            )
        output.stats = self._stats
        return output

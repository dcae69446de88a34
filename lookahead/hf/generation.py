"""One call for one prompt, from prompt to result."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import torch
from transformers.generation.utils import GenerateDecoderOnlyOutput, GenerateEncoderDecoderOutput

from ..draft.drafter import Drafter
from ..stats import MODEL, Stats
from ..trace.recorder import Recorder
from ..tree import Accepted, Draft
from ..verify.doubt import Doubt
from ..verify.sequence import Sequence, unpadded
from ..verify.walk import Record, Verifier
from . import names
from .branching import takes_trees
from .fallback import Fallback
from .forward import Target
from .ranks import Ranks
from .recording import Recording

__all__ = ["Generation"]

_MORE, _AT_ONCE = (
    1 / 32,
    4,
)  # forwards that exact decoding may take beyond plain decoding's: for each token, and at once


class Generation:
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
        self._fallback: Fallback | None = None

    def read(self, inputs: torch.Tensor | None) -> None:
        """Draft from what an encoder read, too: `inputs`, int64 [1, length] where it was text."""
        if not self._model.config.is_encoder_decoder or inputs is None:
            return
        is_text = inputs.ndim == 2 and not inputs.is_floating_point()
        if is_text and inputs.min() >= 0:  # `generate` puts -100 where only encoder_outputs were given
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
        if fallback is None:
            return
        call = {
            "model": self._model,
            "input_ids": self._sequence.ids,
            "logits_processor": self._processors,
            "generation_config": self._config,
            "model_kwargs": self._target.kwargs,
        }
        self._fallback = Fallback(fallback, tokenizer, call)
        self._target.want(self._fallback.wanted)

    def doubt(self, exact: bool) -> None:
        """Choose near-ties by forwards over one token."""
        self._verifier.doubt = Doubt() if exact else None

    def record(self, recorder: Recorder | None) -> None:
        """Have every step recorded, if there is a recorder."""
        self._recorder = recorder

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
        if self._recorder is not None:
            self._recorder.begin(self._prompt.tolist())
        drafted = time.perf_counter()
        accepted = self._verifier.walk(Draft.empty(), logits)
        self._recording.prompt(self._target.outputs)
        if self._fallback is not None:
            self._fallback.prompt(self._target.outputs)
        self._stats.draft_seconds += drafted - forwarded
        self._stats.verify_seconds += time.perf_counter() - started - (drafted - forwarded)
        self._drafter.accept(accepted)
        self._stats.count([Draft.empty()], [accepted])
        self._trace(Draft.empty(), accepted)
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
        self._trace(draft, accepted)
        return accepted

    def _trace(self, draft: Draft, accepted: Accepted) -> None:
        """Record a step that was counted."""
        if self._recorder is not None:
            self._recorder.count([0], [draft], [accepted], self._stats)

    def _propose(self) -> Draft:
        """Return the next draft, as far as it can be verified, whatever the drafter says; none after a near-tie."""
        budget = 0 if self._hesitates() else self._drafter.allowed(self._room())
        draft = self._drafter.propose(budget)
        if self._fallback is not None:
            draft = self._fallback.propose(draft, budget, self._sequence.ids, self._target.kwargs)
        branches = self._target.tree_mask is not None
        draft = self._ranks.share([draft.sound(self._drafter.vocabulary, budget, branches)])[0]
        if self._recorder is not None:
            self._recorder.propose([self._drafter.origins(draft)])
        return draft

    def _hesitates(self) -> bool:
        """Whether a near-tie is to be decided, or deciding them has cost more forwards than drafts gained."""
        doubt = self._verifier.doubt
        if doubt is None:
            return False
        return doubt.pending or self._stats.forwards > self._stats.tokens * (1 + _MORE) + _AT_ONCE

    def _room(self) -> int:
        """Draft tokens that may follow: one token is the model's own, and none may pass the length limit."""
        room: int = self._config.max_length - len(self._sequence) - 1
        return max(0, min(room, self._target.room()))  # a direct call may go on past the limit of the config

    def _verify(self, draft: Draft) -> Accepted:
        """Run and walk a draft; whatever happens, the cache holds only emitted tokens afterwards."""
        if (doubt := self._verifier.doubt) is not None:
            if doubt.pending:
                self._stats.forwards += self._target.refeed(self._sequence)
            doubt.decides = not len(draft) and self._target.is_plain
        logits, accepted = self._target.forward(self._sequence, draft), Accepted([])
        try:
            accepted = self._verifier.walk(draft, logits)
            rows = [0, *(node + 1 for node in accepted.cached)] if accepted.tokens else []
            self._recording.step(self._target.outputs, self._target.before, rows, names.windows(self._target.cache))
            if self._fallback is not None:
                self._fallback.step(self._target.outputs, self._target.before, rows)
        finally:
            if doubt is not None and not accepted.tokens:
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

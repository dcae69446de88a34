"""The decoding loop for several rows, each of which goes on as far as its own draft was right."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from transformers.generation.utils import GenerateDecoderOnlyOutput

from ..draft.batch import Batch
from ..draft.drafter import Drafter
from ..draft.policy import Policy
from ..stats import MODEL, Stats
from ..trace.recorder import Recorder
from ..tree import Accepted, Draft
from ..verify.acceptance import choose
from ..verify.sequence import Sequence, unpadded
from ..verify.walk import Verifier
from . import names
from .branching import takes_trees
from .ragged import RaggedTarget
from .ranks import Ranks
from .rows import RowCriteria, RowProcessors, criteria_of_row

__all__ = ["BatchGeneration"]

_AT_ONCE = 32  # tokens of a row that are fed together when a cache is brought up to its last token


class BatchGeneration:
    """One call for several rows, from prompts to result.

    Parameters
    ----------
    drafters : list of Drafter
        One for each row.
    policy_of : callable
        ``policy_of(rows)`` gives the policy for a number of rows.
    stats : Stats
        Counts for all rows together.
    model, input_ids, config, model_kwargs
        As `generate` passes them; the ids are int64 [rows, length].
    """

    def __init__(
        self,
        drafters: list[Drafter],
        policy_of: Callable[[int], Policy],
        stats: Stats,
        model: Any,
        input_ids: torch.Tensor,
        config: Any,
        model_kwargs: dict[str, Any],
    ) -> None:
        self._batch, self._stats = Batch(drafters, policy_of), stats
        self._model, self._config, self._ids = model, config, input_ids
        self._mask = model_kwargs.get("attention_mask")
        self._target = RaggedTarget(model, config, model_kwargs)
        self._ranks = Ranks(model)
        self._is_handed_back = config.return_dict_in_generate or names.is_callers(self._target.cache)
        self._sequences = [Sequence(row[None]) for row in input_ids]
        self._rows = list(range(len(input_ids)))  # which rows the target still has
        self._done = [False] * len(input_ids)
        self._last = [0] * len(input_ids)

    def listen(self, processors: Any, criteria: Any) -> None:
        """Connect the caller's processors and stopping criteria; who hears of rows gets each one's cache as it ends."""
        self._processors = processors
        self._hearers = [one for one in criteria if isinstance(one, RowCriteria)]
        self._is_handed_back = self._is_handed_back and not self._hearers
        count, stops = len(self._sequences), names.plain_stops(criteria, self._config)
        self._verifiers = [
            Verifier(
                sequence=sequence,
                processors=_processors_of_row(processors, row, count) if len(processors) else None,
                criteria=criteria_of_row(criteria, row) if stops is None else None,
                do_sample=self._config.do_sample,
                end_tokens=stops[0] if stops else frozenset(),
                max_length=stops[1] if stops else self._config.max_length,
                on_token=self._on_token,
            )
            for row, sequence in enumerate(self._sequences)
        ]

    def record(self, recorder: Recorder | None) -> None:
        """Have every step recorded, if there is a recorder."""
        self._recorder = recorder

    def run(self, prediction: list[int]) -> None:
        """Decode until the last row has ended."""
        started = time.perf_counter()
        try:
            self._prefill(prediction)
            self._decode()
        finally:
            self._stats.total_seconds = time.perf_counter() - started

    def _decode(self) -> None:
        """Go on behind the prompts; however it ends, a cache that is handed back is as plain decoding leaves it."""
        try:
            with names.decoding(self._model):
                while not all(self._done):
                    self._step()
                self._settle()
        finally:
            if self._is_handed_back:
                self._target.hand_back(finished=all(self._done))

    def _prefill(self, prediction: list[int]) -> None:
        """Run the prompts and emit the first token of each row."""
        started = time.perf_counter()
        logits = self._target.prefill(self._ids)
        forwarded = time.perf_counter()
        tree = self._batch.drafters[0].tree
        self._target.tree_mask = takes_trees(self._model, self._target.cache) if tree else None
        for row, drafter in enumerate(self._batch.drafters):
            mask = None if self._mask is None else self._mask[row : row + 1]
            ids = unpadded(self._ids[row : row + 1], mask)
            drafter.begin(names.without_placeholders(self._model, ids), prediction)
            drafter.vocabulary = logits.shape[-1]
            drafter.tree = self._target.tree_mask is not None
            if self._recorder is not None:
                self._recorder.begin(ids.tolist())
        drafted = time.perf_counter()
        drafts = [Draft.empty() for _ in self._rows]
        accepted = self._walk(drafts, list(logits[:, None]))
        walked = time.perf_counter()
        for drafter, one in zip(self._batch.drafters, accepted, strict=True):
            drafter.hear(one)
        self._stats.count(drafts, accepted)
        self._stats.draft_seconds += drafted - forwarded
        self._stats.verify_seconds += walked - started - (drafted - forwarded)
        self._trace(self._rows, drafts, accepted)
        self._leave()

    def _step(self) -> None:
        """Go every row's draft's way: from its index to what the model makes of it."""
        started = time.perf_counter()
        drafts = self._propose()
        drafted = time.perf_counter()
        due = self._due(max(map(len, drafts)) + 1)
        logits = self._forward(due, drafts)
        were_done = [self._done[row] for row in self._rows]
        accepted = [Accepted([]) for _ in self._rows]
        try:
            accepted = self._walk(drafts, logits)
        finally:
            cached = zip(were_done, due, accepted, strict=True)
            self._target.keep([_nodes(more) if was else one.cached for was, more, one in cached])
        verified = time.perf_counter()
        self._batch.accept(accepted, verified - drafted)
        self._stats.count(drafts, accepted)
        rows = self._rows
        self._leave()
        self._stats.draft_seconds += drafted - started + time.perf_counter() - verified
        self._stats.verify_seconds += verified - drafted
        self._trace(rows, drafts, accepted)

    def _due(self, width: int) -> list[list[int]]:
        """Return up to `width` tokens that a cache which is handed back still lacks of each row that has ended.

        Plain decoding goes on to feed such a row: its last token, then padding, until the last row has ended.
        """
        longest, pad = max(map(len, self._sequences)) - 1, names.pad_token(self._config)
        due = []
        for row, grown in zip(self._rows, self._target.grown(), strict=True):
            first = self._ids.shape[1] + grown
            count = min(width, longest - first) if self._done[row] and self._is_handed_back else 0
            tokens = self._sequences[row].ids[0, first : first + count].tolist() if count > 0 else []
            due.append(tokens + [pad] * (count - len(tokens)))
        return due

    def _forward(self, due: list[list[int]], drafts: list[Draft]) -> list[torch.Tensor]:
        """Run each row's last token and draft, or what is due of it."""
        tokens = [more[0] if more else self._last[row] for row, more in zip(self._rows, due, strict=True)]
        chains = [Draft.chain(more[1:]) if more else draft for more, draft in zip(due, drafts, strict=True)]
        return self._target.forward(tokens, chains)

    def _settle(self) -> None:
        """Bring a cache that is handed back up to the last token but one of the longest row, as plain decoding does."""
        while any(due := self._due(_AT_ONCE)):
            self._forward(due, [Draft.empty()] * len(due))
            self._target.keep([_nodes(more) for more in due])
            self._stats.forwards += 1

    def _trace(self, rows: list[int], drafts: list[Draft], accepted: list[Accepted]) -> None:
        """Record a step that was counted."""
        if self._recorder is not None:
            self._recorder.count(rows, drafts, accepted, self._stats)

    def _propose(self) -> list[Draft]:
        """Return every row's next draft, as far as it can be verified, whatever the drafters say."""
        drafters, branches = self._batch.drafters, self._target.tree_mask is not None
        budgets = [drafter.allowed(self._room(row)) for drafter, row in zip(drafters, self._rows, strict=True)]
        proposed = zip(drafters, budgets, self._batch.propose(budgets), strict=True)
        sound = [draft.sound(drafter.vocabulary, budget, branches) for drafter, budget, draft in proposed]
        drafts = self._ranks.share(sound)
        if self._recorder is not None:
            origins = zip(drafters, drafts, strict=True)
            self._recorder.propose([drafter.origins(draft) for drafter, draft in origins])
        return drafts

    def _room(self, row: int) -> int:
        """Draft tokens that may follow in a row; none where it has ended."""
        room: int = self._config.max_length - len(self._sequences[row]) - 1
        return 0 if self._done[row] else max(0, room)

    def _walk(self, drafts: list[Draft], logits: list[torch.Tensor]) -> list[Accepted]:
        """Let every row that has not ended go on as far as its draft is right."""
        accepted, first = [], self._first(logits)
        for row, draft, rows, token in zip(self._rows, drafts, logits, first, strict=True):
            one = Accepted([]) if self._done[row] else self._verifiers[row].walk(draft, rows, token)
            self._done[row] = self._done[row] or one.finished
            self._last[row] = one.tokens[-1] if one.tokens else self._last[row]
            accepted.append(one)
        return accepted

    def _first(self, logits: list[torch.Tensor]) -> list[int] | list[None]:
        """Choose all rows' first tokens at once, where no processor looks at the ids."""
        if not self._config.do_sample or not all(names.is_blind(one) for one in self._processors):
            return [None] * len(logits)
        scores = torch.stack([rows[0] for rows in logits]).to(torch.float32)
        for processor in self._processors:
            scores = processor(self._ids, scores)
        tokens: list[int] = choose(scores, True).tolist()
        return tokens

    def _leave(self) -> None:
        """Take rows that have ended out of the batch."""
        for hearer in self._hearers:
            for place, row in enumerate(self._rows):
                if self._done[row]:
                    hearer.leave(row, partial(self._target.row, place))
        going = [place for place, row in enumerate(self._rows) if not self._done[row]]
        if going and len(going) < len(self._rows) and not self._is_handed_back:
            self._rows = [self._rows[place] for place in going]
            self._target.select(going)
            self._batch.select(going)

    def _on_token(self, token: int, source: str | None) -> None:
        """Count an emitted token."""
        self._stats.emit(source or MODEL)

    def result(self) -> Any:
        """Return what `generate` returns: shorter rows are filled up with the padding token."""
        longest = max(len(sequence) for sequence in self._sequences)
        ids = self._ids.new_full((len(self._sequences), longest), names.pad_token(self._config), dtype=torch.long)
        for row, sequence in zip(ids, self._sequences, strict=True):
            row[: len(sequence)] = sequence.ids[0]
        if not self._config.return_dict_in_generate:
            return ids
        output: Any = GenerateDecoderOnlyOutput(**{"sequences": ids, self._target.cache_name: self._target.cache})
        output.stats = self._stats
        return output


def _nodes(due: list[int]) -> list[int] | None:
    """Return the nodes to keep where tokens were due; None where there were none."""
    return list(range(len(due) - 1)) if due else None


def _processors_of_row(processors: Any, row: int, count: int) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    """Return processors for one row: where one needs to see a whole batch, it sees the row `count` times."""

    def process(ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        for processor in processors:
            if isinstance(processor, RowProcessors):
                scores = processor.of_row(row)(ids, scores)
            elif names.is_row_wise(processor):
                scores = processor(ids, scores)
            else:
                scores = processor(ids.expand(count, -1), scores.repeat(count, 1))[row : row + 1]
        return scores

    return process

"""What happened in one call, cheap enough to be counted always."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from .tree import Accepted, Draft

__all__ = ["Stats"]

MODEL = "model"


@dataclass
class Stats:
    """Counts and times of one generation.

    Attributes
    ----------
    forwards : int
        Forwards of the target model, the prefill included; plain decoding takes one per token of the longest row.
    tokens : int
        Tokens emitted.
    drafted, accepted : int
        Draft tokens sent to the model, and those of them that the model emitted.
    drafted_by_source, accepted_by_source : Counter of str
        The same, by the place the tokens were copied from.
    token_sources : list of str
        For each emitted token the source of the draft token that it was, or ``"model"`` where it was not drafted.
    draft_seconds, verify_seconds, total_seconds : float
        Wall-clock time of drafting (index included), of the model's forwards with the choice of tokens, and of all.
    note : str or None
        Why nothing could be drafted, if so.
    """

    forwards: int = 0
    tokens: int = 0
    drafted: int = 0
    accepted: int = 0
    drafted_by_source: Counter[str] = field(default_factory=Counter)
    accepted_by_source: Counter[str] = field(default_factory=Counter)
    token_sources: list[str] = field(default_factory=list, repr=False)
    draft_seconds: float = 0.0
    verify_seconds: float = 0.0
    total_seconds: float = 0.0
    note: str | None = None

    @property
    def tokens_per_forward(self) -> float:
        """Emitted tokens of all rows per forward; plain decoding has one per row, nothing yet has 0."""
        return self.tokens / self.forwards if self.forwards else 0.0

    @property
    def acceptance_rate(self) -> float:
        """Share of the draft tokens that were accepted; 0 when none was drafted."""
        return self.accepted / self.drafted if self.drafted else 0.0

    @property
    def accepted_prediction_tokens(self) -> int:
        """Accepted draft tokens that came from the caller's prediction."""
        return self.accepted_by_source["prediction"]

    @property
    def rejected_prediction_tokens(self) -> int:
        """Draft tokens that came from the caller's prediction and were not accepted."""
        return self.drafted_by_source["prediction"] - self.accepted_by_source["prediction"]

    @property
    def rest_seconds(self) -> float:
        """Time that was neither drafting nor verifying: rollback, streaming, bookkeeping."""
        return max(0.0, self.total_seconds - self.draft_seconds - self.verify_seconds)

    def emit(self, source: str = MODEL) -> None:
        """Note one emitted token before anyone is shown it."""
        self.tokens += 1
        self.token_sources.append(source)

    def count(self, drafts: list[Draft], accepted: list[Accepted]) -> None:
        """Add one verified step: a draft and what became of it for each row of the batch."""
        self.forwards += 1
        for draft, one in zip(drafts, accepted, strict=True):
            self.drafted += len(draft)
            self.accepted += len(one.path)
            self.drafted_by_source.update(draft.sources)
            self.accepted_by_source.update(draft.sources[node] for node in one.path)

    def summary(self) -> str:
        """Return one line for people: tokens, forwards, tokens per forward, acceptance, time by part."""
        line = (
            f"{self.tokens} tokens in {self.forwards} forwards = {self.tokens_per_forward:.2f} tokens per forward; "
            f"{self.accepted} of {self.drafted} draft tokens accepted ({self.acceptance_rate:.0%}); "
            f"draft {self.draft_seconds:.3f} s, verify {self.verify_seconds:.3f} s, rest {self.rest_seconds:.3f} s"
        )
        return f"{line}; decoded plainly: {self.note}" if self.note else line

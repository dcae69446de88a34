"""From the tokens of an answer to the events that its client is told."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from ..hf.answering import Answer, Ask
from ..hf.listening import TokenChances
from .errors import ApiError
from .job import Done, Job, Piece
from .text import TextStream

__all__ = ["Writer"]


class Writer:
    """Tells of one answer while it is decoded.

    Parameters
    ----------
    job : Job
    tokenizer : PreTrainedTokenizerBase
    ends : collection of int
        Tokens that end an answer.
    special : collection of int
        Tokens that are not part of the text, unless the job shows them.

    Attributes
    ----------
    ask : Ask
        What is wanted of the model.
    is_silent : bool
        Whether nothing was told yet.
    """

    def __init__(self, job: Job, tokenizer: Any, ends: Collection[int], special: Collection[int]) -> None:
        self.job, self._ends = job, ends
        self._text = TextStream(tokenizer, job.stops, {*special, *ends} - job.shown)
        self._heard: list[TokenChances] = []
        self.is_silent = True
        self.ask = Ask(job.prompt, job.settings, self._hear, job.user, job.prediction)

    def end(self, answer: Answer) -> None:
        """Tell the rest of the text, and why the answer ended."""
        self._tell(self._text.end())
        ended = self._text.is_stopped or (bool(answer.tokens) and answer.tokens[-1] in self._ends)
        self.job.outbox.put(Done(self.job.index, "stop" if ended else "length", answer))

    def fail(self, error: ApiError) -> None:
        """Tell that there will be no answer."""
        self.job.outbox.put(error)

    def _hear(self, token: int, chances: TokenChances | None) -> bool:
        """Take in a token; return whether the answer ends with it."""
        if chances is not None and token not in self._ends:
            self._heard.append(chances)
        told = self._text.feed(token)
        if told:
            self._tell(told)
        return self._text.is_stopped or self.job.is_cancelled

    def _tell(self, text: str) -> None:
        """Tell of text, and of the tokens heard since the text before."""
        if text or self._heard:
            self.is_silent = False
            self.job.outbox.put(Piece(self.job.index, text, tuple(self._heard)))
            self._heard.clear()

"""The thread of the model: one answer after the other, each ended as soon as nobody waits for it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from typing import Any

from ..hf.answering import Answer, answer, end_tokens
from ..hf.listening import TokenChances
from ..hf.prefixes import Prefixes
from ..hf.refusals import Unsupported
from .errors import bad_request, gone_wrong, shutting_down
from .job import Done, Job, Piece
from .limits import Limits
from .memory import Memory
from .metrics import Metrics
from .text import TextStream
from .turns import Turns

__all__ = ["Worker"]

_log = logging.getLogger(__name__)


class Worker:
    """Answers in a thread of its own.

    Parameters
    ----------
    model : PreTrainedModel
    tokenizer : PreTrainedTokenizerBase
        Used in this thread alone.
    limits : Limits
    metrics : Metrics
    **options
        The fields of `Options`.
    """

    def __init__(self, model: Any, tokenizer: Any, limits: Limits, metrics: Metrics, **options: Any) -> None:
        self._model, self._tokenizer, self._metrics = model, tokenizer, metrics
        self._prefixes = Prefixes(model, limits.cache_bytes)
        self._memory = Memory(tokenizer, limits.users, **options)
        self._ends = end_tokens(model)
        self._special = {token for token, one in tokenizer.added_tokens_decoder.items() if one.special}
        self._turns = Turns(limits)
        self._running: Job | None = None
        self._is_ended = False
        self._thread = threading.Thread(target=self._run, name="lookahead-worker", daemon=True)
        metrics.watch_queue(self._turns.__len__)

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """Whether the thread answers."""
        return self._thread.is_alive()

    def submit(self, jobs: Sequence[Job]) -> None:
        """Let answers wait for their turn; raises ApiError where too many do."""
        self._turns.put(jobs)

    def cancel(self, job: Job) -> None:
        """End an answer that nobody waits for: at once where it waits, with the next forward where it is written."""
        job.cancel()
        if self._turns.remove(job):
            self._metrics.cancelled()

    def drain(self) -> None:
        """Take no more requests; what waits is still answered."""
        self._turns.close()

    def end(self) -> None:
        """Tell those who still wait that the server ends, and end the thread."""
        self._is_ended = True
        self._turns.close()
        running = self._running
        if running is not None:
            running.cancel()
        if self._thread.ident is not None:
            self._thread.join(timeout=30)

    def _run(self) -> None:
        """Answer until the queue is closed and empty."""
        while (job := self._turns.next()) is not None:
            self._running = job
            if self._is_ended:
                job.outbox.put(shutting_down())
            elif not job.is_cancelled:
                self._serve(job)
            self._running = None

    def _serve(self, job: Job) -> None:
        """Answer one job, whatever happens."""
        try:
            reason, found = self._answer(job)
        except Unsupported as error:
            _log.warning("an answer was refused: %s", error)
            job.outbox.put(bad_request(str(error)))
        except Exception:
            _log.exception("an answer failed")
            job.outbox.put(gone_wrong())
        else:
            self._metrics.answered(found, len(job.prompt), job.is_cancelled)
            job.outbox.put(shutting_down() if self._is_ended and job.is_cancelled else Done(job.index, reason, found))

    def _answer(self, job: Job) -> tuple[str, Answer]:
        """Answer one job; return why the answer ended, and its figures."""
        text = TextStream(self._tokenizer, job.stops, (self._special | self._ends) - job.shown)
        heard: list[TokenChances] = []

        def on_token(token: int, chances: TokenChances | None) -> bool:
            if chances is not None and token not in self._ends:
                heard.append(chances)
            told = text.feed(token)
            if told:
                job.outbox.put(Piece(job.index, told, tuple(heard)))
                heard.clear()
            return text.is_stopped or job.is_cancelled

        found = answer(
            self._model,
            self._memory.of(job.user),
            job.prompt,
            job.settings,
            on_token,
            self._prefixes,
            job.user,
            job.prediction,
        )
        rest = text.end()
        if rest or heard:
            job.outbox.put(Piece(job.index, rest, tuple(heard)))
        ended = text.is_stopped or (bool(found.tokens) and found.tokens[-1] in self._ends)
        return "stop" if ended else "length", found

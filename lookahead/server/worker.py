"""The thread of the model: one call after the other, each answer ended as soon as nobody waits for it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from typing import Any

from ..hf.answering import answer, answer_together, end_tokens, go_together
from ..hf.prefixes import Prefixes
from ..hf.refusals import Unsupported
from .errors import ApiError, bad_request, gone_wrong, shutting_down
from .job import Job
from .limits import Limits
from .memory import Memory
from .metrics import Metrics
from .pace import Pace
from .turns import Turns
from .writer import Writer

__all__ = ["Worker"]

_log = logging.getLogger(__name__)


class Worker:
    """Answers in a thread of its own, several together where that pays.

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
        self._memory = Memory(tokenizer, limits.users, limits.memory_bytes, **options)
        self._ends = end_tokens(model)
        self._special = {token for token, one in tokenizer.added_tokens_decoder.items() if one.special}
        self._turns, self._pace = Turns(limits), Pace(limits.batch)
        self._running: tuple[Job, ...] = ()
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
            self._metrics.ended("cancelled")

    def drain(self) -> None:
        """Take no more requests; what waits is still answered."""
        self._turns.close()

    def end(self) -> None:
        """Tell those who still wait that the server ends, and end the thread."""
        self._is_ended = True
        self._turns.close()
        for job in self._running:
            job.cancel()
        if self._thread.ident is not None:
            self._thread.join(timeout=30)

    def _run(self) -> None:
        """Answer until the queue is closed and empty."""
        while (job := self._turns.next()) is not None:
            writers = [self._writer(job)]
            if not self._is_ended and not job.is_cancelled:
                writers += self._companions(writers[0])
            self._running = tuple(one.job for one in writers)
            if self._is_ended:
                self._fail(writers, shutting_down())
            elif going := [one for one in writers if not one.job.is_cancelled]:
                self._serve(going)
            self._running = ()

    def _writer(self, job: Job) -> Writer:
        """Return who tells of an answer."""
        return Writer(job, self._tokenizer, self._ends, self._special)

    def _companions(self, first: Writer) -> list[Writer]:
        """Return other answers that are decoded together with one, where that pays."""
        found: list[Writer] = []

        def joins(job: Job) -> bool:
            one = self._writer(job)
            is_fitting = go_together(self._model, [first.ask, *(other.ask for other in found), one.ask], self._prefixes)
            if is_fitting:
                found.append(one)
            return is_fitting

        try:
            self._turns.more(self._pace.rows(1 + len(self._turns)) - 1, joins)
        except Exception:  # whatever is wrong with one who waits, the thread has to go on
            _log.exception("nobody more was let join")
        return found

    def _serve(self, writers: Sequence[Writer]) -> None:
        """Give answers, whatever happens; where those of a batch fail, each that was not begun is tried alone."""
        try:
            self._answer(writers)
            return
        except Unsupported as refused:
            error = bad_request(str(refused))
            if len(writers) > 1:
                self._pace.stay_alone()
            else:
                _log.warning("an answer was refused: %s", refused)
        except Exception:
            _log.exception("an answer failed")
            error = gone_wrong()
        for writer in writers:
            if len(writers) > 1 and writer.is_silent:
                self._serve([self._writer(writer.job)])
            else:
                self._fail([writer], error)

    def _fail(self, writers: Sequence[Writer], error: ApiError) -> None:
        """Tell that there will be no answers."""
        for writer in writers:
            self._metrics.ended("failed")
            writer.fail(error)

    def _answer(self, writers: Sequence[Writer]) -> None:
        """Give answers in one call of the model."""
        asks = [one.ask for one in writers]
        is_shared = go_together(self._model, asks, self._prefixes)
        lookahead = self._memory.of(*(one.job.user for one in writers))
        if len(asks) == 1:
            found = [answer(self._model, lookahead, asks[0], self._prefixes)]
        else:
            found = answer_together(self._model, lookahead, asks, self._prefixes)
        stats = lookahead.stats
        self._metrics.decoded(stats, len(asks))
        if is_shared:
            self._pace.learn(len(asks), stats.tokens, stats.total_seconds)
        for writer, one in zip(writers, found, strict=True):
            self._metrics.answered(one, len(writer.job.prompt))
            if self._is_ended and writer.job.is_cancelled:
                self._fail([writer], shutting_down())
            else:
                self._metrics.ended("cancelled" if writer.job.is_cancelled else "finished")
                writer.end(one)

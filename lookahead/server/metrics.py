"""Figures for Prometheus."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from ..hf.answering import Answer
from ..stats import Stats

__all__ = ["Metrics"]


_PATHS = ("/v1/chat/completions", "/v1/completions", "/v1/models", "/health", "/metrics")
_GAINS = (1, 1.25, 1.5, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64)
_ROWS = (1, 2, 4, 8, 16, 32, 64)
_SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)


class Metrics:
    """The figures of one server."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        counter, gauge, histogram = (self._maker(kind) for kind in (Counter, Gauge, Histogram))
        self._requests = counter("requests", "Requests, by path and status.", ["path", "status"])
        self._waiting = gauge("waiting", "Answers that wait for their turn.")
        self._answers = counter("answers", "Answers, by what became of them.", ["end"])
        self._prompt = counter("prompt_tokens", "Tokens of prompts.")
        self._cached = counter("cached_tokens", "Tokens of prompts that a kept cache held.")
        self._tokens = counter("tokens", "Tokens emitted.")
        self._forwards = counter("forwards", "Forwards of the model.")
        self._drafted = counter("drafted", "Draft tokens verified, by source.", ["source"])
        self._accepted = counter("accepted", "Draft tokens accepted, by source.", ["source"])
        self._gain = histogram("tokens_per_forward", "Tokens of all answers per forward of a call.", buckets=_GAINS)
        self._rows = histogram("answers_together", "Answers of a call.", buckets=_ROWS)
        self._seconds = histogram("call_seconds", "Seconds of a call.", buckets=_SECONDS)

    def _maker(self, kind: Any) -> Callable[..., Any]:
        """Return what makes figures of a kind."""
        return partial(kind, registry=self._registry, namespace="lookahead")

    def watch_queue(self, length: Callable[[], int]) -> None:
        """Ask the queue for its length whenever the figures are read."""
        self._waiting.set_function(length)

    def requested(self, path: str, status: int) -> None:
        """Count a request."""
        known = path if path in _PATHS else "other"  # a client must not be able to make up new figures
        self._requests.labels(known, str(status)).inc()

    def ended(self, end: str) -> None:
        """Count what became of an answer: finished, cancelled or failed."""
        self._answers.labels(end).inc()

    def answered(self, answer: Answer, prompt: int) -> None:
        """Count the tokens of a prompt that was answered."""
        self._prompt.inc(prompt)
        self._cached.inc(answer.cached_tokens)

    def decoded(self, stats: Stats, rows: int) -> None:
        """Count a call of the model, which gave so many answers."""
        self._rows.observe(rows)
        self._tokens.inc(stats.tokens)
        self._forwards.inc(stats.forwards)
        for source, count in stats.drafted_by_source.items():
            self._drafted.labels(source).inc(count)
        for source, count in stats.accepted_by_source.items():
            self._accepted.labels(source).inc(count)
        self._gain.observe(stats.tokens_per_forward)
        self._seconds.observe(stats.total_seconds)

    def text(self) -> bytes:
        """Return all figures in Prometheus' text format."""
        return generate_latest(self._registry)

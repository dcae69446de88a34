"""Figures for Prometheus."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from ..hf.answering import Answer

__all__ = ["Metrics"]


class Metrics:
    """The figures of one server."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        common = {"registry": self._registry, "namespace": "lookahead"}
        self._requests = Counter("requests", "Requests, by path and status.", ["path", "status"], **common)
        self._waiting = Gauge("waiting", "Answers that wait for their turn.", **common)
        self._answers = Counter("answers", "Answers, by what became of them.", ["end"], **common)
        self._prompt = Counter("prompt_tokens", "Tokens of prompts.", **common)
        self._cached = Counter("cached_tokens", "Tokens of prompts that a kept cache held.", **common)
        self._tokens = Counter("tokens", "Tokens emitted.", **common)
        self._forwards = Counter("forwards", "Forwards of the model.", **common)
        self._drafted = Counter("drafted", "Draft tokens verified, by source.", ["source"], **common)
        self._accepted = Counter("accepted", "Draft tokens accepted, by source.", ["source"], **common)
        buckets = (1, 1.25, 1.5, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64)
        self._gain = Histogram("tokens_per_forward", "Tokens per forward of an answer.", buckets=buckets, **common)
        seconds = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)
        self._seconds = Histogram("answer_seconds", "Seconds an answer was decoded.", buckets=seconds, **common)

    def watch_queue(self, length: Callable[[], int]) -> None:
        """Ask the queue for its length whenever the figures are read."""
        self._waiting.set_function(length)

    def requested(self, path: str, status: int) -> None:
        """Count a request."""
        self._requests.labels(path, str(status)).inc()

    def cancelled(self) -> None:
        """Count an answer that was given up before its turn."""
        self._answers.labels("cancelled").inc()

    def answered(self, answer: Answer, prompt: int, is_cancelled: bool) -> None:
        """Count an answer."""
        stats = answer.stats
        self._answers.labels("cancelled" if is_cancelled else "finished").inc()
        self._prompt.inc(prompt)
        self._cached.inc(answer.cached_tokens)
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

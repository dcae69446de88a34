"""From the events of answers to what goes over the wire: one object, or a stream of server-sent events."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from .errors import ApiError, timed_out
from .job import Done, Event, Outbox, Piece
from .orders import Order
from .replies import Reply, usage
from .worker import Worker

__all__ = ["Exchange", "Stream"]

_PING = 15.0  # seconds of silence after which a comment shows that the connection lives


class Exchange:
    """One request on its way: its answers are ended when nobody waits for them any more.

    Parameters
    ----------
    worker : Worker
    order : Order
    outbox : Outbox
    reply : Reply
    seconds : float
        Longest time it may take.
    """

    def __init__(self, worker: Worker, order: Order, outbox: Outbox, reply: Reply, seconds: float) -> None:
        self._worker, self._order, self._outbox, self._reply = worker, order, outbox, reply
        self._seconds, self._deadline = seconds, time.monotonic() + seconds

    def submit(self) -> None:
        """Let the answers wait for their turn; raises ApiError where too many do."""
        self._worker.submit(self._order.jobs)

    def close(self) -> None:
        """End the answers that are not given yet."""
        for job, choice in zip(self._order.jobs, self._order.choices, strict=True):
            if choice.answer is None:
                self._worker.cancel(job)

    async def whole(self) -> dict[str, Any]:
        """Wait for all answers and return the reply as one object; raises ApiError."""
        try:
            async for burst in self._bursts():
                for event in burst:
                    self._told(event)
        finally:
            self.close()
        return self._reply.whole([choice.whole() for choice in self._order.choices], self._usage())

    async def stream(self, with_usage: bool) -> AsyncIterator[str]:
        """Yield the reply as server-sent events; an error is the last of them."""
        more = {"usage": None} if with_usage else {}
        for choice in self._order.choices:
            for part in choice.begin():
                yield _event(self._reply.chunk([part], **more))
        try:
            async for burst in self._bursts():
                parts = [part for event in burst for part in self._told(event)]
                yield "".join(_event(self._reply.chunk([part], **more)) for part in parts) or ": waiting\n\n"
        except ApiError as error:
            yield _event(error.body())
            return
        if with_usage:
            yield _event(self._reply.chunk([], usage=self._usage()))
        yield "data: [DONE]\n\n"

    async def _bursts(self) -> AsyncIterator[list[Event]]:
        """Yield events as they come, nothing for a while as an empty list, until all answers have ended."""
        left = len(self._order.jobs)
        while left:
            remaining = self._deadline - time.monotonic()
            if remaining <= 0:
                raise timed_out(self._seconds)
            events: list[Event] = []
            with contextlib.suppress(asyncio.TimeoutError):
                events = await asyncio.wait_for(self._outbox.burst(), min(remaining, _PING))
            left -= sum(isinstance(event, Done) for event in events)
            yield list(_merged(events))

    def _told(self, event: Event) -> list[dict[str, Any]]:
        """Return the parts that tell of an event; raise what went wrong."""
        if isinstance(event, ApiError):
            raise event
        choice = self._order.choices[event.index]
        if isinstance(event, Piece):
            return choice.feed(event.text, event.chances)
        return choice.end(event)

    def _usage(self) -> dict[str, Any]:
        """Return the figures of the reply."""
        return usage(self._order.prompts, [one.answer for one in self._order.choices if one.answer is not None])


class Stream(StreamingResponse):
    """A stream of server-sent events, which ends its exchange however it is left."""

    def __init__(self, exchange: Exchange, with_usage: bool) -> None:
        headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
        super().__init__(exchange.stream(with_usage), media_type="text/event-stream", headers=headers)
        self._exchange = exchange

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the stream."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._exchange.close()


def _merged(events: list[Event]) -> Iterator[Event]:
    """Yield events with neighbouring pieces of one answer as one: what was accepted together is sent together."""
    held: Piece | None = None
    for event in events:
        if isinstance(event, Piece) and held is not None and held.index == event.index:
            held = Piece(held.index, held.text + event.text, (*held.chances, *event.chances))
            continue
        if held is not None:
            yield held
        held = event if isinstance(event, Piece) else None
        if held is None:
            yield event
    if held is not None:
        yield held


def _event(value: dict[str, Any]) -> str:
    """Return a server-sent event."""
    return f"data: {json.dumps(value, separators=(',', ':'))}\n\n"

"""One answer to be given, and how its parts get from the thread of the model to the client's."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .errors import ApiError

if TYPE_CHECKING:
    from ..hf.answering import Answer, Settings
    from ..hf.listening import TokenChances

__all__ = ["Done", "Event", "Job", "Outbox", "Piece"]


@dataclass(frozen=True)
class Piece:
    """Text that has become certain, and the log-probabilities of the tokens heard since the piece before."""

    index: int
    text: str
    chances: Sequence[TokenChances] = ()


@dataclass(frozen=True)
class Done:
    """The end of an answer: why it ended, and its figures."""

    index: int
    reason: str
    answer: Answer


Event = Piece | Done | ApiError


class Outbox:
    """Takes the events of a request's answers from any thread to the event loop, as bursts.

    Parameters
    ----------
    loop : asyncio.AbstractEventLoop
        The loop that reads.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._events: list[Event] = []
        self._is_told = False
        self._lock = threading.Lock()
        self._ready = asyncio.Event()

    def put(self, event: Event) -> None:
        """Add an event; it is dropped where nobody reads any more."""
        with self._lock:
            self._events.append(event)
            if self._is_told or self._loop.is_closed():
                return
            self._is_told = True
        try:
            self._loop.call_soon_threadsafe(self._ready.set)
        except RuntimeError:  # the loop was closed in between
            return

    async def burst(self) -> list[Event]:
        """Wait for events and return all that there are."""
        await self._ready.wait()
        with self._lock:
            events, self._events = self._events, []
            self._is_told = False
            self._ready.clear()
        return events


@dataclass(eq=False)
class Job:
    """One answer to be given.

    Attributes
    ----------
    user : str
        Who asks: users take turns, and each one's own memory and caches serve.
    index : int
        The number of the answer in its request.
    prompt : list of int
    settings : Settings
    outbox : Outbox
    stops : sequence of str
        Stop sequences.
    shown : frozenset of int
        Special tokens that are part of the text.
    prediction : list of int or None
        What the answer is expected to resemble.
    """

    user: str
    index: int
    prompt: list[int]
    settings: Settings
    outbox: Outbox
    stops: Sequence[str] = ()
    shown: frozenset[int] = frozenset()
    prediction: Any = None
    _cancelled: threading.Event = field(default_factory=threading.Event)

    def cancel(self) -> None:
        """Have the answer end with the next token, since nobody waits for it."""
        self._cancelled.set()

    @property
    def is_cancelled(self) -> bool:
        """Whether nobody waits for the answer."""
        return self._cancelled.is_set()

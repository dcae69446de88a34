"""Whose turn it is: answers wait in one queue for each user, and the users take turns."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence

from .errors import ApiError, overloaded, shutting_down
from .job import Job
from .limits import Limits

__all__ = ["Turns"]


class Turns:
    """A fair queue between threads.

    Parameters
    ----------
    limits : Limits
        How many may wait.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._queues: dict[str, deque[Job]] = {}  # of users that wait; the first one is next
        self._changed = threading.Condition()
        self._is_closed = False

    def __len__(self) -> int:
        """Return how many answers wait."""
        with self._changed:
            return sum(map(len, self._queues.values()))

    def put(self, jobs: Sequence[Job]) -> None:
        """Let the answers of one user's request wait.

        Raises
        ------
        ApiError
            Where too many wait already, or the queue is closed.
        """
        with self._changed:
            if self._is_closed:
                raise shutting_down()
            waiting, queue = sum(map(len, self._queues.values())), self._queues.get(jobs[0].user, deque())
            if waiting + len(jobs) > self._limits.waiting:
                raise overloaded(waiting)
            if len(queue) + len(jobs) > self._limits.waiting_per_user:
                message = f"{len(queue)} answers of yours are waiting already; try again when some of them are done"
                raise ApiError(429, message, code="rate_limit_exceeded")
            queue.extend(jobs)
            self._queues[jobs[0].user] = queue
            self._changed.notify()

    def next(self) -> Job | None:
        """Wait for an answer whose turn it is, and return it; None once the queue is closed and empty."""
        with self._changed:
            self._changed.wait_for(lambda: self._queues or self._is_closed)
            return self._taken(next(iter(self._queues))) if self._queues else None

    def more(self, most: int, joins: Callable[[Job], bool]) -> None:
        """Take at most so many more answers, whose turns come next, as far as each is let join."""
        with self._changed:
            passed: set[str] = set()  # whose next answer may not
            while most > 0 and (user := next((one for one in self._queues if one not in passed), None)) is not None:
                if joins(self._queues[user][0]):
                    most -= 1
                    self._taken(user)
                else:
                    passed.add(user)

    def _taken(self, user: str) -> Job:
        """Take a user's next answer; the next one of the same user comes after those of all others."""
        queue = self._queues.pop(user)
        job = queue.popleft()
        if queue:
            self._queues[user] = queue
        return job

    def remove(self, job: Job) -> bool:
        """Take an answer out of the queue; return whether it still waited."""
        with self._changed:
            queue = self._queues.get(job.user)
            if queue is None or job not in queue:
                return False
            queue.remove(job)
            if not queue:
                del self._queues[job.user]
            return True

    def close(self) -> None:
        """Let nobody in any more; who waits is still served."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

"""The server process: uvicorn, and an end that lets running answers finish."""

from __future__ import annotations

import threading
from types import FrameType
from typing import Any

import uvicorn

from .app import Service, create_app
from .limits import Limits

__all__ = ["Server", "serving"]

_LEFT = 10  # seconds in which those who still wait when the time is up are told so


class Server(uvicorn.Server):
    """Serves until it is asked to stop, then takes no more requests and finishes those that there are.

    Parameters
    ----------
    service : Service
    host : str
    port : int
    key : str or None
        The API key.
    grace : float
        Seconds that running and waiting answers have when the server is asked to stop; who waits longer is told.
    log_level : str
        uvicorn's.
    """

    def __init__(
        self, service: Service, host: str, port: int, key: str | None, grace: float, log_level: str = "info"
    ) -> None:
        app = create_app(service, key)
        wait = int(grace) + _LEFT
        config: dict[str, Any] = {"log_level": log_level, "timeout_graceful_shutdown": wait, "server_header": False}
        super().__init__(uvicorn.Config(app, host, port, **config))
        self._worker, self._grace = service.worker, grace

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Finish, or after a second signal end at once; the signal is not raised again, so the exit code is 0."""
        self.force_exit = self.should_exit
        self.finish()

    def finish(self) -> None:
        """Take no more requests, and end those that are not done in time."""
        self.should_exit = True
        self._worker.drain()
        timer = threading.Timer(self._grace, self._worker.end)
        timer.daemon = True
        timer.start()


def serving(
    model: Any,
    tokenizer: Any,
    name: str,
    limits: Limits,
    host: str,
    port: int,
    key: str | None,
    grace: float,
    log_level: str,
) -> Server:
    """Return a server for a model."""
    return Server(Service.of(model, tokenizer, name, limits), host, port, key, grace, log_level)

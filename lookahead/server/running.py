"""The server process: uvicorn, and an end that lets running answers finish."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
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
    on_start : callable, optional
        ``on_start(url)`` is told once requests are taken.
    """

    def __init__(
        self,
        service: Service,
        host: str,
        port: int,
        key: str | None,
        grace: float,
        log_level: str = "info",
        on_start: Callable[[str], None] | None = None,
    ) -> None:
        app = create_app(service, key)
        wait = int(grace) + _LEFT
        config: dict[str, Any] = {"log_level": log_level, "timeout_graceful_shutdown": wait, "server_header": False}
        super().__init__(uvicorn.Config(app, host, port, **config))
        self._worker, self._grace, self._on_start = service.worker, grace, on_start

    @property
    def url(self) -> str:
        """Where requests are taken."""
        host, port = self.servers[0].sockets[0].getsockname()[:2]
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Take requests, and tell where."""
        await super().startup(sockets)
        if self.started and self._on_start is not None:
            self._on_start(self.url)

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
    on_start: Callable[[str], None],
) -> Server:
    """Return a server for a model."""
    return Server(Service.of(model, tokenizer, name, limits), host, port, key, grace, log_level, on_start)

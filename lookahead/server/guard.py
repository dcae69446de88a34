"""What stands before the routes: the key, the length of bodies, and the time in which they arrive."""

from __future__ import annotations

import asyncio
import hmac

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .errors import ApiError, crowded, too_large
from .limits import Limits
from .metrics import Metrics

__all__ = ["Guard"]

_OPEN = ("/health",)  # what a load balancer asks
_DRAINED = 8  # times the limit that is read and thrown away, so that a client in the middle of sending hears the answer


class Guard:
    """Lets a request through when it has the key and a body that is not too long.

    Parameters
    ----------
    app : ASGIApp
    limits : Limits
    metrics : Metrics
    key : str or None
        Without one, everybody may ask.
    """

    def __init__(self, app: ASGIApp, limits: Limits, metrics: Metrics, key: str | None) -> None:
        self._app, self._limits, self._metrics = app, limits, metrics
        self._key = None if key is None else f"Bearer {key}".encode()
        self._at_work = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it with an error."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._metrics.requested(scope["path"], message["status"])
            await send(message)

        self._at_work += 1
        try:
            self._check_key(scope)
            self._check_crowd(scope)
            body = await asyncio.wait_for(self._read(scope, receive), self._limits.body_seconds)
        except ApiError as error:
            await JSONResponse(error.body(), error.status, error.headers)(scope, receive, counted)
        except asyncio.TimeoutError:
            message = f"the body did not arrive within {self._limits.body_seconds:g} s; send it faster"
            await JSONResponse(ApiError(408, message).body(), 408)(scope, receive, counted)
        else:
            if body is not None:
                await self._app(scope, _replayed(body, receive), counted)
        finally:
            self._at_work -= 1

    def _check_key(self, scope: Scope) -> None:
        """Refuse a request without the key; how long it takes does not tell how much of it was right."""
        if self._key is None or scope["path"] in _OPEN:
            return
        given = dict(scope["headers"]).get(b"authorization", b"")
        if not hmac.compare_digest(given, self._key):
            message = "no valid API key was given; send the server's key as `Authorization: Bearer KEY`"
            raise ApiError(401, message, code="invalid_api_key")

    def _check_crowd(self, scope: Scope) -> None:
        """Refuse a request where too many are at work already."""
        if self._at_work > self._limits.requests and scope["path"] not in _OPEN:
            raise crowded(self._limits.requests)

    async def _read(self, scope: Scope, receive: Receive) -> bytes | None:
        """Return the body, None where the client has gone."""
        limit, parts, length = self._limits.body_bytes, [], 0
        announced = dict(scope["headers"]).get(b"content-length", b"0")
        if announced.isdigit() and int(announced) > limit * _DRAINED:
            raise too_large(limit)
        while length <= limit * _DRAINED:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            length += len(message.get("body", b""))
            if length <= limit:
                parts.append(message.get("body", b""))
            if not message.get("more_body", False):
                break
        if length > limit:
            raise too_large(limit)
        return b"".join(parts)


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Return what gives the body that was read, then what comes after it."""
    told = False

    async def replay() -> Message:
        nonlocal told
        if told:
            return await receive()
        told = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay

"""Errors as OpenAI's API tells them: a status, and a JSON object that says what was wrong and with which parameter."""

from __future__ import annotations

from typing import Any

__all__ = ["ApiError", "bad_request", "crowded", "gone_wrong", "overloaded", "shutting_down", "timed_out", "too_large"]

_KINDS = {401: "authentication_error", 429: "rate_limit_error"}


class ApiError(Exception):
    """An error that the client is told.

    Parameters
    ----------
    status : int
        The HTTP status.
    message : str
        What was given, what is allowed, what to do.
    param : str, optional
        The parameter that it is about.
    code : str, optional
        OpenAI's name of the error.
    """

    def __init__(self, status: int, message: str, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.param, self.code = status, message, param, code

    @property
    def headers(self) -> dict[str, str] | None:
        """What a client that may try again is told of when."""
        return {"Retry-After": "1"} if self.status in (429, 503) else None

    def body(self) -> dict[str, Any]:
        """Return what is sent."""
        kind = _KINDS.get(self.status, "invalid_request_error" if self.status < 500 else "server_error")
        return {"error": {"message": self.message, "type": kind, "param": self.param, "code": self.code}}


def bad_request(message: str, param: str | None = None, code: str | None = None) -> ApiError:
    """Return the error of a request that cannot be served as it is."""
    return ApiError(400, message, param, code)


def too_large(limit: int) -> ApiError:
    """Return the error of a body that is too long."""
    return ApiError(413, f"the body is longer than {limit} bytes; send less, or start the server with a larger limit")


def timed_out(seconds: float) -> ApiError:
    """Return the error of an answer that took too long."""
    return ApiError(504, f"the answer took more than {seconds:g} s; ask for fewer tokens, or try later", code="timeout")


def overloaded(waiting: int) -> ApiError:
    """Return the error of a server that has too much to do."""
    return ApiError(503, f"{waiting} answers are waiting already; try again later", code="overloaded")


def crowded(requests: int) -> ApiError:
    """Return the error of a server that has too many requests at once."""
    return ApiError(503, f"{requests} requests are at work already; try again later", code="overloaded")


def shutting_down() -> ApiError:
    """Return the error of a server that is about to end."""
    return ApiError(503, "the server is shutting down; try again later", code="shutting_down")


def gone_wrong() -> ApiError:
    """Return the error of a fault of the server's own, of which its log tells more."""
    return ApiError(500, "the server failed; its log says why", code="internal_error")

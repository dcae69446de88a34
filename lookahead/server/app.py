"""The routes of an OpenAI-compatible server."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import importlib.metadata
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from .answers import Exchange, Stream
from .errors import ApiError, gone_wrong
from .guard import Guard
from .job import Outbox
from .limits import Limits
from .metrics import Metrics
from .orders import Order, Orders
from .replies import ErrorReply, Reply
from .schema import ChatRequest, CompletionRequest, Sampled
from .worker import Worker

__all__ = ["Service", "create_app"]

_GONE = 499  # what is noted where the client did not wait


@dataclass(frozen=True)
class Service:
    """What the routes share."""

    name: str
    worker: Worker
    orders: Orders
    limits: Limits
    metrics: Metrics
    since: int

    @classmethod
    def of(cls, model: Any, tokenizer: Any, name: str, limits: Limits, **options: Any) -> Service:
        """Return the service of a model."""
        metrics = Metrics()
        worker = Worker(model, copy.deepcopy(tokenizer), limits, metrics, **options)
        return cls(name, worker, Orders(model, copy.deepcopy(tokenizer), limits), limits, metrics, int(time.time()))

    def model(self) -> dict[str, Any]:
        """Return what is told about the model."""
        return {"id": self.name, "object": "model", "created": self.since, "owned_by": "lookahead"}

    def check_name(self, name: str) -> None:
        """Refuse another model."""
        if name != self.name:
            message = f"there is no model {name!r}; this server has {self.name!r}"
            raise ApiError(404, message, "model", "model_not_found")


def create_app(service: Service, key: str | None = None) -> FastAPI:
    """Return the application; it starts and ends the worker of its service.

    Parameters
    ----------
    service : Service
    key : str, optional
        The API key that every request but ``/health`` has to bring.
    """

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        service.worker.start()
        yield
        await run_in_threadpool(service.worker.end)

    app = FastAPI(title="lookahead", version=_release(), lifespan=lifespan)
    app.state.service = service
    app.include_router(_router)
    app.add_middleware(Guard, limits=service.limits, metrics=service.metrics, key=key)
    app.add_exception_handler(ApiError, _on_api_error)
    app.add_exception_handler(RequestValidationError, _on_invalid)
    app.add_exception_handler(HTTPException, _on_http_error)
    app.add_exception_handler(Exception, _on_failure)
    return app


def _release() -> str:
    """Return the installed release of lookahead."""
    try:
        return importlib.metadata.version("hf-lookahead")
    except importlib.metadata.PackageNotFoundError:
        return "0"


_ERRORS: dict[int | str, dict[str, Any]] = {
    "4XX": {"model": ErrorReply, "description": "What is wrong with the request."},
    "5XX": {"model": ErrorReply, "description": "Too much to do, or a fault of the server's own."},
}
_STREAMED: dict[int | str, dict[str, Any]] = {200: {"content": {"application/json": {}, "text/event-stream": {}}}}
_FIGURES: dict[int | str, dict[str, Any]] = {200: {"content": {"text/plain": {"schema": {"type": "string"}}}}}
_router = APIRouter(responses=_ERRORS)


@_router.post("/v1/chat/completions", responses=_STREAMED)
async def chat_completions(request: Request, body: ChatRequest) -> Response:
    """Answer a chat."""
    return await _answered(request, body, _service(request).orders.of_chat, "chat.completion")


@_router.post("/v1/completions", responses=_STREAMED)
async def completions(request: Request, body: CompletionRequest) -> Response:
    """Go on with a text."""
    return await _answered(request, body, _service(request).orders.of_text, "text_completion")


@_router.get("/v1/models")
async def models(request: Request) -> dict[str, Any]:
    """List the one model."""
    return {"object": "list", "data": [_service(request).model()]}


@_router.get("/v1/models/{name:path}")
async def model(request: Request, name: str) -> dict[str, Any]:
    """Tell about the model."""
    _service(request).check_name(name)
    return _service(request).model()


@_router.get("/health")
async def health(request: Request) -> dict[str, str]:
    """Tell whether answers are given."""
    if not _service(request).worker.is_alive:
        raise ApiError(503, "the thread of the model has ended; start the server anew", code="unhealthy")
    return {"status": "ok"}


@_router.get("/metrics", response_class=Response, responses=_FIGURES)
async def metrics(request: Request) -> Response:
    """Return figures for Prometheus."""
    return Response(_service(request).metrics.text(), media_type="text/plain; version=0.0.4")


async def _answered(request: Request, body: Any, order_of: Callable[[Any, str, Outbox], Order], kind: str) -> Response:
    """Answer a request, as a stream or as a whole."""
    service, outbox = _service(request), Outbox(asyncio.get_running_loop())
    service.check_name(body.model)
    order = await run_in_threadpool(order_of, body, _user(request, body), outbox)
    exchange = Exchange(service.worker, order, outbox, Reply(kind, service.name), service.limits.seconds)
    exchange.submit()
    if body.stream:
        return Stream(exchange, bool(body.stream_options and body.stream_options.include_usage))
    whole, gone = asyncio.ensure_future(exchange.whole()), asyncio.ensure_future(_until_gone(request))
    try:
        await asyncio.wait({whole, gone}, return_when=asyncio.FIRST_COMPLETED)
        return JSONResponse(whole.result()) if whole.done() else Response(status_code=_GONE)
    finally:
        gone.cancel()
        whole.cancel()
        exchange.close()


async def _until_gone(request: Request) -> None:
    """Wait until the client has closed the connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _user(request: Request, body: Sampled) -> str:
    """Return who takes turns with others, and whose memory serves: the user that is named, or else the machine.

    A user who is called like a machine is somebody else.
    """
    return f"user {body.user}" if body.user else f"host {request.client.host if request.client else ''}"


def _service(request: Request) -> Service:
    """Return the service of the application."""
    service: Service = request.app.state.service
    return service


async def _on_api_error(request: Request, error: Any) -> Response:
    """Tell an error."""
    return JSONResponse(error.body(), error.status, error.headers)


async def _on_invalid(request: Request, error: Any) -> Response:
    """Tell what a body must not hold."""
    first = _plainest(error.errors())
    place = [str(part) for part in first.get("loc", ()) if part != "body"]
    is_json = first.get("type") != "json_invalid"
    param = ".".join(place) if is_json and place else None
    what = f"{param}: {first['msg']}" if param else f"the body is no JSON object that can be read: {first['msg']}"
    return JSONResponse(ApiError(400, what, param).body(), 400)


def _plainest(errors: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the error to tell: of those of the first field, which may have several types, the furthest one."""
    field = errors[0].get("loc", ())[:2]
    of_field = [one for one in errors if one.get("loc", ())[:2] == field]
    return min(of_field, key=lambda one: (one["type"].endswith("_type"), -len(one.get("loc", ()))))


async def _on_http_error(request: Request, error: Any) -> Response:
    """Tell of a path or a method that there is not."""
    message = f"{request.method} {request.url.path}: {error.detail}"
    return JSONResponse(ApiError(error.status_code, message).body(), error.status_code, error.headers)


async def _on_failure(request: Request, error: Any) -> Response:
    """Tell of a fault of the server's own."""
    return JSONResponse(gone_wrong().body(), 500)

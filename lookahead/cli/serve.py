"""``lookahead serve``: an OpenAI-compatible server for one model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from .usage import UNAVAILABLE, usage

__all__ = ["serve"]

_LOCAL = ("127.0.0.1", "localhost", "::1")
_NEEDED = ("fastapi", "uvicorn", "prometheus_client", "pydantic", "starlette")


def serve(
    model: Annotated[str, typer.Option(help="A model's folder, or its name on the Hugging Face hub.")],
    name: Annotated[
        str | None, typer.Option(help="What requests call the model; by itself its folder or name.")
    ] = None,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port to listen on; 0 takes a free one.")] = 8000,
    api_key: Annotated[
        str | None, typer.Option(envvar="LOOKAHEAD_API_KEY", help="The key that requests have to bring.")
    ] = None,
    dtype: Annotated[str, typer.Option(help="auto, float32, bfloat16, float16 or float64.")] = "auto",
    device: Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1 ...; by itself an accelerator.")] = None,
    trust_remote_code: Annotated[bool, typer.Option("--trust-remote-code", help="Run the model's own code.")] = False,
    max_prompt: Annotated[int | None, typer.Option(min=1, help="Most tokens of a prompt.")] = None,
    max_body: Annotated[int, typer.Option(min=1, help="Most bytes of a request.")] = 8_000_000,
    max_waiting: Annotated[
        int, typer.Option(min=1, help="Most answers that wait for their turn; a quarter of one user.")
    ] = 256,
    batch: Annotated[int, typer.Option(min=1, max=256, help="Most answers decoded together, where that pays.")] = 8,
    timeout: Annotated[float, typer.Option(min=1, help="Most seconds from a request to its answer.")] = 600.0,
    max_cache: Annotated[
        int, typer.Option(min=0, help="Most bytes of key-value caches kept for next turns; 0 keeps none.")
    ] = 2_000_000_000,
    grace: Annotated[float, typer.Option(min=0, help="Seconds that answers have when the server stops.")] = 30.0,
    log_level: Annotated[str, typer.Option(help="critical, error, warning, info or debug.")] = "info",
) -> None:
    """Serve a model to OpenAI's clients: chats and completions under http://HOST:PORT/v1.

    Stop it with Ctrl-C: running answers are finished first. Exit codes: 0; 64 wrong usage; 69 a package is missing.
    """
    with usage():
        _check(api_key, log_level)
        server_of = _server()
        from ..hf.loading import load
        from ..server.limits import Limits

        waits = {"waiting": max_waiting, "waiting_per_user": max(1, max_waiting // 4)}
        limits = Limits(
            body_bytes=max_body, prompt_tokens=max_prompt, seconds=timeout, cache_bytes=max_cache, batch=batch, **waits
        )
        target, tokenizer = load(model, dtype, device, trust_remote_code)
        called = name or _name(model)
    if api_key is None and host not in _LOCAL:
        typer.echo(f"lookahead: whoever reaches {host} may use the model; LOOKAHEAD_API_KEY sets a key", err=True)

    def told(url: str) -> None:
        print(f"serving {called} at {url}/v1", flush=True)

    running = server_of(target, tokenizer, called, limits, host, port, api_key, grace, log_level, told)
    running.run()
    raise typer.Exit(0 if running.started else 1)


def _check(api_key: str | None, log_level: str) -> None:
    """Refuse a key that is none, and a level that there is not."""
    if api_key is not None and not api_key.strip():
        raise ValueError("the API key is empty; give one, or leave --api-key and LOOKAHEAD_API_KEY out")
    levels = ("critical", "error", "warning", "info", "debug")
    if log_level not in levels:
        raise ValueError(f"--log-level {log_level!r} is not known; allowed are {', '.join(levels)}")


def _server() -> Any:
    """Return what makes a server; name the package that is missing."""
    try:
        from ..server.running import serving
    except ModuleNotFoundError as error:
        package = (error.name or "").split(".")[0]
        if package not in _NEEDED:
            raise
        typer.echo(f"lookahead serve needs the package {package}; run: pip install 'hf-lookahead[server]'", err=True)
        raise typer.Exit(UNAVAILABLE) from error
    return serving


def _name(model: str) -> str:
    """Return what a model is called: a folder by its last part."""
    path = Path(model).expanduser()
    return path.resolve().name if path.is_dir() else model

"""One server for all tests that change nothing about it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.server.serving import Running

for package in ("fastapi", "uvicorn", "prometheus_client", "openai"):
    pytest.importorskip(package)


@pytest.fixture(scope="session")
def server() -> Iterator[Running]:
    from tests.server.serving import running

    with running() as one:
        yield one


@pytest.fixture(scope="session")
def client(server: Running) -> Iterator[Any]:
    import openai

    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as one:
        yield one

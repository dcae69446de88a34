"""The server against its own OpenAPI description: whatever schemathesis makes up, no request breaks it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings

from lookahead.server.limits import Limits
from tests.server.serving import NAME, running

if TYPE_CHECKING:
    from collections.abc import Iterator

schemathesis: Any = pytest.importorskip("schemathesis")
checks: Any = pytest.importorskip("schemathesis.checks")
OPERATIONS = [
    ("POST", "/v1/chat/completions"),
    ("POST", "/v1/completions"),
    ("GET", "/v1/models"),
    ("GET", "/v1/models/{name}"),
    ("GET", "/health"),
    ("GET", "/metrics"),
]


@pytest.fixture(scope="module")
def description() -> Iterator[Any]:
    """Serve short answers, of which there are many."""
    with running(Limits(answer_tokens=3, choices=2)) as one:
        yield schemathesis.openapi.from_url(f"{one.url}/openapi.json")


def test_all_operations_are_described(description: Any) -> None:
    found = [(one.ok().method.upper(), one.ok().path) for one in description.get_all_operations()]
    assert sorted(found) == sorted(OPERATIONS)


def check(description: Any, method: str, path: str, mode: str, count: int) -> list[int]:
    """Send made-up requests, check every reply against the description, and return the statuses."""
    generation = schemathesis.GenerationMode[mode]
    excluded = [checks.CHECKS.get_one("positive_data_acceptance")]  # a context may be too short for what is valid
    statuses = []

    @settings(max_examples=count, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
    @given(case=description[path][method].as_strategy(generation_mode=generation))
    def send(case: Any) -> None:
        if mode == "POSITIVE" and isinstance(case.body, dict):
            case.body |= {"model": NAME, "max_tokens": None, "max_completion_tokens": None}
            case.body = {key: value for key, value in case.body.items() if value is not None}
        response = case.call()
        statuses.append(response.status_code)
        assert response.status_code < 500, response.text
        if response.status_code >= 400:
            assert response.json()["error"]["message"]
        case.validate_response(response, excluded_checks=excluded)

    send()
    return statuses


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_valid_requests_get_what_is_described(description: Any, method: str, path: str) -> None:
    statuses = check(description, method, path, "POSITIVE", 40 if method == "POST" else 3)
    assert 200 in statuses or "{name}" in path


@pytest.mark.parametrize(("method", "path"), [one for one in OPERATIONS if one[0] == "POST"])
def test_invalid_requests_are_refused(description: Any, method: str, path: str) -> None:
    assert set(check(description, method, path, "NEGATIVE", 40)) <= {400, 404, 405, 415}

from __future__ import annotations

from collections.abc import Callable

import numba
import pytest

from lookahead import _jit


def double(number: int) -> int:
    return 2 * number


def test_a_kernel_keeps_its_meaning() -> None:
    assert _jit.kernel(double)(4) == 8


def test_without_a_place_for_the_cache_kernels_work_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def njit(**options: bool) -> Callable[[Callable[[int], int]], Callable[[int], int]]:
        asked.append(options)
        if options.get("cache"):
            raise RuntimeError("cannot cache function 'double': no locator available")
        return lambda function: function

    monkeypatch.setattr(numba, "njit", njit)
    assert _jit.kernel(double)(4) == 8
    assert asked == [{"cache": True, "nogil": True, "boundscheck": False}, {"nogil": True, "boundscheck": False}]

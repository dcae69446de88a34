"""The project's only compiler decorator, so that all kernels share one set of options."""

from collections.abc import Callable
from typing import TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., object])


def kernel(function: Function) -> Function:
    """Compile `function` at its first call: cached on disk where that can be, without the GIL and bounds checks."""
    try:
        return cast(Function, numba.njit(cache=True, nogil=True, boundscheck=False)(function))
    except RuntimeError:  # numba finds no writable place for its cache, and says so at decoration
        return cast(Function, numba.njit(nogil=True, boundscheck=False)(function))

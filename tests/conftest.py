"""What every test shares: the hypothesis profiles, a fresh cache for compiled kernels, and no network."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import tempfile

import pytest
from hypothesis import HealthCheck, settings

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.setdefault("OMP_NUM_THREADS", "1")  # tiny models: several threads would only wait for each other

# numba's cache does not notice when the options of a decorator change, or a callee in another file: each run compiles
# anew. The workers of pytest-xdist inherit the folder of the process that started them.
_CACHE = None if "PYTEST_XDIST_WORKER" in os.environ else tempfile.mkdtemp(prefix="lookahead-numba-")
if _CACHE:
    os.environ["NUMBA_CACHE_DIR"] = _CACHE
    os.environ["LOOKAHEAD_CACHE"] = os.path.join(_CACHE, "lookahead")  # measured costs

_SLOW_IS_FINE = (HealthCheck.too_slow, HealthCheck.data_too_large)  # the first example may compile a kernel
settings.register_profile("dev", deadline=None, suppress_health_check=_SLOW_IS_FINE, max_examples=50)
settings.register_profile("ci", deadline=None, suppress_health_check=_SLOW_IS_FINE, derandomize=True, print_blob=True)
settings.register_profile("thorough", deadline=None, suppress_health_check=_SLOW_IS_FINE, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))


def pytest_report_header() -> str:
    """Name the releases under test."""
    names = ("torch", "transformers", "numba", "numpy")
    return "releases: " + ", ".join(f"{name} {importlib.metadata.version(name)}" for name in names)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what only compiled kernels can show, where they are not compiled."""
    if os.environ.get("NUMBA_DISABLE_JIT", "0") == "0":
        return
    for item in items:
        if item.get_closest_marker("compiled"):
            item.add_marker(pytest.mark.skip(reason="kernels are not compiled under NUMBA_DISABLE_JIT=1"))


def pytest_unconfigure() -> None:
    """Remove the kernels compiled in this run."""
    if _CACHE:
        shutil.rmtree(_CACHE, ignore_errors=True)

"""Benchmarks: `python -m benchmarks.NAME` prints what the documentation quotes."""

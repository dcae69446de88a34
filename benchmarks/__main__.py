"""All benchmarks in turn: ``python -m benchmarks``."""

from __future__ import annotations

import subprocess
import sys

for name in ("index", "overhead", "generate", "replay", "turns", "renames"):
    print(f"\n== python -m benchmarks.{name}", flush=True)
    subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], check=True)

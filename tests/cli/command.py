"""The command line in a process of its own, with its own Spark."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
QUICK = {"JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1"}
"""Java compiles once and quickly: none of these processes lives long enough for more."""


def python(*arguments: str, timeout: float = 1_200) -> subprocess.CompletedProcess[str]:
    """Run Python with the package and the benchmarks on its path."""
    environment = {**os.environ, **QUICK, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=timeout, check=False, env=environment
    )


def sash(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `sash`."""
    return python("-m", "sash.cli", *arguments)

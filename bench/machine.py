"""A description of the machine, saved with the figures."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

_PACKAGES = ("numba", "numpy", "pandas", "pyarrow", "pyspark")


def machine() -> dict[str, Any]:
    """Processor, cores, memory, system, and the versions of Python and the main packages."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "packages": {name: version(name) for name in _PACKAGES},
    }


def _processor() -> str:
    """The processor's name, from /proc on Linux."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())

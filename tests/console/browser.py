"""Chromium for the tests of the console."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache

ARGUMENTS = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]
PATIENCE = 120_000
"""How long a condition is waited for, in milliseconds: the machine may be busy."""


@cache
def chromium() -> str | None:
    """The path of a Chromium that starts; scripts/setup-chromium.sh looks for the same ones."""
    for name in ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"):
        path = shutil.which(name)
        if path is not None and subprocess.run([path, "--version"], capture_output=True, check=False).returncode == 0:
            return path
    return None

"""The user's cache directory: compiled loops and the archive of Java classes, which `sash prepare` makes."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def cache_directory(name: str) -> Path:
    """A writable directory of that name in the user's cache, or in the temporary directory if there is no such place."""
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    for folder in (Path(home) / "sash" / name, Path(tempfile.gettempdir()) / f"sash-{name}-{os.getuid()}"):
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK):
            return folder
    return Path(tempfile.mkdtemp(prefix=f"sash-{name}-"))

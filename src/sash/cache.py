"""The user's cache directory: compiled loops and the archive of Java classes, which `sash prepare` makes."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path

from sash.private_folders import make_private

_KEPT = 16
"""Caches of compiled loops that are kept: those used last."""


def cache_directory(name: str) -> Path:
    """A writable directory of that name in the user's cache, or in the temporary directory if there is no such place."""
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    for folder in (Path(home) / "sash" / name, Path(tempfile.gettempdir()) / f"sash-{name}-{os.getuid()}"):
        try:
            make_private(folder)
        except OSError:
            continue
        if os.access(folder, os.W_OK):
            return folder
    return Path(tempfile.mkdtemp(prefix=f"sash-{name}-"))


def loops_directory(sources: Iterable[Path]) -> Path:
    """The directory for loops compiled from the Python files in these folders, as they are now.

    numba compares the file of a loop with that of its cached code, not the files of the loops that it calls.
    """
    files = sorted(file for folder in sources for file in folder.rglob("*.py"))
    stamps = (f"{file} {(found := file.stat()).st_size} {found.st_mtime_ns}" for file in files)
    base = cache_directory("numba")
    folder = base / hashlib.sha256("\n".join(stamps).encode()).hexdigest()[:16]
    if not folder.exists():
        others = sorted((path for path in base.iterdir() if path.is_dir()), key=lambda path: path.stat().st_mtime)
        for old in others[: -_KEPT + 1]:
            shutil.rmtree(old, ignore_errors=True)
        make_private(folder)
    else:
        os.utime(folder)
    return folder

"""Compilation of kernels: decorators, and a cache directory that is set before numba is imported."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast


def _cache_directory() -> str:
    """A writable directory: the user's cache, or the temporary directory."""
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    for base in (Path(home) / "sash" / "numba", Path(tempfile.gettempdir()) / f"sash-numba-{os.getuid()}"):
        try:
            base.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(base, os.W_OK):
            return str(base)
    return tempfile.mkdtemp(prefix="sash-numba-")


os.environ.setdefault("NUMBA_CACHE_DIR", _cache_directory())

import numba  # noqa: E402  (its cache directory is read at import)

_Function = TypeVar("_Function", bound=Callable[..., Any])


def kernel(function: _Function) -> _Function:
    """Compile a loop over flat arrays; compiled code is cached on disk, and calls release the interpreter lock."""
    return cast(_Function, numba.njit(function, cache=True, nogil=True))


def uncounted(function: _Function) -> _Function:
    """As `kernel`, without reference counting, for a loop that creates no arrays."""
    options: dict[str, Any] = {"cache": True, "nogil": True, "_nrt": False}
    return cast(_Function, numba.njit(**options)(function))


def inlined(function: _Function) -> _Function:
    """A small step of a hot loop, inlined into its callers: a call would count references to its arrays."""
    return cast(_Function, numba.njit(function, cache=True, nogil=True, inline="always"))

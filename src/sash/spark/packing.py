"""Code of users as bytes, for Python workers and restarts."""

from __future__ import annotations

from typing import Any

from pyspark import cloudpickle

from sash.errors import CatalogError


def pack(code: Any) -> bytes:
    """The function or class as bytes that any Python with the same libraries can read."""
    try:
        packed: bytes = cloudpickle.dumps(code)  # type: ignore[no-untyped-call]
    except Exception as error:
        raise CatalogError(f"{code!r} cannot be sent to Spark's workers: {error}") from error
    return packed

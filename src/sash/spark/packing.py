"""Code of users as bytes, for Python workers and restarts."""

from __future__ import annotations

import sys
from typing import Any

from pyspark import cloudpickle

from sash.errors import CatalogError


def pack_by_value(code: Any) -> bytes:
    """As `pack`, with what it uses of its own module: workers need not find the module."""
    module = sys.modules.get(getattr(code, "__module__", ""))
    if module is None:
        return pack(code)
    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    try:
        return pack(code)
    finally:
        cloudpickle.unregister_pickle_by_value(module)  # type: ignore[no-untyped-call]


def pack(code: Any) -> bytes:
    """The function or class as bytes that any Python with the same libraries can read."""
    try:
        packed: bytes = cloudpickle.dumps(code)  # type: ignore[no-untyped-call]
    except Exception as error:
        raise CatalogError(f"{code!r} cannot be sent to Spark's workers: {error}") from error
    return packed

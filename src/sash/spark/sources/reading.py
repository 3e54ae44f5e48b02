"""What one reading of a table has found: all of its rows, or those that have changed since an earlier reading."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True)
class Reading:
    """All `rows` of a table; or, with `gone`, the rows of keys that have changed, and those of keys that are deleted.

    `seen` is given to the next reading, and says what this one has seen; None if the next one reads everything.
    """

    rows: pa.Table
    gone: pa.Table | None = None
    seen: object = None


ReadTable = Callable[[object], Reading]
"""Reads a table, given what the last reading has seen, or None."""

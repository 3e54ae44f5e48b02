"""Values of rows as JSON holds them: every value keeps what it says, as a number or as text."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from datetime import time as time_of_day
from decimal import Decimal
from typing import Any

import pyarrow as pa


def plain(value: Any) -> Any:
    """A value as JSON holds it.

    >>> plain(Decimal("1.50")), plain(b"ab"), plain(float("nan")), plain({"a": [datetime(2026, 1, 1)]})
    ('1.50', '0x6162', 'NaN', {'a': ['2026-01-01 00:00:00']})
    """
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")
        case datetime():
            return value.isoformat(" ")
        case bytes():
            return f"0x{value.hex()}"
        case Mapping():
            return {str(key): plain(one) for key, one in value.items()}
        case list() | tuple():
            return [plain(one) for one in value]
        case Decimal() | date() | time_of_day() | timedelta():
            return str(value)
    return str(value)


def rows_of(table: pa.Table) -> list[list[Any]]:
    """The rows of a table as lists of plain values."""
    columns = [_column(column) for column in table.columns]
    return [list(row) for row in zip(*columns, strict=True)]


def _column(column: pa.ChunkedArray) -> list[Any]:
    values = column.to_pylist()
    simple = pa.types.is_integer(column.type) or pa.types.is_string(column.type) or pa.types.is_boolean(column.type)
    return values if simple else [plain(value) for value in values]

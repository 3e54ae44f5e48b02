"""Rows in a form that JSON has, which tells types apart, and their comparison as bags."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

from sash.plan.types import type_name
from tests.oracle.check import TOLERANCE
from tests.oracle.duck import naive

Row = tuple[Any, ...]


def rows_of(table: pa.Table) -> list[Row]:
    """The rows of an answer.

    >>> rows_of(pa.table({"d": [Decimal("1.50")], "x": [2.0], "a": [[datetime.date(2024, 2, 29), None]]}))
    [({'decimal': '1.50'}, 2.0, [{'date': '2024-02-29'}, None])]
    """
    columns = [[plain(value, column.type) for value in column.to_pylist()] for column in table.columns]
    return list(zip(*columns, strict=True)) if columns else [()] * table.num_rows


def types_of(table: pa.Table) -> list[str]:
    """The types of an answer's columns."""
    return [type_name(field.type) for field in table.schema]


def plain(value: Any, dtype: pa.DataType) -> Any:
    """A value of a type as JSON has it."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case Decimal():
            return {"decimal": f"{value:f}"}
        case datetime.datetime():
            return {"timestamp": naive(value).isoformat(" ")}
        case datetime.date():
            return {"date": value.isoformat()}
        case datetime.time():
            return {"time": value.isoformat()}
        case datetime.timedelta():
            return {"interval": str(value)}
        case bytes():
            return {"binary": value.hex()}
        case _ if pa.types.is_map(dtype):
            pairs = ([plain(key, dtype.key_type), plain(item, dtype.item_type)] for key, item in value)
            return {"map": sorted(pairs, key=repr)}
        case _ if pa.types.is_struct(dtype):
            return {"struct": [plain(value[field.name], field.type) for field in dtype]}
        case list():
            return [plain(part, dtype.value_type) for part in value]
    raise TypeError(f"no form for {value!r} of type {dtype}")


def difference(expected: Sequence[Row], actual: Iterable[Row]) -> tuple[list[Row], list[Row]]:
    """The rows that are missing and those that are surplus; doubles may differ in their last digits."""
    missing, surplus = list(expected), []
    for row in actual:
        place = next((i for i, other in enumerate(missing) if same(row, other)), None)
        if place is None:
            surplus.append(row)
        else:
            missing.pop(place)
    return missing, surplus


def same(one: Any, other: Any) -> bool:
    """Whether two plain values are equal, with their types, but for the last digits of doubles.

    >>> same([1.0, "a"], [1.0 + 1e-12, "a"]), same(1, 1.0), same(0.0, -0.0), same(math.nan, math.nan)
    (True, False, True, True)
    """
    if isinstance(one, float) and isinstance(other, float):
        if math.isnan(one) or math.isnan(other):
            return math.isnan(one) and math.isnan(other)
        return one == other or abs(one - other) <= TOLERANCE * max(1.0, abs(one), abs(other))
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    return type(one) is type(other) and bool(one == other)

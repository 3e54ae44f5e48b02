"""Short names for expressions over one table of edge values."""

from __future__ import annotations

import datetime
import decimal
from typing import Any

import numpy as np
import pyarrow as pa

from sash.plan.expressions import Call, Case, Cast, Column, Expression, Literal
from sash.plan.types import BIGINT, BINARY, BOOLEAN, DATE, DOUBLE, FLOAT, INT, STRING, TIMESTAMP, TIMESTAMP_NTZ, TINYINT

ROWS = 120
NAN, INF = float("nan"), float("inf")


def _stamps(*texts: str | None) -> list[Any]:
    return [None if text is None else np.datetime64(text, "us").astype(object) for text in texts]


def _decimals(*texts: str | None) -> list[Any]:
    return [None if text is None else decimal.Decimal(text) for text in texts]


_MOMENTS = (
    "1970-01-01T00:00:00", "1969-12-31T23:59:59.500000", "2020-02-29T12:34:56.789012", "2021-01-01T00:00:00.1", None,
    "1900-03-01T01:02:03", "2024-12-30T23:59:59.999999", "0001-01-01T00:00:00", "9999-12-31T23:59:59", "2019-07-31T05:00:00.00001",
)  # fmt: skip
_VALUES: dict[str, tuple[list[Any], pa.DataType]] = {
    "i": ([0, 1, -7, 15, None, 1000, -1000, 25, -25, 2, 149], INT),
    "j": ([3, -3, 2, 7, 5, None, -4, 1, 10], INT),
    "k": ([-128, 127, 0, None, 5], TINYINT),
    "l": ([0, 2**61, -(2**61), None, 12345678901, -1, 999], BIGINT),
    "d": ([0.0, -0.0, NAN, INF, -INF, 1.5, 2.675, None, 1e10, 1.1e-5, 123456789.987, -2.5, 1.005, 0.5, 1e300, -1e-300], DOUBLE),
    "e": ([1.0, NAN, None, -0.0, 2.5, -3.25, INF, 2.0, 7.0], DOUBLE),
    "g": ([1.5, -1.5, 0.5, 2.5, -127.9, 0.0, None, 99.99, 1234.5678, 2.675, 1.005, -0.285, 14.5], DOUBLE),
    "f": ([0.1, 1.5, None, NAN, 1e7, -2.25, 0.15], FLOAT),
    "m": (_decimals("0.00", "1.25", "-1.25", None, "99999999.99", "-12345.67", "0.05", "2.50"), pa.decimal128(10, 2)),
    "n": (_decimals("0.0001", "3.0000", None, "-0.4000", "12345678.9012", "7.5000"), pa.decimal128(12, 4)),
    "p": (_decimals("1.000000000000000000", "-3.141592653589793238", None, "12345678901234567.890123456789012345"), pa.decimal128(38, 18)),
    "s": (["", "abc", "Hello World", " pad ", "héllo ß", None, "a,b,,c", "12", "\U0001d538bc", "x_y%z", "line\nbreak", "tab\there", "ABC"], STRING),
    "t": (["a", "", None, "b", "lo", "abc", ","], STRING),
    "q": (["12", " 7 ", "+5", "-0", "007", "1.5", "junk", "", None, "1e3", "9223372036854775807", "9223372036854775808", "-129",
           "NaN", "-inf", "+Infinity", ".5", "3.", "1d", "-nan", "0.005", "123456.785", "99999999999999999999999999999999999999",
           "1E-3", "\t42\n", "true", "N", "yes", "0x1F", "1_000", "- 1"], STRING),
    "w": (["2020-01-05", "2020", "2020-1", "2020-1-5", "2020-01-05 10:11:12", "2020-01-05T10:11:12.123456789Z", "2020-02-30", "x", None,
           "2020-01-05 10", "2020-01-05 10:11", "2020-01-05T10:00:00+01:00", "2020-01-05T10:00:00-8", "2020-01-05 10:00:00.5 UTC",
           "2020-01-05 24:00:00", "2020-01-05junk", "2020-01-05 junk", " 2020-01-05 ", "+2020-01-05", "20200105", "2020-13-01",
           "2020-01-05 10:00:00 Europe/Paris", "2020-07-05 10:00:00 Europe/Paris", "2020-01-05 10:00:00.", "2020-01-05 10:00 Z",
           "2020-01-05 10:00:00+19:00", "2020-01-05 10:00:00GMT+2", "1582-10-10 00:00:00", "2020-01-05T", ""], STRING),
    "b": ([True, False, None], BOOLEAN),
    "c": ([True, True, False, False, None, None, True], BOOLEAN),
    "day": ([None if each is None else each.date() for each in _stamps(*_MOMENTS)], DATE),
    "day2": ([datetime.date(2020, 1, 31), datetime.date(2019, 2, 28), None, datetime.date(1960, 2, 29)], DATE),
    "ts": (_stamps(*_MOMENTS), TIMESTAMP),
    "ntz": (_stamps(*_MOMENTS[::-1]), TIMESTAMP_NTZ),
    "bin": ([b"", b"abc", b"\xff\x01", None], BINARY),
}  # fmt: skip


def table() -> pa.Table:
    """Every column's edge values, repeated to one length; the lengths differ, so that the values meet."""
    arrays = [pa.array([values[row % len(values)] for row in range(ROWS)], dtype) for values, dtype in _VALUES.values()]
    return pa.table(arrays, names=list(_VALUES))


def col(name: str) -> Column:
    return Column(list(_VALUES).index(name), name, _VALUES[name][1])


def lit(value: Any, dtype: pa.DataType | None = None) -> Literal:
    return Literal(value, pa.scalar(value).type if dtype is None else dtype)


def call(name: str, dtype: pa.DataType, *arguments: Expression | Any) -> Call:
    return Call(name, tuple(each if isinstance(each, Expression) else lit(each) for each in arguments), dtype)


def cast(argument: Expression, dtype: pa.DataType) -> Cast:
    return Cast(argument, dtype)


def try_cast(argument: Expression, dtype: pa.DataType) -> Cast:
    return Cast(argument, dtype, lenient=True)


def case(dtype: pa.DataType, *parts: Expression) -> Case:
    """case(dtype, when, then, when, then, ..., [otherwise])."""
    pairs = tuple(zip(parts[0::2], parts[1::2], strict=False))
    return Case(pairs, parts[-1] if len(parts) % 2 else None, dtype)

"""The streams that all coverage queries read: few rows of all types, which come and expire at different instants."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from decimal import Decimal

from tests.oracle.case import table
from tests.oracle.duck import Rows

_NAN = float("nan")


def _day(text: str) -> datetime.date:
    return datetime.date.fromisoformat(text)


def _at(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text)


STREAMS: Mapping[str, Rows] = {
    "s": table(
        "ts id k g v x d b day at big small bin",
        (1, 1, 1, "a", 10, 0.5, Decimal("1.50"), True, _day("2024-02-29"), _at("2024-02-29T23:59:59"), 10, 1, b"a"),
        (1, 2, 2, "b", 7, -0.0, Decimal("-2.25"), False, _day("2023-12-31"), _at("2023-12-31T00:00:00"), -3, 2, b""),
        (2, 3, 1, "a", 10, 0.5, Decimal("1.50"), True, _day("2024-02-29"), _at("2024-02-29T23:59:59"), 10, 1, b"a"),
        (4, 4, None, "a", 3, None, None, None, None, None, None, None, None),
        (
            5,
            5,
            2,
            None,
            None,
            2.0,
            Decimal("100.00"),
            True,
            _day("1969-07-20"),
            _at("1969-07-20T20:17:40"),
            2**40,
            -5,
            b"\0z",
        ),
        (
            6,
            6,
            3,
            "c",
            -7,
            -1.5,
            Decimal("0.00"),
            False,
            _day("2024-03-01"),
            _at("2024-03-01T12:30:15.250000"),
            0,
            0,
            b"Zz",
        ),
        (6, 7, 1, "b", 9, 0.25, Decimal("9.99"), None, _day("2024-01-31"), _at("2024-01-31T08:00:00"), 5, 7, b"b"),
        (9, 8, 3, "", 0, 0.0, Decimal("-0.01"), False, _day("2024-02-29"), _at("2024-02-29T00:00:00"), -1, 3, b"c"),
        (
            12,
            9,
            2,
            "Ab c",
            7,
            1e10,
            Decimal("7.00"),
            True,
            _day("2025-01-01"),
            _at("2025-01-01T00:00:00.000001"),
            7,
            9,
            b"d",
        ),
        (
            12,
            10,
            2,
            "Ab c",
            7,
            1e10,
            Decimal("7.00"),
            True,
            _day("2025-01-01"),
            _at("2025-01-01T00:00:00.000001"),
            7,
            9,
            b"d",
        ),
        (15, 11, 4, "b%_", -20, _NAN, None, False, None, _at("2024-06-15T18:45:00"), 12345678901, 4, None),
        (20, 12, 1, "a", 4, 0.5, Decimal("1.50"), True, _day("2024-02-29"), _at("2024-02-29T23:59:59"), 10, 1, b"a"),
        (22, 13, None, None, None, None, None, None, None, None, None, None, None),
        (26, 14, 5, "é", 1, 3.75, Decimal("3.14"), True, _day("2024-10-05"), _at("2024-10-05T05:05:05"), -9, 6, b"e"),
    ),
    "r": table(
        "ts k g w y",
        (0, 2, "b", 7, 1.25),
        (3, 1, "a", 4, 0.5),
        (3, 1, "a", 4, 0.5),
        (5, None, "a", 3, None),
        (6, 3, "c", 9, -1.5),
        (7, 1, "b", None, 0.25),
        (13, 2, "b", 1, 8.0),
        (14, 6, None, 2, 2.0),
        (24, 5, "é", 1, 8.0),
    ),
    "q": table(
        "ts k name z",
        (2, 1, "one", 5),
        (2, 2, "two", 2),
        (4, 3, "three", 9),
        (8, 1, "uno", None),
        (14, 2, None, 1),
        (15, 4, "four", 5),
        (23, 5, "five", 5),
    ),
    "e": table("ts k v", (11, 1, 10), (12, 2, None)),
    "t": table(
        "ts k v",
        (1, 1, 10),
        (2, 2, 20),
        (2, 1, -5),
        (5, 1, 30),
        (6, 2, None),
        (11, 1, 7),
        (13, 3, 8),
        (19, 2, 1),
    ),
}
"""`s` has all scalar types, duplicates, ties, NULLs, -0.0 and NaN. `r` and `q` share its keys, `e` is nearly always
empty, and the time of `t` is a TIMESTAMP."""

SCHEMAS: Mapping[str, str] = {
    "s": (
        "ts BIGINT, id INT, k INT, g STRING, v INT, x DOUBLE, d DECIMAL(10,2), b BOOLEAN, day DATE, at TIMESTAMP, "
        "big BIGINT, small SMALLINT, bin BINARY"
    ),
    "r": "ts BIGINT, k INT, g STRING, w INT, y DOUBLE",
    "q": "ts BIGINT, k INT, name STRING, z INT",
    "e": "ts BIGINT, k INT, v INT",
    "t": "ts TIMESTAMP, k INT, v INT",
}

LENGTH = 10
"""The seconds for which a row is valid, where a query declares no window."""

INSTANTS = (2, 6, 13, 40)
"""When answers are compared: at arrivals, after the first rows have expired, and when all have."""


def valid(name: str, length: int, instant: int) -> Rows:
    """The rows of a stream that are valid at an instant in a window of a length, in seconds."""
    return [row for row in STREAMS[name] if row["ts"] <= instant < row["ts"] + length]

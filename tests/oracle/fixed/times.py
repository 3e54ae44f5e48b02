"""The time of a row as a column: SQL sees its instant, whatever the unit of the replay and the type of its values."""

from __future__ import annotations

import datetime

from tests.oracle.case import Case, case, table

_MINUTE = {"s": 60, "ms": 60_000}
_NOON = datetime.datetime(2026, 3, 1, 12, 0, tzinfo=datetime.UTC)
_WEST = datetime.timezone(datetime.timedelta(hours=-5))

_NEAR = (
    "SELECT a.k, a.ts AS first, b.ts AS second FROM {a} AS a JOIN {b} AS b ON a.k = b.k "
    "AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 10 MINUTES"
)
_BY_HOUR = "SELECT date_trunc('HOUR', ts) AS hour, COUNT(*) AS n FROM {a} GROUP BY date_trunc('HOUR', ts)"
_PARTS = "SELECT year(ts) AS y, month(ts) AS m, minute(ts) AS i, k FROM {a} WHERE hour(ts) >= 1"
_A = ((0, 1), (30, 2), (59, 1), (61, 1), (125, 2))
"""Minutes and keys."""
_B = ((9, 1), (10, 1), (11, 1), (41, 2), (60, 1), (69, 1), (72, 1), (134, 2))


def _cases(unit: str, dtype: str) -> list[Case]:
    minute = _MINUTE[unit]
    streams = {name: table("ts k", *((at * minute, key) for at, key in rows)) for name, rows in (("a", _A), ("b", _B))}
    schemas = dict.fromkeys(streams, f"ts {dtype}, k INT")
    window, name = 120 * minute, f"{dtype.lower()}_in_{unit}"
    return [
        case(f"near_{name}", _NEAR, {"a": window, "b": window}, streams=streams, schemas=schemas, unit=unit),
        case(f"by_hour_{name}", _BY_HOUR, {"a": window}, streams=streams, schemas={"a": schemas["a"]}, unit=unit),
        case(f"parts_{name}", _PARTS, {"a": window}, streams=streams, schemas={"a": schemas["a"]}, unit=unit),
    ]


def _dated(name: str, first: datetime.datetime) -> list[Case]:
    """The same with datetimes, whose types are inferred."""
    streams = {
        stream: table("ts k", *((first + datetime.timedelta(minutes=at), key) for at, key in rows))
        for stream, rows in (("a", _A), ("b", _B))
    }
    return [
        case(f"near_{name}", _NEAR, {"a": 7_200, "b": 7_200}, streams=streams),
        case(f"by_hour_{name}", _BY_HOUR, {"a": 7_200}, streams=streams),
    ]


CASES = (
    *(made for unit in _MINUTE for dtype in ("TIMESTAMP", "TIMESTAMP_NTZ") for made in _cases(unit, dtype)),
    *_dated("aware", _NOON.astimezone(_WEST)),
    *_dated("naive", _NOON.replace(tzinfo=None)),
)

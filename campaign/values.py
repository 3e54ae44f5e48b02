"""Extreme values, times and windows, as keys and in aggregates, joins and orders, against DuckDB at every instant."""

from __future__ import annotations

import datetime
import decimal
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st

from campaign.plans import RIGHT
from campaign.subject import Outcome, Subject
from sash.errors import SashError
from tests.oracle.case import Case, clause
from tests.oracle.check import assert_oracle
from tests.oracle.duck import View

_YEAR = 31_556_952_000_000
_LENGTHS = (1, 2, 3, 999, 1_000_000, 3_600_000_000, 86_400_000_000, 1_000 * _YEAR)
"""Windows from a microsecond to a thousand years, in microseconds."""
_GAPS = (0, 0, 1, 1, 2, 998, 1_000_000, 3_600_000_000, _YEAR, 1_000 * _YEAR)
_LAST = 253_402_300_799_999_999
"""The last microsecond of the year 9999."""

_decimal = decimal.Decimal


def _long(low: int, high: int) -> tuple[int, ...]:
    return (low, low + 1, -1, 0, 1, high - 1, high)


POOLS: Mapping[str, tuple[Any, ...]] = {
    "TINYINT": _long(-(2**7), 2**7 - 1),
    "SMALLINT": _long(-(2**15), 2**15 - 1),
    "INT": _long(-(2**31), 2**31 - 1),
    "BIGINT": (*_long(-(2**63), 2**63 - 1), 2**53, 2**53 + 1, -(2**53) - 1),
    "DOUBLE": (
        0.0, -0.0, 1.0, -1.0, 0.1, 5e-324, -5e-324, 2.2250738585072014e-308, 1.7976931348623157e308,
        -1.7976931348623157e308, float("inf"), -float("inf"), float("nan"), 2.0**53, 2.0**53 + 2,
    ),
    "FLOAT": (0.0, -0.0, 0.5, -2.0, 2.0**-149, 3.4028234663852886e38, float("inf"), -float("inf"), float("nan")),
    "DECIMAL(38, 0)": (_decimal(10**38 - 1), _decimal(1 - 10**38), _decimal(0), _decimal(1), _decimal(-1), _decimal(10**19)),
    "DECIMAL(38, 38)": (
        _decimal("0." + "9" * 38), _decimal("-0." + "9" * 38), _decimal("0." + "0" * 37 + "1"), _decimal(0),
    ),
    "DECIMAL(18, 2)": (_decimal("9999999999999999.99"), _decimal("-9999999999999999.99"), _decimal("0.01"), _decimal(0)),
    "DECIMAL(2, 2)": (_decimal("0.99"), _decimal("-0.99"), _decimal("0.55"), _decimal(0)),
    "STRING": (
        "", " ", "a", "A", "a ", "\0", "a\0b", "é", "e\u0301", "ß", "İ", "\u202eabc", "\ufeff", "\uffff", "\U0001d518\U0001d52b", "👩\u200d👩\u200d👧",
        "\U0010ffff", "'", '"', "\\", "\n", "%", "_", "null", "NaN", "<script>", "x" * 11, "x" * 12, "x" * 13, "x" * 65_536,
    ),
    "BOOLEAN": (True, False),
    "DATE": (
        datetime.date(1, 1, 1), datetime.date(9999, 12, 31), datetime.date(1582, 10, 4), datetime.date(1582, 10, 15),
        datetime.date(1970, 1, 1), datetime.date(1969, 12, 31), datetime.date(2000, 2, 29), datetime.date(1900, 2, 28),
    ),
    "TIMESTAMP": (
        datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31, 23, 59, 59, 999_999),
        datetime.datetime(1970, 1, 1), datetime.datetime(1969, 12, 31, 23, 59, 59, 999_999),
        datetime.datetime(2026, 3, 29, 1, 59, 59, 999_999), datetime.datetime(2026, 3, 29, 2, 30),
        datetime.datetime(2026, 10, 25, 2, 30), datetime.datetime(1582, 10, 10), datetime.datetime(2016, 12, 31, 23, 59, 59),
    ),
    "BINARY": (b"", b"\0", b"\0\0", b"\xff", b"a", b"\xff" * 17, bytes(range(256))),
}  # fmt: skip
"""Values of each type that have broken programs before."""
_VERY_LONG = "\U0001f600" * (10 * 2**20 // 4)
"""A text of 10 MB."""

_QUERIES = {
    "group": "SELECT v, COUNT(*) AS n, MIN(k) AS m FROM {s} GROUP BY v",
    "distinct": "SELECT DISTINCT v, k FROM {s}",
    "extremes": "SELECT k, MIN(v) AS low, MAX(v) AS high, COUNT(v) AS n, COUNT(DISTINCT v) AS d FROM {s} GROUP BY k",
    "join": "SELECT a.k AS x, b.k AS y, a.v AS v FROM {s} AS a JOIN {r} AS b ON a.v = b.v",
    "compare": "SELECT a.k AS x, b.k AS y FROM {s} AS a JOIN {r} AS b ON a.v < b.v",
    "outer": "SELECT a.v AS v, b.k AS y FROM {s} AS a LEFT JOIN {r} AS b ON a.v = b.v",
    "anti": "SELECT a.v AS v FROM {s} AS a {anti} {r} AS b ON a.v = b.v",
    "except": "SELECT v FROM {s} EXCEPT SELECT v FROM {r}",
    "except all": "SELECT v FROM {s} EXCEPT ALL SELECT v FROM {r}",
    "intersect": "SELECT v FROM {s} INTERSECT ALL SELECT v FROM {r}",
    "union": "SELECT v FROM {s} UNION SELECT v FROM {r}",
    "top": "SELECT v, k FROM {s} ORDER BY v DESC NULLS LAST, k NULLS FIRST LIMIT 2",
    "highest": "SELECT k FROM {s} WHERE v >= (SELECT MAX(v) FROM {r})",
    "not in": "SELECT k, v FROM {s} WHERE v NOT IN (SELECT v FROM {r})",
    "rank": "SELECT k, v, RANK() OVER (ORDER BY v NULLS FIRST) AS n FROM {s}",
    "extremes of frames": "SELECT k, v, MAX(v) OVER (PARTITION BY k) AS h, COUNT(v) OVER (PARTITION BY v) AS n FROM {s}",
}
_SUM = "SELECT k, SUM(v) AS total FROM {s} GROUP BY k"
_SUMMED = {"TINYINT": 0, "SMALLINT": 0, "INT": 0, "BIGINT": 0}


@dataclass(frozen=True, eq=False)
class ValueCase:
    """A query over extreme values."""

    case: Case
    dtype: str
    query: str
    options: dict[str, Any]


@st.composite
def _value_cases(draw: st.DrawFn) -> ValueCase:
    if draw(st.integers(0, 199)) == 199:
        return _wide(draw)
    dtype = draw(st.sampled_from(tuple(POOLS)))
    pool = POOLS[dtype]
    if dtype == "STRING" and draw(st.integers(0, 99)) == 99:
        pool = (_VERY_LONG, *pool[:2])
    value = st.one_of(st.none(), st.sampled_from(pool), st.sampled_from(pool))
    names = (*_QUERIES, *(["sum"] if dtype in _SUMMED else []))
    name = draw(st.sampled_from(names))
    text = _SUM if name == "sum" else _QUERIES[name]
    views = {one: View(one, draw(st.sampled_from(_LENGTHS))) for one in ("s", "r") if f"{{{one}}}" in text}
    windows = {one: f"{one} {clause(view, 'us')}" for one, view in views.items()}
    sash, duck = text, text
    if name == "sum":
        duck = text.replace("SUM(v)", "CAST(SUM(v) AS BIGINT)")
    rows = {one: _rows(draw, value) for one in views}
    latest = max((row["ts"] for one in rows.values() for row in one), default=0)
    case = Case(
        name,
        sash.format(**windows, anti="LEFT ANTI JOIN"),
        duck.format(**{one: one for one in views}, anti="ANTI JOIN"),
        rows,
        views,
        schemas=dict.fromkeys(views, f"ts BIGINT, k INT, v {dtype}"),
        unit="us",
        empties=name != "highest",
        until=min(latest + max(view.length or 0 for view in views.values()) + 3, _LAST),
    )
    return ValueCase(case, dtype, name, _options(draw))


def _rows(draw: st.DrawFn, value: st.SearchStrategy[Any]) -> list[dict[str, Any]]:
    ts = draw(st.sampled_from((0, 1, 1_700_000_000_000_000, _LAST - 2)))
    rows = []
    for _ in range(draw(st.integers(0, 7))):
        ts = min(ts + draw(st.sampled_from(_GAPS)), _LAST)
        rows.append({"ts": ts, "k": draw(st.sampled_from((1, 2, None))), "v": draw(value)})
    return rows


def _options(draw: st.DrawFn) -> dict[str, Any]:
    return {
        "strategy": draw(st.sampled_from(("auto", "auto", *RIGHT))),
        "shards": draw(st.sampled_from((1, 2, 3))),
        "batch": draw(st.sampled_from((None, 1, 2, 3))),
    }


def _wide(draw: st.DrawFn) -> ValueCase:
    """A stream of a thousand columns."""
    names = [f"c{number}" for number in range(1_000)]
    rows = [
        {"ts": ts, **{name: (ts * 7 + place) % 3 for place, name in enumerate(names)}}
        for ts in range(draw(st.integers(1, 4)))
    ]
    view = View("s", draw(st.sampled_from((1, 2, 1_000))))
    listed = ", ".join(names)
    text = draw(st.sampled_from((f"SELECT {listed} FROM {{s}}", f"SELECT DISTINCT {listed} FROM {{s}}")))
    case = Case(
        "wide",
        text.format(s=f"s {clause(view, 'us')}"),
        text.format(s="s"),
        {"s": rows},
        {"s": view},
        schemas={"s": "ts BIGINT, " + ", ".join(f"{name} BIGINT" for name in names)},
        unit="us",
    )
    return ValueCase(case, "1,000 columns", "wide", _options(draw))


def _check(trial: ValueCase) -> Outcome:
    words = Counter(
        {
            f"type {trial.dtype}",
            f"query {trial.query}",
            f"strategy {trial.options['strategy']}",
            *(f"window of {view.length:,} us" for view in trial.case.views.values()),
        }
    )
    if trial.query == "sum" and _may_overflow(trial.case):
        try:
            assert_oracle(trial.case, **trial.options)
        except SashError as refused:
            if "overflow" not in str(refused):
                raise
        return Outcome(words + Counter(["error overflow"]))
    assert_oracle(trial.case, **trial.options)
    return Outcome(words)


def _may_overflow(case: Case) -> bool:
    """Whether a sum of some of the rows is no BIGINT: then an error is an answer, and DuckDB has none."""
    values = [row["v"] for row in case.streams["s"] if row["v"] is not None]
    return bool(sum(v for v in values if v > 0) >= 2**63 or sum(v for v in values if v < 0) < -(2**63))


def _encode(trial: ValueCase) -> dict[str, Any]:
    case = trial.case
    views = {name: view.length for name, view in case.views.items()}
    stored = {
        "name": case.name,
        "sql": case.sql,
        "duck": case.duck,
        "streams": case.streams,
        "schemas": case.schemas,
        "until": case.until,
        "empties": case.empties,
    }
    return {"case": stored, "views": views, "dtype": trial.dtype, "query": trial.query, "options": trial.options}


def _decode(stored: dict[str, Any]) -> ValueCase:
    views = {name: View(name, length) for name, length in stored["views"].items()}
    case = replace(Case(**stored["case"], views=views), unit="us")
    return ValueCase(case, stored["dtype"], stored["query"], stored["options"])


SUBJECT = Subject(
    "values",
    "extreme values of every type, times from 1970 to 9999 and windows from 1 microsecond to 1,000 years, as keys, in joins, "
    "aggregates and orders, compared with DuckDB at every instant",
    _value_cases(),
    _check,
    _encode,
    _decode,
)

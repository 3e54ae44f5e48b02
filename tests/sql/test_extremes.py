"""Numbers, times and texts beyond all bounds: an answer, or an error of Sash that says so in a few words."""

from __future__ import annotations

import logging
import warnings
from typing import Any

import pytest

from sash.errors import SashError, UnknownNameError
from sash.testing import replay

LONG = "9" * 5_000
FROM = "FROM s [ROWS 1]"


def run(sql: str) -> list[Any]:
    """The values of the first column at the end."""
    rows = [{"ts": 1, "k": 1, "x": "a"}, {"ts": 2, "k": 3, "x": "bc"}]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = replay(sql, {"s": rows}, schemas={"s": "ts TIMESTAMP, k INT, x STRING"}, unit="s").at(2)
    return [next(iter(row.values())) for row in found]


REFUSED = {
    f"SELECT CAST(x AS DECIMAL(10, m)) AS r {FROM}": r"DECIMAL\(10,M\) is not valid",
    f"SELECT x::DECIMAL(a) AS r {FROM}": "is not valid",
    f"SELECT x::DECIMAL({LONG}) AS r {FROM}": "is not valid",
    f"SELECT x::DECIMAL(1.5) AS r {FROM}": "is not valid",
    f"SELECT x::DECIMAL(3, 2, 1) AS r {FROM}": "is not valid",
    f"SELECT {LONG} AS r {FROM}": "more than 38 digits",
    f"SELECT -{LONG} AS r {FROM}": "more than 38 digits",
    f"SELECT 1.{LONG} AS r {FROM}": "more than 38 digits",
    f"SELECT 1e{LONG} AS r {FROM}": "does not fit DOUBLE",
    f"SELECT 1e400 AS r {FROM}": "does not fit DOUBLE",
    f"SELECT k {FROM} LIMIT {LONG}": "LIMIT takes a constant whole number from 0 to 2,147,483,647",
    f"SELECT k {FROM} LIMIT {2**31}": "LIMIT takes a constant whole number from 0 to 2,147,483,647",
    f"SELECT k {FROM} LIMIT 1 OFFSET {2**63}": "OFFSET takes a constant whole number from 0 to 2,147,483,647",
    f"SELECT k {FROM} ORDER BY {LONG} LIMIT 1": "there is no output column 999",
    f"SELECT k {FROM} GROUP BY {LONG}": "there is no output column 999",
    f"SELECT percentile(k, {LONG}) AS r {FROM}": "more than 38 digits",
    f"SELECT k FROM s [ROWS {LONG}]": "does not fit in 64 bits",
    f"SELECT k FROM s [ROWS {2**63}]": "does not fit in 64 bits",
    "SELECT k FROM s [RANGE 1e999999999 SECONDS]": "does not fit in 64 bits",
    "SELECT k FROM s [RANGE 1e-999999999 SECONDS]": "whole number of microseconds",
    f"SELECT k FROM s [RANGE {LONG} SECONDS]": "does not fit in 64 bits",
    f"SELECT k FROM s WINDOW {LONG} HOURS": "does not fit in 64 bits",
    f"SELECT ts + INTERVAL 12345678901234567890123 SECONDS AS r {FROM}": "longer than Spark's longest",
    f"SELECT ts + INTERVAL {LONG} SECONDS AS r {FROM}": "longer than Spark's longest",
    f"SELECT ts + INTERVAL 1e999999999 SECONDS AS r {FROM}": "longer than Spark's longest",
    f"SELECT ts + INTERVAL 999999999 DAYS AS r {FROM}": "longer than Spark's longest",
    f"SELECT ts + INTERVAL 99999999999 MONTHS AS r {FROM}": "longer than Spark's longest",
    f"SELECT ts + INTERVAL 1 YEAR + INTERVAL 2147483640 MONTHS AS r {FROM}": "does not fit DATE",
    f"SELECT ts + (INTERVAL 9 YEARS + INTERVAL 2147483640 MONTHS) AS r {FROM}": "longer than Spark's longest",
    f"SELECT ts + INTERVAL 999999999 MONTHS AS r {FROM}": "does not fit DATE",
    f"SELECT ts + INTERVAL 400000 YEARS AS r {FROM}": "out of range",
    f"SELECT ts + INTERVAL 9999 YEARS AS r {FROM}": "years 1 to 9999",
    f"SELECT DATE '9999-12-31' + INTERVAL 1 DAY AS r {FROM}": "years 1 to 9999",
    f"SELECT TIMESTAMP '0001-01-01 00:00:00+18:00' AS r {FROM}": "years 1 to 9999",
    f"SELECT add_months(to_date(ts), 2147483647) AS r {FROM}": "does not fit DATE",
    f"SELECT year(timestamp_micros(9223372036854775807)) AS r {FROM}": "-32767 to 32767",
    f"SELECT CAST(timestamp_micros(9223372036854775807) AS STRING) AS r {FROM}": "-32767 to 32767",
    f"SELECT date_trunc('week', timestamp_micros(-9223372036854775808)) AS r {FROM}": "overflow",
    f"SELECT CAST(date_add(to_date(ts), 2147400000) AS TIMESTAMP) AS r {FROM}": "out of range",
    f"SELECT CAST('1e{LONG}' AS DECIMAL(38, 0)) AS r {FROM}": "out of range",
    f"SELECT CAST('{LONG}' AS INT) AS r {FROM}": "out of range",
    f"SELECT rpad(x, 2147483647) AS r {FROM}": "more than 268,435,456 bytes",
    f"SELECT lpad(x, 2147483647, 'ab') AS r {FROM}": "more than 268,435,456 bytes",
    f"SELECT repeat(x, 2147483647) AS r {FROM}": "more than 268,435,456 bytes",
    f"SELECT length(repeat(repeat(x, 100000), 100000)) AS r {FROM}": "more than 268,435,456 bytes",
    f"SELECT replace(repeat('a', 100000), 'a', repeat('b', 100000)) AS r {FROM}": "more than 268,435,456 bytes",
    f"SELECT x RLIKE '{'(' * 2_000}' AS r {FROM}": "regular expression",
    f"SELECT - '' {FROM}": "CAST",
}


@pytest.mark.parametrize("sql", REFUSED, ids=lambda sql: sql[:60])
def test_what_has_no_answer_is_an_error_of_sash(sql: str) -> None:
    with pytest.raises(SashError, match=REFUSED[sql]) as raised:
        run(sql)
    assert len(str(raised.value)) < 300
    if hasattr(raised.value, "marked"):
        assert max(map(len, raised.value.marked(sql).splitlines())) < 300


ANSWERED = {
    f"SELECT repeat('', 2147483647) AS r {FROM}": [""],
    f"SELECT rpad(x, 2147483647, '') AS r {FROM}": ["bc"],
    f"SELECT length(rpad(x, 1000000)) AS r {FROM}": [1_000_000],
    f"SELECT substring(x, 2147483647, 2147483647) AS r {FROM}": [""],
    f"SELECT CAST(DATE '1970-01-01' + INTERVAL 3000000 DAYS AS STRING) AS r {FROM}": ["+10183-09-21"],
    f"SELECT CAST(TIMESTAMP '1970-01-01 00:00:02' + INTERVAL 9999 YEARS AS STRING) AS r {FROM}": [
        "+11969-01-01 00:00:02"
    ],
    f"SELECT unix_seconds(timestamp_micros(-9223372036854775808)) AS r {FROM}": [-9223372036855],
    f"SELECT CAST(1.5e0 AS STRING) AS r {FROM}": ["1.5"],
    f"SELECT 00000000000000000000000000000000000000000000000000000000000007 AS r {FROM}": [7],
    f"SELECT k FROM s [ROWS {2**62}]": [1, 3],
    f"SELECT k FROM s [ROWS 2] ORDER BY k LIMIT {2**31 - 1} OFFSET 1": [3],
    "SELECT k FROM s [RANGE 0.0000015e6 SECONDS]": [1, 3],
}


@pytest.mark.parametrize("sql", ANSWERED, ids=lambda sql: sql[:60])
def test_what_has_an_answer_gets_it(sql: str) -> None:
    assert run(sql) == ANSWERED[sql]


def test_the_parser_writes_nothing_to_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        for sql in (f"SELECT x -> '$.a[' AS r {FROM}", f"SELECT b'a' AS r {FROM}", "SHOW TABLES"):
            with pytest.raises(SashError):
                run(sql)
    assert [record.name for record in caplog.records if record.name.startswith("sqlglot")] == []


def test_an_ambiguous_column_without_owners_says_what_to_do() -> None:
    twice = "SELECT y FROM (SELECT k AS y, x AS y FROM s [ROWS 1])"
    with pytest.raises(SashError, match=r"y is ambiguous: give the columns of this name different names with AS"):
        run(twice)
    with pytest.raises(SashError, match=r"y is ambiguous: give the columns of this name different names with AS"):
        run(f"{twice} q")


def test_a_list_of_columns_is_cut() -> None:
    many = ", ".join(f"k AS column_{i}" for i in range(2_000))
    with pytest.raises(SashError, match=r"column_29 and 1,970 more") as raised:
        run(f"SELECT zzz FROM (SELECT {many} {FROM})")
    assert len(str(raised.value)) < 600


@pytest.mark.parametrize(("before", "after"), [(0, 0), (0, 900), (900, 0), (900, 900)])
def test_a_long_line_is_shown_around_the_place(before: int, after: int) -> None:
    columns = [*(f"k AS b{i}" for i in range(before)), "zzz", *(f"k AS a{i}" for i in range(after))]
    sql = f"SELECT {', '.join(columns)} {FROM}"
    with pytest.raises(UnknownNameError) as raised:
        run(sql)
    _, line, mark = raised.value.marked(sql).splitlines()
    assert len(line) < 200
    assert line[mark.index("^") :].startswith("zzz")


@pytest.mark.parametrize(
    "select",
    ["var_pop(d)", "stddev_samp(d)", "avg(d)", "sum(d * d)", "max(TRY_CAST(d AS TIMESTAMP))", "sum(round(d, 400))"],
)
def test_numpy_does_not_warn_of_extreme_doubles(select: str) -> None:
    values = [1e308, -1e308, float("inf"), float("-inf"), float("nan"), 0.0, 1e-320]
    rows = [{"ts": ts, "d": value} for ts, value in enumerate(values)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for size in (1, 2, 7):
            result = replay(
                f"SELECT {select} AS r FROM s [ROWS {size}]", {"s": rows}, schemas={"s": "ts BIGINT, d DOUBLE"}
            )
            assert len(result.at(len(rows))) == 1


def test_a_spread_beyond_doubles_is_infinite() -> None:
    rows = [{"ts": 1, "d": 1e308}, {"ts": 2, "d": -1e308}]
    result = replay("SELECT var_pop(d) AS r FROM s [ROWS 2]", {"s": rows}, schemas={"s": "ts BIGINT, d DOUBLE"})
    assert result.at(2) == [{"r": float("inf")}]

from __future__ import annotations

import pyarrow as pa
import pytest

from sash.plan.catalog import Catalog, StreamEntry
from sash.plan.expressions import Call, Cast, Column, Expression, Literal
from sash.plan.nodes import Project
from sash.plan.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    Field,
    type_name,
)
from sash.sql import parse

COLUMNS = {
    "b": TINYINT,
    "s": SMALLINT,
    "i": INT,
    "l": BIGINT,
    "f": FLOAT,
    "d": DOUBLE,
    "p": pa.decimal128(10, 2),
    "q": pa.decimal128(38, 10),
    "z": pa.decimal128(5, 0),
    "n": STRING,
    "o": BOOLEAN,
    "x": BINARY,
    "dt": DATE,
    "ts": TIMESTAMP,
    "tn": TIMESTAMP_NTZ,
}
CATALOG = Catalog({"t": StreamEntry("t", tuple(Field(name, dtype) for name, dtype in COLUMNS.items()), "ts")})

TYPES = {
    # Arithmetic
    "b + s": "SMALLINT",
    "i + l": "BIGINT",
    "i + f": "DOUBLE",
    "f + f": "FLOAT",
    "l * d": "DOUBLE",
    "i / l": "DOUBLE",
    "3 / 2": "DOUBLE",
    "i % l": "BIGINT",
    "i DIV l": "BIGINT",
    "-b": "TINYINT",
    "n + 1": "BIGINT",
    "n * 1.5": "DOUBLE",
    "i & l": "BIGINT",
    "b | s": "SMALLINT",
    # Decimals
    "p + p": "DECIMAL(11,2)",
    "p * p": "DECIMAL(21,4)",
    "p / p": "DECIMAL(23,13)",
    "p % p": "DECIMAL(10,2)",
    "q + q": "DECIMAL(38,9)",
    "q * q": "DECIMAL(38,6)",
    "q / q": "DECIMAL(38,6)",
    "q * p": "DECIMAL(38,6)",
    "z / z": "DECIMAL(11,6)",
    "p + i": "DECIMAL(13,2)",
    "p * 2": "DECIMAL(12,2)",
    "p + l": "DECIMAL(23,2)",
    "p / 3": "DECIMAL(14,6)",
    "p + d": "DOUBLE",
    "p DIV p": "BIGINT",
    "i * 1.5": "DECIMAL(13,1)",
    # Literals
    "1": "INT",
    "2147483647": "INT",
    "2147483648": "BIGINT",
    "-2147483648": "INT",
    "99999999999999999999": "DECIMAL(20,0)",
    "1.5": "DECIMAL(2,1)",
    "0.01": "DECIMAL(2,2)",
    "1.50": "DECIMAL(3,2)",
    "1e3": "DOUBLE",
    "1.5D": "DOUBLE",
    "1.5BD": "DECIMAL(2,1)",
    "1L": "BIGINT",
    "X'1F'": "BINARY",
    "NULL": "VOID",
    "DATE '2020-01-31'": "DATE",
    "DATE '2020-1-5'": "DATE",
    "CAST('2020-01-31T10:00:00+02:00' AS TIMESTAMP)": "TIMESTAMP",
    "TRY_CAST('2020-02-31' AS DATE)": "DATE",
    # Merging
    "coalesce(i, 1.5)": "DECIMAL(11,1)",
    "coalesce(f, i)": "DOUBLE",
    "coalesce(dt, ts)": "TIMESTAMP",
    "coalesce(i, n)": "BIGINT",
    "greatest(p, l)": "DECIMAL(22,2)",
    "CASE WHEN o THEN 1 ELSE 2.5 END": "DECIMAL(11,1)",
    "IF(o, 1.5, 2)": "DECIMAL(11,1)",
    "nullif(i, l)": "INT",
    "nvl2(i, 1, 2L)": "BIGINT",
    # Functions
    "ceil(p)": "DECIMAL(9,0)",
    "floor(z)": "DECIMAL(5,0)",
    "ceil(i)": "BIGINT",
    "floor(d)": "BIGINT",
    "round(p, 1)": "DECIMAL(10,1)",
    "round(p)": "DECIMAL(9,0)",
    "round(p, -1)": "DECIMAL(9,0)",
    "round(b)": "TINYINT",
    "abs(p)": "DECIMAL(10,2)",
    "sqrt(i)": "DOUBLE",
    "length(n)": "INT",
    "substring(n, 2)": "STRING",
    "n || i": "STRING",
    "year(ts)": "INT",
    "date_add(dt, 1)": "DATE",
    "datediff(ts, dt)": "INT",
    "date_trunc('hour', ts)": "TIMESTAMP",
    "unix_micros(ts)": "BIGINT",
    "timestamp_millis(l)": "TIMESTAMP",
    "md5(n)": "STRING",
    "crc32(x)": "BIGINT",
    "extract(year FROM ts)": "INT",
    # Intervals
    "dt + INTERVAL 1 DAY": "DATE",
    "dt + INTERVAL 24 HOURS": "TIMESTAMP",
    "dt - INTERVAL 1 MONTH": "DATE",
    "ts + INTERVAL 1 MONTH": "TIMESTAMP",
    "tn - INTERVAL 1 HOUR 3 MINUTES": "TIMESTAMP_NTZ",
    "INTERVAL 1 DAY + ts": "TIMESTAMP",
    "dt + 1": "DATE",
    # Aggregates
    "sum(b)": "BIGINT",
    "sum(f)": "DOUBLE",
    "sum(p)": "DECIMAL(20,2)",
    "sum(q)": "DECIMAL(38,10)",
    "avg(i)": "DOUBLE",
    "avg(p)": "DECIMAL(14,6)",
    "avg(q)": "DECIMAL(38,14)",
    "count(n)": "BIGINT",
    "min(n)": "STRING",
    "max(dt)": "DATE",
    "median(p)": "DOUBLE",
    "percentile(i, 0.5)": "DOUBLE",
    "var_samp(p)": "DOUBLE",
    "stddev_pop(i)": "DOUBLE",
    "min_by(n, i)": "STRING",
    "first(ts)": "TIMESTAMP",
}


def bound(expression: str) -> Expression:
    plan = parse(f"SELECT {expression} AS e FROM t", CATALOG)
    assert isinstance(plan, Project)
    return plan.expressions[0]


@pytest.mark.parametrize(("expression", "expected"), TYPES.items())
def test_result_types_are_those_of_spark(expression: str, expected: str) -> None:
    assert type_name(bound(expression).dtype) == expected


def column(name: str) -> Column:
    return Column(list(COLUMNS).index(name), name, COLUMNS[name])


@pytest.mark.parametrize(
    ("expression", "left", "right"),
    [
        ("i = l", Cast(column("i"), BIGINT), column("l")),
        ("l > 3", column("l"), Literal(3, BIGINT)),
        ("n = 1", Cast(column("n"), BIGINT), Literal(1, BIGINT)),
        ("n < d", Cast(column("n"), DOUBLE), column("d")),
        ("dt > n", column("dt"), Cast(column("n"), DATE)),
        ("dt < ts", Cast(column("dt"), TIMESTAMP), column("ts")),
        ("i <=> NULL", column("i"), Literal(None, INT)),
    ],
)
def test_comparisons_cast_both_sides_to_one_type(expression: str, left: Expression, right: Expression) -> None:
    comparison = bound(expression)
    assert isinstance(comparison, Call)
    assert comparison.arguments == (left, right)


@pytest.mark.parametrize(
    ("expression", "same"),
    [
        ("i BETWEEN 1 AND 3", "i >= 1 AND i <= 3"),
        ("i NOT IN (1, 2)", "NOT (i IN (1, 2))"),
        ("i IN (l, 2)", "i = l OR cast(i AS BIGINT) = 2L"),
        ("i IS NOT DISTINCT FROM 1", "i <=> 1"),
        ("o IS TRUE", "o <=> TRUE"),
        ("nvl(i, 1)", "coalesce(i, 1)"),
        ("ifnull(i, 1)", "coalesce(i, 1)"),
        ("isnull(i)", "i IS NULL"),
        ("locate('a', n)", "instr(n, 'a')"),
        ("position('a' IN n)", "instr(n, 'a')"),
        ("substr(n FROM 2 FOR 3)", "substring(n, 2, 3)"),
        ("trim(LEADING 'x' FROM n)", "ltrim('x', n)"),
        ("trim(BOTH FROM n)", "trim(n)"),
        ("n REGEXP 'a'", "n RLIKE 'a'"),
        ("startswith(n, 'a')", "starts_with(n, 'a')"),
        ("n LIKE '10!%' ESCAPE '!'", r"n LIKE '10\\%'"),
        ("i::STRING", "CAST(i AS STRING)"),
        ("CASE i WHEN 1 THEN 2 END", "CASE WHEN i = 1 THEN 2 END"),
        ("to_date(ts)", "CAST(ts AS DATE)"),
    ],
)
def test_different_ways_to_write_one_thing(expression: str, same: str) -> None:
    assert bound(expression) == bound(same)

"""Types and values of expressions, Sash's reading of them beside Spark's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sash.plan.nodes import Project
from sash.plan.types import type_name
from sash.sql import parse
from sash.sql.functions import FUNCTIONS
from sash.sql.render import quoted, to_spark_sql
from sash.sql.signatures.sketches import SIGNATURES as SKETCHES
from tests.sql.spark_expressions import read, topics
from tests.sql.test_types import CATALOG, COLUMNS, TYPES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROW = {
    "b": "CAST(1 AS TINYINT)",
    "s": "CAST(2 AS SMALLINT)",
    "i": "3",
    "l": "-4L",
    "f": "CAST(1.5 AS FLOAT)",
    "d": "2.5D",
    "p": "CAST(1.25 AS DECIMAL(10,2))",
    "q": "CAST(7.125 AS DECIMAL(38,10))",
    "z": "CAST(3 AS DECIMAL(5,0))",
    "n": "'12'",
    "o": "TRUE",
    "x": "X'1F'",
    "dt": "DATE '2020-01-31'",
    "ts": "TIMESTAMP '2020-01-31 10:11:12.5'",
    "tn": "TIMESTAMP_NTZ '2020-01-31 10:11:12'",
}

MORE = [
    *("i = l", "i <> 3", "l < i", "i <= 3", "d > p", "p >= 1", "i <=> NULL", "o AND NULL", "o OR NULL", "NOT o"),
    *("i IS NULL", "n IS NOT NULL", "isnan(d)", "n LIKE '1%'", "n ILIKE '_2'", "n RLIKE '^1'", "i IN (1, 3)"),
    *("i NOT BETWEEN 1 AND 2", "nullif(n, '12')", "least(i, l)", "sign(l)", "exp(b)", "ln(d)", "log10(i)", "log2(i)"),
    *("pow(i, 2)", "pmod(l, 3)", "l % 3", "upper('aé')", "lower(n)", "trim(' a ')", "ltrim(' a')", "rtrim('a ')"),
    *("trim(BOTH '1' FROM n)", "trim(TRAILING '2' FROM n)", "concat(n, i, 'x')", "concat_ws('-', n, NULL, i)"),
    *("replace(n, '1', 'x')", "replace(n, '1')", "left(n, 1)", "right(n, 1)", "lpad(n, 5, 'ab')", "rpad(n, 3)"),
    *("repeat(n, 2)", "reverse(n)", "instr(n, '2')", "startswith(n, '1')", "endswith(n, '1')", "contains(n, '2')"),
    *("split_part('a.b', '.', 2)", "ascii(n)", "initcap('ab cd')", "translate(n, '12', 'ab')", "substring(n, -1, 1)"),
    *("month(ts)", "day(dt)", "hour(ts)", "minute(ts)", "second(ts)", "quarter(dt)", "weekofyear(dt)"),
    *("dayofweek(dt)", "dayofyear(dt)", "date_sub(dt, 31)", "to_date(ts)", "unix_timestamp(ts)", "unix_seconds(ts)"),
    *("unix_millis(ts)", "timestamp_micros(l)", "timestamp_seconds(i)", "last_day(dt)", "add_months(dt, 1)"),
    *("dt - INTERVAL 2 WEEKS", "ts - INTERVAL 1 YEAR", "tn + INTERVAL 1 MONTH", "ts + INTERVAL '0.5' SECONDS"),
    *("i ^ 5", "sha2(n, 256)", "hex(i)", "hex(n)", r"'it\'s a \\ and a tab\t'", "'line\nline'", "1.5e-7", "-0.0D"),
    *("CAST('NaN' AS DOUBLE)", "TRY_CAST('a' AS INT)", "TIMESTAMP '2020-01-01 00:00:00.000001'", "FALSE"),
    *(
        "TIMESTAMP_NTZ '2020-01-01 00:00:00'",
        "CAST(p AS STRING)",
        "CAST(ts AS DATE)",
        "CAST(12345678901L AS DECIMAL(20,3))",
    ),
    *(
        "CASE WHEN i > 5 THEN 'a' WHEN i > 2 THEN 'b' ELSE 'c' END",
        "r'a\\b' || \"c\"",
        r"n LIKE '1\_' OR n LIKE '1!%' ESCAPE '!'",
    ),
    *(
        "array(i, l, NULL)",
        "array()",
        "array(array(1), array())",
        "struct(i, n AS m, 1)",
        "named_struct('a', 1, 'b c', n)",
    ),
    *("map('a', i, 'b', l)", "map_from_arrays(array(1, 2), array('a', NULL))", "map_keys(map(i, n))"),
    *("map_from_entries(array(struct(1, 'a')))", "map_values(map(i, n))", "map_entries(map(i, n))", "get(array(i), 2)"),
    *(
        "map_contains_key(map(i, n), 3)",
        "size(array(1, 2))",
        "cardinality(map(1, 2))",
        "size(CAST(NULL AS ARRAY<INT>))",
    ),
    *("element_at(array(1, 2), -1)", "element_at(map('a', 1), 'b')", "try_element_at(array(1), 5)", "array(i, 5)[1]"),
    *("map(i, n)[3]", "struct(i AS a).a", "array(struct(i AS a), NULL).a", "named_struct('s', struct(i AS a)).s.a"),
    *("array_contains(array(1, NULL), 2)", "array_contains(array(1, NULL), 1)", "array_contains(array(1L), i)"),
    *("array(1, 2) < array(1, NULL)", "array(1) = array(CAST(1 AS BIGINT))", "struct(1, 2) <=> struct(1, NULL)"),
    *(
        "array(1.0D, -0.0D) = array(1.0D, 0.0D)",
        "greatest(array(1), array(2), NULL)",
        "array(i) IN (array(3), array(4))",
    ),
    *("CAST(array(1, NULL) AS STRING)", "CAST(struct(i, n, NULL) AS STRING)", "CAST(map(i, n) AS STRING)"),
    *("CAST(array('1', '2') AS ARRAY<INT>)", "CAST(struct('1' AS a) AS STRUCT<b: INT>)", "coalesce(NULL, array(1))"),
    *("to_csv(struct(i, n, NULL))", "time_bucket(INTERVAL 5 MINUTES, ts)"),
    "aes_encrypt(n, repeat('k', 16), 'GCM', 'DEFAULT', X'000102030405060708090A0B')",
    *(
        "aes_decrypt(aes_encrypt(n, repeat('k', 16), 'ECB'), repeat('k', 16), 'ECB')",
        "try_aes_decrypt(x, repeat('k', 16))",
    ),
    *("if(i > 1, array(i), array(n))", "array(1, 2.5)", "array(i, 1.5, d)", "map('a', 1, 'b', 2.5)", "(i, n).n"),
]

SCALARS = [expression for expression in TYPES if not expression.startswith(("sum", "avg", "count", "m", "per"))]
SCALARS = [e for e in SCALARS if not e.startswith(("var", "std", "first"))] + ["md5(n)"] + MORE


def rendered(expression: str) -> tuple[str, str, str]:
    """The type that Sash gives the expression, its Spark SQL, and the canonical functions in it."""
    plan = parse(f"SELECT {expression} AS e FROM t", CATALOG)
    assert isinstance(plan, Project)
    columns = [quoted(name) for name in COLUMNS]
    bound = plan.expressions[0]
    return type_name(bound.dtype), to_spark_sql(bound, columns), repr(bound)


def test_every_function_is_among_the_samples() -> None:
    everything = " ".join(rendered(expression)[2] for expression in SCALARS)
    pinned = " ".join(one.sql for topic in topics() for one in read(topic))
    missing = {name for name in FUNCTIONS if f"function='{name}'" not in everything and f"{name}(" not in pinned}
    # As a cast, a CASE, operators, a struct, and arithmetic of microseconds.
    rewritten = {"to_date", "nvl2", "bit_not", "between", "named_struct", "time_bucket"}
    assert missing <= rewritten | SKETCHES.keys()


@pytest.mark.spark
def test_expressions_have_spark_types_and_values(spark: SparkSession) -> None:
    spark.sql("SELECT " + ", ".join(f"{value} AS {name}" for name, value in ROW.items())).createOrReplaceTempView("t")
    mine = [rendered(expression) for expression in SCALARS]
    theirs = spark.sql("SELECT " + ", ".join(f"{e} AS e{i}" for i, e in enumerate(SCALARS)) + " FROM t")
    ours = spark.sql("SELECT " + ", ".join(f"{sql} AS e{i}" for i, (_, sql, _) in enumerate(mine)) + " FROM t")
    expected_row, got_row = theirs.collect()[0], ours.collect()[0]
    wrong = []
    for i, expression in enumerate(SCALARS):
        expected = theirs.schema[i].dataType.simpleString().upper(), repr(expected_row[i])
        got = ours.schema[i].dataType.simpleString().upper(), repr(got_row[i])
        if expected != got or mine[i][0].upper().replace(" ", "").replace("`", "") != expected[0].replace(" ", ""):
            wrong.append((expression, mine[i][:2], expected, got))
    assert wrong == []


@pytest.mark.spark
def test_aggregates_have_spark_types(spark: SparkSession) -> None:
    spark.sql("SELECT " + ", ".join(f"{value} AS {name}" for name, value in ROW.items())).createOrReplaceTempView("t")
    aggregates = [expression for expression in TYPES if expression not in SCALARS]
    theirs = spark.sql("SELECT " + ", ".join(f"{e} AS e{i}" for i, e in enumerate(aggregates)) + " FROM t").schema
    assert {e: f.dataType.simpleString().upper() for e, f in zip(aggregates, theirs, strict=True)} == {
        e: TYPES[e] for e in aggregates
    }

"""A table that Spark merges into: answers and changes, repeated batches, restarts, and tables that do not fit."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from sash.errors import CatalogError, OptionError
from sash.plan.types import BIGINT, NULL, STRING, TIMESTAMP, Field, Schema
from sash.script.reader import read_script
from sash.spark.sinks import SINKS, Batch
from sash.spark.sinks.base import OutputSpec
from sash.spark.sinks.batch import WriteBatch, typed_schema
from sash.spark.sql_types import frame_of, spark_struct
from sash.testing import replay
from tests.catalog import KIND, NAME, OTHER, need_catalog
from tests.spark.files import file_engine, made_up_rows, write_batch
from tests.spark.sinks.test_lakehouse import PAIRS, Rows, answer, keyed_changes

SCHEMA: Schema = (Field("k", STRING), Field("n", BIGINT))


@pytest.fixture
def table(spark: SparkSession) -> Iterator[str]:
    need_catalog()
    for catalog in (NAME, OTHER):
        spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {catalog}.db")
    name = f"{NAME}.db.t_{uuid.uuid4().hex[:8]}"
    yield name
    spark.sql(f"DROP TABLE IF EXISTS {name}")


def output(
    mode: Any = "upsert", schema: Schema = SCHEMA, identity: str = "one", time: pa.DataType = BIGINT
) -> OutputSpec:
    return OutputSpec(schema, time, mode, tuple(range(len(schema) - 1)) if mode == "upsert" else None, identity)


def opened(table: str, to: OutputSpec, **options: Any) -> WriteBatch:
    made = SINKS["table"]({"table": table, **options})
    made.check(to)
    return made.open(to)


def batch(spark: SparkSession, rows: Rows, to: OutputSpec, *, small: bool = True) -> Batch:
    """Changes: on the driver, or as a DataFrame."""
    fields = typed_schema(to.schema, to.time)
    arrays = [pa.array(column, f.dtype) for column, f in zip(zip(*rows, strict=True), fields, strict=True)]
    found = pa.table(arrays, names=[f.name for f in fields])
    if small:
        return Batch.of_table(found, to.schema, to.time, spark)
    return Batch(len(rows), False, lambda: found, lambda: frame_of(spark, found, spark_struct(fields)), spark)


def contents(spark: SparkSession, table: str) -> Counter[tuple[Any, ...]]:
    spark.sql(f"REFRESH TABLE {table}")  # a job has a session of its own, and Iceberg keeps what each has read
    return Counter(tuple(row) for row in spark.table(table).collect())


@pytest.mark.spark
def test_answers_are_merged_by_key(spark: SparkSession, table: str) -> None:
    # Delta has no names with a space, unless a table is made for them.
    schema = tuple(Field(field.name.replace(" ", "_"), field.dtype) for field in PAIRS) if KIND == "delta" else PAIRS
    batches, to = keyed_changes(4, seed=3), output(schema=schema)
    write = opened(table, to)
    for number, rows in enumerate(batches):
        write(batch(spark, rows, to, small=number != 1), number)
        if number == 2:  # the process was killed, and the batch is repeated
            write = opened(table, to)
            write(batch(spark, rows, to), number)
        assert contents(spark, table) == answer(batches[: number + 1])
    total = output(schema=(Field("n", BIGINT),))
    one_row = f"{table}_total"
    try:
        write = opened(one_row, total)
        write(batch(spark, [("+", 1, 5)], total), 0)
        write(batch(spark, [("-", 2, 5), ("+", 2, 7)], total), 1)
        assert contents(spark, one_row) == Counter([(7,)])
    finally:
        spark.sql(f"DROP TABLE IF EXISTS {one_row}")


@pytest.mark.spark
def test_changes_are_appended_once_in_the_columns_of_the_change_feed(spark: SparkSession, table: str) -> None:
    to = output("changes")
    write = opened(table, to)
    first: Rows = [("+", 1, "a", 1), ("+", 1, "a", 1), ("+", 1, None, 2)]
    write(batch(spark, first, to), 0)
    second: Rows = [("-", 2, "a", 1), ("+", 2, "a", 3)]
    write(batch(spark, second, to, small=False), 1)
    once = contents(spark, table)
    write(batch(spark, second, to), 1)
    again = opened(table, output("changes"))
    again(batch(spark, second, to), 1)
    assert contents(spark, table) == once
    found = spark.table(table).selectExpr("k", "n", "_change_type", "_commit_version", "unix_micros(_commit_timestamp)")
    assert Counter(tuple(row) for row in found.collect()) == Counter(
        {
            ("a", 1, "insert", 0, 1): 2,
            (None, 2, "insert", 0, 1): 1,
            ("a", 1, "delete", 1, 2): 1,
            ("a", 3, "insert", 1, 2): 1,
        }
    )
    again(batch(spark, [("+", 3, "z", 9)], to), 2)
    assert sum(contents(spark, table).values()) == 6


@pytest.mark.spark
def test_tables_that_do_not_fit_are_refused(spark: SparkSession, table: str, tmp_path: Path) -> None:
    to = output()
    with pytest.raises(CatalogError, match=r"there is no table .*create it"):
        opened(table, to, create=False)
    write = opened(table, to)
    write(batch(spark, [("+", 1, "a", 1)], to), 0)
    with pytest.raises(CatalogError, match="rows that this query has not written"):
        opened(table, output(identity="two"))
    assert contents(spark, table) == Counter([("a", 1)])
    opened(table, output(identity="two"), replace=True)
    assert contents(spark, table) == Counter()
    wider = output(schema=(*SCHEMA, Field("m", TIMESTAMP)), identity="two")
    with pytest.raises(CatalogError, match="has no column m: add it"):
        opened(table, wider)
    opened(table, wider, evolve=True)
    assert spark.table(table).columns == ["k", "n", "m"]
    with pytest.raises(CatalogError, match=r"(?i)cast"):
        opened(table, output(schema=(Field("k", STRING), Field("n", pa.list_(BIGINT))), identity="two"))
    plain = f"spark_catalog.default.plain_{table[-8:]}"
    with pytest.raises(CatalogError, match="MERGE"):
        opened(plain, to, using="parquet")
    spark.sql(f"DROP TABLE {plain}")


@pytest.mark.spark
def test_a_job_writes_an_answer_and_its_changes_over_restarts(spark: SparkSession, table: str, tmp_path: Path) -> None:
    rows = made_up_rows(5)
    sql = "SELECT k, COUNT(*) AS c FROM s [RANGE 15 MILLISECONDS] GROUP BY k"
    parts = [rows[: len(rows) // 2], rows[len(rows) // 2 :]]
    feed = f"{OTHER}.db.feed_{table[-8:]}"
    try:
        for number, part in enumerate(parts):
            write_batch(tmp_path / "in", number, part)
            engine = file_engine(spark, tmp_path / "in")
            job = engine.job(trigger="available_now", checkpoint=str(tmp_path / "c"))
            job.add("answer", sql, "table", table=table)
            job.add("feed", sql, "table", mode="changes", table=feed)
            job.start().await_termination()
        kept: Counter[tuple[Any, ...]] = Counter()
        for (k, c, kind, *_), count in contents(spark, feed).items():
            kept[k, c] += count if kind == "insert" else -count
        assert +kept == contents(spark, table)
        assert not -kept
        last = max(row["ts"] for row in rows) - 1
        expected = replay(sql, {"s": rows}, unit="us", until=last).at(last)
        assert contents(spark, table) == Counter(tuple(row.values()) for row in expected)
        assert len(expected) > 3
    finally:
        spark.sql(f"DROP TABLE IF EXISTS {feed}")


def test_the_statement_names_the_table() -> None:
    text = "CREATE QUERY q AS SELECT k FROM s [NOW] INTO TABLE `lake`.Db.t (evolve true) MODE changes"
    (made,) = read_script(text)
    assert (made.sink, made.options, made.mode) == ("table", {"table": "lake.Db.t", "evolve": True}, "changes")  # type: ignore[union-attr]
    (short,) = read_script("CREATE QUERY q AS SELECT k FROM s [NOW] INTO table (table 'a.b')")
    assert (short.sink, short.options) == ("table", {"table": "a.b"})  # type: ignore[union-attr]


def test_what_no_table_can_hold_is_refused() -> None:
    with pytest.raises(CatalogError, match="adds a column _commit_version"):
        SINKS["table"]({"table": "t"}).check(output("changes", (Field("_commit_version", BIGINT),)))
    with pytest.raises(CatalogError, match="cannot store column x"):
        SINKS["table"]({"table": "t"}).check(output("changes", (Field("x", NULL),)))
    with pytest.raises(OptionError, match="the name of a format"):
        SINKS["table"]({"table": "t", "using": "x; DROP"})

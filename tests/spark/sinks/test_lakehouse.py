from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from sash.errors import CatalogError, OptionError
from sash.plan.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    Field,
    Schema,
)
from sash.spark.sinks import SINKS, Batch
from tests.spark.sinks.tables import KINDS, SCHEMA, batch, files, iceberg, options, read, sink

each = pytest.mark.parametrize("kind", KINDS)
Rows = list[tuple[Any, ...]]


def keyed_changes(batches: int, seed: int = 0) -> list[Rows]:
    """Changes of a keyed answer, in which NULL is a key; some batches change a key twice, at one instant or at two."""
    rnd = random.Random(seed)
    state: dict[tuple[str | None, int], int] = {}
    found = []
    for number in range(batches):
        rows: Rows = []
        for instant in (2 * number, 2 * number + 1):
            for key in rnd.sample([(k, i) for k in ("a", "b", None) for i in range(2)], 2):
                if key in state:
                    rows.append(("-", instant, *key, state.pop(key)))
                if rnd.random() < 0.7:
                    state[key] = rnd.randint(0, 99)
                    rows.append(("+", instant, *key, state[key]))
        rnd.shuffle(rows)
        found.append(rows)
    return found


PAIRS: Schema = (Field("k", STRING), Field("Select no", BIGINT), Field("n", BIGINT))


def answer(batches: list[Rows]) -> Counter[tuple[Any, ...]]:
    counts: Counter[tuple[Any, ...]] = Counter()
    for op, _, *row in (row for rows in batches for row in rows):
        counts[tuple(row)] += 1 if op == "+" else -1
    return +counts


def rows_of(table: pa.Table) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for row in table.to_pylist())


@each
def test_oracle_an_upsert_table_is_the_answer_after_every_batch(kind: str, tmp_path: Path) -> None:
    batches = keyed_changes(14)
    for number, rows in enumerate(batches):
        if number % 7 == 0:  # a new process
            write = sink(kind, tmp_path, schema=PAIRS, key=(0, 1), compact=5)
        write(batch(rows, PAIRS), number)
        write(batch(rows, PAIRS), number)
        assert rows_of(read(kind, tmp_path)) == answer(batches[: number + 1])
    assert files(kind, tmp_path) < 8


@each
def test_an_answer_of_one_row_has_no_key(kind: str, tmp_path: Path) -> None:
    write = sink(kind, tmp_path, key=())
    write(batch([("+", 0, "a", 1)]), 0)
    write(batch([("-", 1, "a", 1), ("+", 1, "b", 2)]), 1)
    assert rows_of(read(kind, tmp_path)) == Counter([("b", 2)])


@each
def test_changes_are_appended_once(kind: str, tmp_path: Path) -> None:
    first, second = [("+", 5, "a", 1)], [("-", 6, "a", 1), ("+", 6, "a", 2)]
    write = sink(kind, tmp_path, "changes", compact=2)
    write(batch(first), 0)
    write(batch([]), 1)
    write(batch(second), 2)
    write(batch(second), 2)
    assert rows_of(read(kind, tmp_path)) == Counter([*first, *second])
    assert files(kind, tmp_path) == 1


@each
def test_a_feed_has_the_columns_of_sparks_change_feed(kind: str, tmp_path: Path) -> None:
    write = sink(kind, tmp_path, "net", time=TIMESTAMP, feed=True)
    write(batch([("+", 5, "a", 1)], time=TIMESTAMP), 3)
    write(batch([("-", 10**6, "a", 1)], time=TIMESTAMP), 4)
    found = read(kind, tmp_path)
    assert found.column_names == ["k", "n", "_change_type", "_commit_version", "_commit_timestamp"]
    assert pa.types.is_timestamp(found.schema.field("_commit_timestamp").type)
    rows = sorted(found.set_column(4, "t", found["_commit_timestamp"].cast(pa.int64())).to_pylist(), key=str)
    assert [tuple(row.values()) for row in rows] == [("a", 1, "delete", 4, 10**6), ("a", 1, "insert", 3, 5)]
    with pytest.raises(OptionError, match="change feed in mode changes or net"):
        sink(kind, tmp_path, feed=True)


@pytest.mark.parametrize(
    ("kind", "mode", "when"),
    [("iceberg", "upsert", "before"), ("iceberg", "changes", "after"), ("delta", "upsert", "before")],
)
def test_a_kill_at_a_commit_loses_nothing_and_repeats_nothing(kind: str, mode: str, when: str, tmp_path: Path) -> None:
    first, second = [("+", 0, "a", 1), ("+", 0, "b", 1)], [("-", 1, "a", 1), ("+", 1, "a", 2)]
    write = sink(kind, tmp_path, mode)
    write(batch(first), 0)
    command = [sys.executable, "-m", "tests.spark.sinks.killed", kind, mode, when, str(tmp_path)]
    killed = subprocess.run(command, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert len(list(tmp_path.rglob("*.parquet"))) == 2  # the files of batch 1 have been written
    there = rows_of(read(kind, tmp_path))
    with_second = answer([first, second]) if mode == "upsert" else Counter([*first, *second])
    without = answer([first]) if mode == "upsert" else Counter(first)
    assert there == (without if when == "before" else with_second)
    sink(kind, tmp_path, mode)(batch(second), 1)
    assert rows_of(read(kind, tmp_path)) == with_second


@each
def test_a_table_that_does_not_fit_is_refused_and_evolved_on_request(kind: str, tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match="there is no table"):
        sink(kind, tmp_path, create=False)
    sink(kind, tmp_path)(batch([("+", 0, "a", 1)]), 0)
    wider = (*SCHEMA, Field("total", DOUBLE))
    with pytest.raises(CatalogError, match="has no column total"):
        sink(kind, tmp_path, schema=wider)
    with pytest.raises(CatalogError, match=r"column n of table .* is int64, but the query's is string"):
        sink(kind, tmp_path, schema=(SCHEMA[0], Field("n", STRING)))
    with pytest.raises(CatalogError, match="rows that this query has not written"):
        sink(kind, tmp_path, identity="two")
    sink(kind, tmp_path, schema=wider, evolve=True)(batch([("+", 1, "b", 2, 0.5)], wider), 1)
    assert rows_of(read(kind, tmp_path)) == Counter([("a", 1, None), ("b", 2, 0.5)])
    write = sink(kind, tmp_path, identity="two", replace=True)
    assert rows_of(read(kind, tmp_path)) == Counter()
    write(batch([("+", 1, "c", 3)]), 0)
    sink(kind, tmp_path, identity="two")(batch([("+", 2, "d", 4)]), 1)
    assert rows_of(read(kind, tmp_path)) == Counter([("c", 3, None), ("d", 4, None)])


@each
def test_every_type_and_null(kind: str, tmp_path: Path) -> None:
    schema = (
        Field("tiny", TINYINT),
        Field("price", pa.decimal128(12, 2)),
        Field("at", TIMESTAMP),
        Field("local", TIMESTAMP_NTZ),
        Field("day", DATE),
        Field("blob", BINARY),
        Field("x", DOUBLE),
        Field("yes", BOOLEAN),
        Field("tags", pa.list_(pa.string())),
        Field("point", pa.struct([("x", pa.int64()), ("y", pa.string())])),
    )
    row = (1, Decimal("1.25"), 10**15, 10**15, 3, b"\x00a", 0.5, True, ["a", None], {"x": 1, "y": "b"})
    rows = [("+", 1, *row), ("+", 1, *[None] * len(schema))]
    write = sink(kind, tmp_path, schema=schema, time=TIMESTAMP)
    write(batch(rows, schema, TIMESTAMP), 0)
    write(batch(rows, schema, TIMESTAMP), 1)
    found = read(kind, tmp_path)
    assert found.num_rows == 2
    wanted = batch(rows, schema, TIMESTAMP).table.drop_columns(["_op", "_ts"]).to_pylist()
    assert sorted(found.to_pylist(), key=str) == sorted(wanted, key=str)
    with pytest.raises(CatalogError, match="cannot store column nothing"):
        sink(kind, tmp_path, schema=(Field("nothing", pa.null()),))


def test_a_snapshot_of_iceberg_says_which_batch_it_is(tmp_path: Path) -> None:
    write = sink("iceberg", tmp_path)
    write(batch([("+", 0, "a", 1)]), 7)
    found = iceberg(tmp_path).current_snapshot().summary
    assert (found["sash-query"], found["sash-batch"]) == ("one", "7")


def test_options_are_checked(tmp_path: Path) -> None:
    for kind in KINDS:
        with pytest.raises(OptionError, match="has no option uris"):
            SINKS[kind]({**options(kind, tmp_path), "uris": "x"})
        with pytest.raises(OptionError, match="compact must be a number"):
            SINKS[kind]({**options(kind, tmp_path), "compact": "daily"})


@each
@pytest.mark.spark
def test_a_large_batch_is_written_from_spark(kind: str, tmp_path: Path, spark: SparkSession) -> None:
    rows = [("+", 1, "a", 1), ("+", 1, "b", 1), ("-", 2, "b", 1), ("+", 2, "b", 2), ("-", 1, "c", 1), ("+", 3, None, 3)]
    frame = spark.createDataFrame(rows, "_op string, _ts long, k string, n long").repartition(3)

    def collected() -> pa.Table:
        raise AssertionError("a large batch is not collected")

    large = Batch(len(rows), False, collected, lambda: frame, spark)
    for folder in ("upsert", "changes"):
        (tmp_path / folder).mkdir()
        sink(kind, tmp_path / folder, folder)(large, 0)
    assert rows_of(read(kind, tmp_path / "upsert")) == Counter([("a", 1), ("b", 2), (None, 3)])
    assert rows_of(read(kind, tmp_path / "changes")) == Counter(rows)

"""Change events of databases become updates of a relation, in the order in which they must be applied."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sash.rows import parse_schema
from sash.spark.sources.change_events import read_change_events

pytestmark = pytest.mark.spark

COLUMNS = parse_schema("ts TIMESTAMP, id INT, name STRING, seen BIGINT")
OLD, NEW = {"id": 1, "name": "a"}, {"id": 1, "name": "b", "added": "later"}


def event(op: str, before: Any, after: Any, ms: int) -> dict[str, Any]:
    return {"before": before, "after": after, "op": op, "ts_ms": ms + 999, "source": {"ts_ms": ms, "table": "t"}}


def updates(spark: SparkSession, encoding: str, values: list[str | None]) -> list[tuple[Any, ...]]:
    frame = spark.createDataFrame([(value,) for value in values], "value string").coalesce(1)
    found = read_change_events(frame.where("value IS NOT NULL"), encoding, COLUMNS, "ts", ["id"])
    assert found.columns == ["ts", "id", "name", "seen", "_op"]
    rows = found.selectExpr("unix_millis(ts)", "id", "name", "_op").collect()
    return [tuple(row) for row in rows]


def test_debezium(spark: SparkSession) -> None:
    enveloped = {"schema": {"type": "struct"}, "payload": event("u", OLD, NEW, 4_000)}
    values: list[str | None] = [
        json.dumps(event("r", None, OLD, 1_000)),
        json.dumps(event("c", None, {"id": 2, "name": "c"}, 2_000)),
        json.dumps(event("u", None, {"id": 2, "name": "d"}, 3_000)),
        json.dumps(enveloped),
        json.dumps(event("u", NEW, {"id": 3, "name": "moved"}, 5_000)),
        json.dumps(event("d", {"id": 2, "name": None}, None, 6_000)),
        None,
        json.dumps(event("t", None, None, 7_000)),
        "no event",
    ]
    assert updates(spark, "debezium-json", values) == [
        (1_000, 1, "a", "+"),
        (2_000, 2, "c", "+"),
        (3_000, 2, "d", "+"),
        (4_000, 1, "b", "+"),
        (5_000, 1, "b", "-"),
        (5_000, 3, "moved", "+"),
        (6_000, 2, None, "-"),
        (None, None, None, "+"),
    ], "an update that moves a key is two, a tombstone none, and what is no event has no time"


def test_maxwell(spark: SparkSession) -> None:
    def of(kind: str, ts: int, data: Any, old: Any = None) -> str:
        return json.dumps({"database": "d", "table": "t", "type": kind, "ts": ts, "data": data, "old": old})

    values: list[str | None] = [
        of("bootstrap-start", 1, {}),
        of("bootstrap-insert", 1, OLD),
        of("insert", 2, {"id": 2, "name": "c"}),
        of("update", 3, {"id": 2, "name": "d"}, {"name": "c"}),
        of("update", 4, {"id": 9, "name": "d"}, {"id": 2}),
        of("delete", 5, {"id": 9, "name": "d"}),
    ]
    assert updates(spark, "maxwell-json", values) == [
        (1_000, 1, "a", "+"),
        (2_000, 2, "c", "+"),
        (3_000, 2, "d", "+"),
        (4_000, 2, "d", "-"),
        (4_000, 9, "d", "+"),
        (5_000, 9, "d", "-"),
    ]


def test_canal(spark: SparkSession) -> None:
    def of(kind: str, es: int, data: Any, old: Any = None) -> str:
        return json.dumps(
            {"database": "d", "table": "t", "type": kind, "es": es, "ts": es + 9, "data": data, "old": old}
        )

    rows = [{"id": "1", "name": "a", "seen": "5"}, {"id": "2", "name": None, "other": "x"}]
    values: list[str | None] = [
        of("INSERT", 1_000, rows),
        of("UPDATE", 2_000, [{"id": "1", "name": "b"}, {"id": "3", "name": "c"}], [{"name": "a"}, {"id": "2"}]),
        of("CREATE", 3_000, None),
        of("DELETE", 4_000, [{"id": "3", "name": "c"}]),
        of("INSERT", 5_000, [{"id": "no number", "name": "d"}]),
        "no event",
    ]
    assert updates(spark, "canal-json", values) == [
        (1_000, 1, "a", "+"),
        (1_000, 2, None, "+"),
        (2_000, 1, "b", "+"),
        (2_000, 2, "c", "-"),
        (2_000, 3, "c", "+"),
        (4_000, 3, "c", "-"),
        (5_000, None, "d", "+"),
        (None, None, None, "+"),
    ]

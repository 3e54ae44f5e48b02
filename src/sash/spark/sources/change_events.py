"""Change events of databases, as Debezium and Maxwell write them, as updates of a relation.

An insertion, a row of a snapshot and an update add the row as it is afterwards, which replaces the one of its key; a deletion
removes the row of its key. An update that changes the key removes the row of the old one first. Tombstones, and events of other
kinds, make no update. Columns that an event has beside the declared ones are ignored, and those that it lacks are NULL.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import LongType, StringType, StructType

from sash.plan.catalog import OP
from sash.plan.types import BIGINT, Schema
from sash.spark.sql_types import spark_struct, spark_type
from sash.sql.render import quoted

_MOMENT, _EVENT, _CHANGES = "_moment", "_event", "_changes"


def read_change_events(frame: DataFrame, encoding: str, columns: Schema, time: str, key: Sequence[str]) -> DataFrame:
    """The updates in the values of a source: the declared columns, of which `time` is that of the change, and `_op`."""
    payload = tuple(field for field in columns if field.name not in (time, OP))
    own = spark_struct(payload)
    parse = _debezium if encoding == "debezium-json" else _maxwell
    # A value that is no event has no time, which makes it a bad row; a tombstone has no value.
    events = frame.where("value IS NOT NULL").select(parse(own, [field.name for field in payload], key).alias(_EVENT))
    made = events.selectExpr(f"{_EVENT}.micros AS {_MOMENT}", f"explode({_EVENT}.changes) AS {_CHANGES}")
    field = next(field for field in columns if field.name == time)
    moment = _MOMENT if field.dtype == BIGINT else f"timestamp_micros({_MOMENT})"
    named = [f"{_CHANGES}.row.{quoted(one.name)} AS {quoted(one.name)}" for one in payload]
    typed = f"CAST({moment} AS {spark_type(field.dtype).simpleString()}) AS {quoted(time)}"
    return made.selectExpr(typed, *named, f"{_CHANGES}.op AS {OP}")


def _debezium(own: StructType, names: Sequence[str], key: Sequence[str]) -> Column:
    """An event of Debezium's, with or without the envelope of `schema` and `payload`."""
    source = StructType().add("ts_ms", LongType())
    event = StructType().add("op", StringType()).add("ts_ms", LongType()).add("source", source)
    event = event.add("before", own).add("after", own)
    both = _parsed(event.add("payload", StructType(list(event.fields))))
    found = f"if({both}.payload.op IS NULL, struct({_of(both)}), struct({_of(both + '.payload')}))"
    micros = "coalesce(e.source.ts_ms, e.ts_ms) * 1000"
    return _changes(found, micros, "e.op IN ('r', 'c', 'u')", "e.op = 'u'", "e.op = 'd'", "e.op", key)


def _of(event: str) -> str:
    return ", ".join(f"{event}.{name} AS {name}" for name in ("op", "ts_ms", "source", "before", "after"))


def _maxwell(own: StructType, names: Sequence[str], key: Sequence[str]) -> Column:
    """An event of Maxwell's, whose `old` has only the columns that were changed."""
    event = StructType().add("type", StringType()).add("ts", LongType()).add("data", own).add("old", own)
    both = _parsed(event)
    old = ", ".join(f"'{name}', coalesce({both}.old.{quoted(name)}, {both}.data.{quoted(name)})" for name in names)
    is_deleted = f"{both}.type = 'delete'"
    before = f"if({is_deleted}, {both}.data, named_struct({old}))"
    found = f"struct({both}.type AS op, {both}.ts AS ts, {before} AS before, {both}.data AS after)"
    added = "e.op IN ('insert', 'bootstrap-insert', 'update')"
    return _changes(found, "e.ts * 1000000", added, "e.op = 'update'", "e.op = 'delete'", "e.op", key)


def _parsed(schema: StructType) -> str:
    text = schema.simpleString().replace("'", "\\'")
    return f"from_json(CAST(value AS STRING), '{text}')"


def _changes(found: str, micros: str, adds: str, updates: str, deletes: str, kind: str, key: Sequence[str]) -> Column:
    """The time of an event, and its updates in order. What is not an event makes one without a time."""
    equal = " AND ".join(f"e.before.{quoted(name)} <=> e.after.{quoted(name)}" for name in key) or "false"
    moved = f"{updates} AND e.before IS NOT NULL AND NOT ({equal})"
    listed = (
        f"filter(array(if({deletes} OR ({moved}), struct('-' AS op, e.before AS row), NULL), "
        f"if({adds}, struct('+' AS op, e.after AS row), NULL), "
        f"if({kind} IS NULL, struct('+' AS op, e.after AS row), NULL)), c -> c IS NOT NULL)"
    )
    moment = f"if({kind} IS NULL, NULL, {micros})"
    return sf.expr(f"transform(array({found}), e -> struct({moment} AS micros, {listed} AS changes))[0]")

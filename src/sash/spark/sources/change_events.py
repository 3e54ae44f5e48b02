"""Change events of databases, as Debezium, Maxwell and Canal write them, as updates of a relation.

An insertion, a row of a snapshot and an update add the row as it is afterwards, which replaces the one of its key; a deletion
removes the row of its key. An update that changes the key removes the row of the old one first. Tombstones, and events of other
kinds, make no update. Columns that an event has beside the declared ones are ignored, and those that it lacks are NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, LongType, MapType, StringType, StructType

from sash.plan.catalog import OP
from sash.plan.types import BIGINT, STRING, Field, Schema, struct_of
from sash.spark.sql_types import spark_struct, spark_type
from sash.sql.render import quoted

_MOMENT, _EVENT, _CHANGES = "_moment", "_event", "_changes"


@dataclass(frozen=True)
class _Format:
    """How events look in Spark SQL: `parsed` is an array with the events of a value, of which `e` is one.

    An event has `op`, NULL if the value is no event, and `before` and `after`, rows of the relation. `micros` is its time, and
    the others say what it does.
    """

    parsed: Callable[[Schema], str]
    micros: str
    adds: str
    updates: str
    deletes: str


def event_columns(payload: Schema) -> Schema:
    """The columns of an event of Debezium's for a table with these columns."""
    row = struct_of([(field.name, field.dtype) for field in payload])
    source = struct_of([("ts_ms", BIGINT)])
    types = {"op": STRING, "ts_ms": BIGINT, "source": source, "before": row, "after": row}
    return tuple(Field(name, dtype) for name, dtype in types.items())


def table_columns(columns: Schema, time: str) -> Schema:
    """The columns of an updated relation that its table has too."""
    return tuple(field for field in columns if field.name not in (time, OP))


def read_change_events(frame: DataFrame, encoding: str, columns: Schema, time: str, key: Sequence[str]) -> DataFrame:
    """The updates in the values of a source, none of which is NULL: the declared columns, of which `time` is that of the change, and `_op`.

    Values in Avro have been decoded to `event_columns`.
    """
    payload, form = table_columns(columns, time), _FORMATS[encoding]
    # A value that is no event has no time, which makes it a bad row.
    events = frame.selectExpr(f"explode({form.parsed(payload)}) AS e")
    made = events.selectExpr(
        f"if(e.op IS NULL, NULL, {form.micros}) AS {_MOMENT}", f"explode({_changes(form, key)}) AS {_CHANGES}"
    )
    field = next(field for field in columns if field.name == time)
    moment = _MOMENT if field.dtype == BIGINT else f"timestamp_micros({_MOMENT})"
    named = [f"{_CHANGES}.row.{quoted(one.name)} AS {quoted(one.name)}" for one in payload]
    typed = f"CAST({moment} AS {spark_type(field.dtype).simpleString()}) AS {quoted(time)}"
    return made.selectExpr(typed, *named, f"{_CHANGES}.op AS {OP}")


def _changes(form: _Format, key: Sequence[str]) -> str:
    """The updates of an event in order. What is not an event makes one without a time."""
    equal = " AND ".join(f"e.before.{quoted(name)} <=> e.after.{quoted(name)}" for name in key) or "false"
    moved = f"{form.updates} AND e.before IS NOT NULL AND NOT ({equal})"
    return (
        f"filter(array(if({form.deletes} OR ({moved}), struct('-' AS op, e.before AS row), NULL), "
        f"if({form.adds}, struct('+' AS op, e.after AS row), NULL), "
        f"if(e.op IS NULL, struct('+' AS op, e.after AS row), NULL)), c -> c IS NOT NULL)"
    )


def _debezium(payload: Schema) -> str:
    """An event of Debezium's, with or without the envelope of `schema` and `payload`."""
    event = spark_struct(event_columns(payload))
    both = _from_json(StructType([*event.fields]).add("payload", event))
    return f"array(if({both}.payload.op IS NULL, struct({_of(both + '.')}), struct({_of(both + '.payload.')})))"


def _decoded_debezium(_: Schema) -> str:
    return f"array(struct({_of('')}))"


def _of(event: str) -> str:
    return ", ".join(f"{event}{field.name} AS {field.name}" for field in event_columns(()))


def _maxwell(payload: Schema) -> str:
    """An event of Maxwell's, whose `old` has only the columns that were changed."""
    own = spark_struct(payload)
    event = StructType().add("type", StringType()).add("ts", LongType()).add("data", own).add("old", own)
    both, names = _from_json(event), [field.name for field in payload]
    old = ", ".join(f"'{name}', coalesce({both}.old.{quoted(name)}, {both}.data.{quoted(name)})" for name in names)
    before = f"if({both}.type = 'delete', {both}.data, named_struct({old}))"
    return f"array(struct({both}.type AS op, {both}.ts AS ts, {before} AS before, {both}.data AS after))"


def _canal(payload: Schema) -> str:
    """An event of Canal's: of several rows, whose values are texts; `old` has only the columns that were changed."""
    rows = ArrayType(MapType(StringType(), StringType()))
    event = _from_json(StructType().add("type", StringType()).add("es", LongType()).add("data", rows).add("old", rows))

    def typed(value: Callable[[str], str]) -> str:
        made = (
            f"'{field.name}', try_cast({value(field.name)} AS {spark_type(field.dtype).simpleString()})"
            for field in payload
        )
        return f"named_struct({', '.join(made)})"

    old = typed(lambda name: f"if(map_contains_key({event}.old[i], '{name}'), {event}.old[i]['{name}'], d['{name}'])")
    new = typed(lambda name: f"d['{name}']")
    before = f"if({event}.type = 'UPDATE', {old}, {new})"
    one = f"struct({event}.type AS op, {event}.es AS es, {before} AS before, {new} AS after)"
    return f"transform(coalesce({event}.data, array(NULL)), (d, i) -> {one})"


def _from_json(schema: StructType) -> str:
    text = schema.simpleString().replace("'", "\\'")
    return f"from_json(CAST(value AS STRING), '{text}')"


_OF_DEBEZIUM = ("coalesce(e.source.ts_ms, e.ts_ms) * 1000", "e.op IN ('r', 'c', 'u')", "e.op = 'u'", "e.op = 'd'")
_FORMATS = {
    "debezium-json": _Format(_debezium, *_OF_DEBEZIUM),
    "debezium-avro": _Format(_decoded_debezium, *_OF_DEBEZIUM),
    "maxwell-json": _Format(
        _maxwell,
        "e.ts * 1000000",
        "e.op IN ('insert', 'bootstrap-insert', 'update')",
        "e.op = 'update'",
        "e.op = 'delete'",
    ),
    "canal-json": _Format(_canal, "e.es * 1000", "e.op IN ('INSERT', 'UPDATE')", "e.op = 'UPDATE'", "e.op = 'DELETE'"),
}

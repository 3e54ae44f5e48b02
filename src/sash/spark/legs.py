"""Legs in Spark's own engine: the filters, projections and static joins straight above a stream, as a DataFrame.

A row that fails a filter, or finds no match, is not dropped: the clock is of the stream before its filters, so it goes
on as a carrier of its time, `_ok` false and its columns NULL. What might fail is not evaluated for such rows.

A relation that a leg joins with is read once, when the query starts: what becomes of its files or its table later has no
part in the answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.functions import broadcast, expr

from sash.plan.expression_safety import may_fail
from sash.plan.expressions import Column, Expression
from sash.plan.nodes import Filter, Join, Node, Project, Relation, Stream
from sash.plan.types import DATE, TIMESTAMP, TIMESTAMP_NTZ, type_name
from sash.spark.scatter import ACCEPTED, TIME
from sash.sql.render import quoted, to_spark_sql
from sash.time import DAY

_MATCHES = "_matches"
_ROW = "_row"


@dataclass(frozen=True)
class _Rows:
    """Rows on their way: the frame has `_ts`, `_ok` if something was refused, then c0 ... cn."""

    frame: DataFrame
    width: int
    filtered: bool

    @property
    def columns(self) -> list[str]:
        return [f"c{index}" for index in range(self.width)]

    @property
    def head(self) -> list[str]:
        return [TIME, ACCEPTED] if self.filtered else [TIME]

    def guarded(self, sql: str) -> str:
        """The expression, evaluated only for rows that are still in."""
        return f"CASE WHEN {ACCEPTED} THEN {sql} END" if self.filtered else sql

    def refuse(self, condition: str) -> _Rows:
        """The rows for which the condition does not hold become carriers."""
        accepted = f"coalesce({self.guarded(condition)}, false) AS {ACCEPTED}"
        return _Rows(self.frame.selectExpr(TIME, accepted, *self.columns), self.width, True)


def leg_frame(node: Node, stream: DataFrame, time: str | None, relations: Mapping[str, DataFrame]) -> DataFrame:
    """The rows of a leg, or of its lower part: `_ts`, `_ok` if it may refuse rows, and its columns c0 ... cn.

    `time` is the column of microseconds to take for `_ts` instead of the stream's time column.
    """
    rows = _rows(node, stream, time, relations)
    if not rows.filtered:
        return rows.frame
    return rows.frame.selectExpr(*rows.head, *(f"{rows.guarded(name)} AS {name}" for name in rows.columns))


def _rows(node: Node, stream: DataFrame, time: str | None, relations: Mapping[str, DataFrame]) -> _Rows:
    match node:
        case Stream():
            named = [f"{quoted(field.name)} AS c{index}" for index, field in enumerate(node.schema)]
            field = node.schema[node.time]
            moment = quoted(time) if time is not None else micros(quoted(field.name), field.dtype)
            frame = stream.selectExpr(f"{moment} AS {TIME}", *named)
            return _Rows(frame, len(node.schema), False)
        case Filter():
            rows = _rows(node.child, stream, time, relations)
            return rows.refuse(to_spark_sql(node.predicate, rows.columns))
        case Project():
            return _project(node, _rows(node.child, stream, time, relations))
        case Join():
            return _join(node, _rows(node.left, stream, time, relations), relation_frame(node.right, relations))
        case _:
            raise AssertionError(f"{type(node).__name__} does not run in a leg")


def _project(node: Project, rows: _Rows) -> _Rows:
    def computed(expression: Expression) -> str:
        sql = to_spark_sql(expression, rows.columns)
        return rows.guarded(sql) if may_fail(expression) else sql

    named = [f"{_typed(computed(e), e)} AS c{index}" for index, e in enumerate(node.expressions)]
    return _Rows(rows.frame.selectExpr(*rows.head, *named), len(named), rows.filtered)


def _typed(sql: str, expression: Expression) -> str:
    """The expression with the type that the plan gave it, whatever Spark would have inferred."""
    if isinstance(expression, Column) or pa.types.is_null(expression.dtype):
        return sql
    return f"CAST({sql} AS {type_name(expression.dtype)})"


def _join(node: Join, rows: _Rows, relation: DataFrame) -> _Rows:
    if node.kind in ("semi", "anti"):
        return _existence(node, rows, relation)
    theirs = [f"d{index}" for index in range(len(node.right.schema))]
    marked = _read(relation.selectExpr(*(f"c{i} AS {name}" for i, name in enumerate(theirs)), f"true AS {_ROW}"))
    conditions = [f"{rows.columns[left]} = {theirs[right]}" for left, right in node.keys]
    if node.condition is not None:
        conditions.append(to_spark_sql(node.condition, [*rows.columns, *theirs]))
    if rows.filtered:
        conditions.append(ACCEPTED)
    joined = rows.frame.join(broadcast(marked), expr(" AND ".join(conditions) or "true"), "left")
    width = rows.width + len(theirs)
    renamed = [f"{name} AS c{rows.width + index}" for index, name in enumerate(theirs)]
    if node.kind == "left":
        return _Rows(joined.selectExpr(*rows.head, *rows.columns, *renamed), width, rows.filtered)
    return _Rows(joined.selectExpr(TIME, f"{_ROW} IS NOT NULL AS {ACCEPTED}", *rows.columns, *renamed), width, True)


def _existence(node: Join, rows: _Rows, relation: DataFrame) -> _Rows:
    """Whether a row has a match: the relation grouped by its keys, so that a row meets one group at most."""
    theirs = [f"c{index}" for index in range(len(node.right.schema))]
    keys = [f"k{number}" for number in range(len(node.keys))]
    grouped = relation.groupBy(*(expr(f"c{right} AS {k}") for (_, right), k in zip(node.keys, keys, strict=True)))
    if node.condition is None:
        groups = grouped.agg(expr(f"count(1) > 0 AS {_MATCHES}"))
        found = f"coalesce({_MATCHES}, false)"
    else:
        groups = grouped.agg(expr(f"collect_list(struct({', '.join(theirs)})) AS {_MATCHES}"))
        condition = to_spark_sql(node.condition, [*rows.columns, *(f"{_ROW}.{name}" for name in theirs)])
        found = f"coalesce(exists({_MATCHES}, {_ROW} -> {condition}), false)"
    conditions = [f"{rows.columns[left]} = {k}" for (left, _), k in zip(node.keys, keys, strict=True)]
    joined = rows.frame.join(broadcast(_read(groups)), expr(" AND ".join(conditions) or "true"), "left")
    return _Rows(joined, rows.width, rows.filtered).refuse(found if node.kind == "semi" else f"NOT {found}")


def _read(frame: DataFrame) -> DataFrame:
    """The rows that a frame has now."""
    return frame.sparkSession.createDataFrame(frame.toArrow())


def relation_frame(node: Node, relations: Mapping[str, DataFrame]) -> DataFrame:
    """A part of the plan that is made of one relation alone: its columns c0 ... cn."""
    match node:
        case Relation():
            named = [f"{quoted(field.name)} AS c{index}" for index, field in enumerate(node.schema)]
            return relations[node.name.lower()].selectExpr(*named)
        case Filter():
            return relation_frame(node.child, relations).where(to_spark_sql(node.predicate, _names(node.child)))
        case Project():
            columns = _names(node.child)
            named = [f"{_typed(to_spark_sql(e, columns), e)} AS c{i}" for i, e in enumerate(node.expressions)]
            return relation_frame(node.child, relations).selectExpr(*named)
        case _:
            raise AssertionError(f"{type(node).__name__} is not part of a static relation")


def _names(node: Node) -> Sequence[str]:
    return [f"c{index}" for index in range(len(node.schema))]


def relation_table(node: Node, relations: Mapping[str, DataFrame], most: int | None = None) -> pa.Table:
    """The contents of such a part, for operators that look it up; `most` rows of it, if that is given."""
    frame = relation_frame(node, relations)
    found = (frame if most is None else frame.limit(most)).toArrow()
    schema = pa.schema([(f"c{index}", field.dtype) for index, field in enumerate(node.schema)])
    return found.cast(schema).combine_chunks()


def micros(column: str, dtype: pa.DataType) -> str:
    """A time column as microseconds, in Spark SQL."""
    if dtype == TIMESTAMP:
        return f"unix_micros({column})"
    if dtype == TIMESTAMP_NTZ:
        return f"timestampdiff(MICROSECOND, TIMESTAMP_NTZ'1970-01-01 00:00:00', {column})"
    if dtype == DATE:
        return f"CAST(unix_date({column}) AS BIGINT) * {DAY}"
    return f"CAST({column} AS BIGINT)"

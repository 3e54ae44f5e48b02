"""Legs in Spark's own engine: the filters, projections and static joins directly above a stream, as a DataFrame.

A row that a filter or join refuses is not dropped, because the stream's clock includes it: it is kept for its time, with
`_ok` false and NULL columns. Expressions that may fail are not evaluated for such rows.

A relation that a leg joins with is read once, when the query starts, so later changes of its files do not change the
answer. Updates of a relation are a leg of their own: `_ts`, columns c0 ... cn, the time as another column, and `_sign`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import broadcast, expr

from sash.physical.nodes import UpdateLeg
from sash.physical.shapes import calls_user, has_spark_functions, leg_source, needs_spark
from sash.plan.catalog import OP
from sash.plan.expression_safety import may_fail
from sash.plan.expressions import Column, Expression
from sash.plan.nodes import ONE_ROW, Expand, Filter, Join, Node, Project, Relation, Stream
from sash.plan.types import DATE, TIMESTAMP, TIMESTAMP_NTZ, type_name
from sash.runtime.legs import LegRunner, constant_table
from sash.spark.scatter import ACCEPTED, SIGN, TIME
from sash.spark.sql_types import stored_column
from sash.spark.types import arrow_type
from sash.sql.render import quoted, to_spark_sql
from sash.time import DAY

SMALL = 50_000
"""The largest table that is looked up in scatter, in rows: every task indexes it, at some 50 ns per row."""

Extra = Mapping[str, str]
"""Columns that scatter needs beside those of a leg or scan: their expressions over the stream, by name."""

NO_EXTRA: Extra = MappingProxyType({})
_MATCHES, _ROW = "_matches", "_row"


def named_columns(extra: Extra) -> list[str]:
    """Such columns in Spark SQL."""
    return [f"{expression} AS {name}" for name, expression in extra.items()]


@dataclass(frozen=True)
class _LegRows:
    """The rows of a part of a leg: `_ts`, `_ok` if it refuses rows, c0 ... cn, and `tail`."""

    frame: DataFrame
    width: int
    filtered: bool
    tail: tuple[str, ...] = ()
    """Further columns of the stream, by which scatter tells more of a row than queries need."""

    @property
    def columns(self) -> list[str]:
        return [f"c{index}" for index in range(self.width)]

    @property
    def head(self) -> list[str]:
        return [TIME, ACCEPTED] if self.filtered else [TIME]

    def guarded(self, sql: str) -> str:
        """Evaluate the expression for accepted rows only."""
        return f"CASE WHEN {ACCEPTED} THEN {sql} END" if self.filtered else sql

    def refuse(self, condition: str) -> _LegRows:
        """Refuse the rows for which the condition does not hold."""
        accepted = f"coalesce({self.guarded(condition)}, false) AS {ACCEPTED}"
        return self.made(self.frame.selectExpr(TIME, accepted, *self.columns, *self.tail), self.width, filtered=True)

    def made(self, frame: DataFrame, width: int, *, filtered: bool) -> _LegRows:
        """The rows that were made of these."""
        return _LegRows(frame, width, filtered, self.tail)


def leg_frame(
    node: Node, stream: DataFrame, time: str | None, relations: Mapping[str, DataFrame], extra: Extra = NO_EXTRA
) -> DataFrame:
    """Build the rows of a leg, or of its lower part: `_ts`, `_ok` if it refuses rows, and its columns c0 ... cn.

    `time` names a column of microseconds to use for `_ts` instead of the stream's time column. Columns that are
    `extra`, by name with their expressions, follow.
    """
    rows = _rows(node, stream, time, relations, extra)
    if not rows.filtered:
        return rows.frame
    guarded = (f"{rows.guarded(name)} AS {name}" for name in rows.columns)
    return rows.frame.selectExpr(*rows.head, *guarded, *rows.tail)


def _rows(
    node: Node, stream: DataFrame, time: str | None, relations: Mapping[str, DataFrame], extra: Extra
) -> _LegRows:
    match node:
        case Stream():
            named = [f"{stored_column(stream, field.name)} AS c{index}" for index, field in enumerate(node.schema)]
            field = node.schema[node.time]
            moment = quoted(time) if time is not None else micros(quoted(field.name), field.dtype)
            frame = stream.selectExpr(f"{moment} AS {TIME}", *named, *named_columns(extra))
            return _LegRows(frame, len(node.schema), False, tuple(extra))
        case Filter():
            rows = _rows(node.child, stream, time, relations, extra)
            return rows.refuse(to_spark_sql(node.predicate, rows.columns))
        case Project():
            return _project(node, _rows(node.child, stream, time, relations, extra))
        case Expand():
            return _expand(node, _rows(node.child, stream, time, relations, extra))
        case Join():
            rows = _rows(node.left, stream, time, relations, extra)
            return _join(node, rows, relation_frame(node.right, relations))
        case _:
            raise AssertionError(f"{type(node).__name__} does not run in a leg")


def _project(node: Project, rows: _LegRows) -> _LegRows:
    def computed(expression: Expression) -> str:
        sql = to_spark_sql(expression, rows.columns)
        return rows.guarded(sql) if may_fail(expression) else sql

    named = [f"{typed(computed(e), e)} AS c{index}" for index, e in enumerate(node.expressions)]
    return rows.made(rows.frame.selectExpr(*rows.head, *named, *rows.tail), len(named), filtered=rows.filtered)


def _expand(node: Expand, rows: _LegRows) -> _LegRows:
    """Several rows per accepted row; a refused row stays one."""
    made = rows.guarded(_structs(node, rows.columns))
    columns = ", ".join(f"c{index}" for index in range(len(node.names)))
    frame = rows.frame.selectExpr(*rows.head, f"inline_outer({made}) AS ({columns})", *rows.tail)
    return rows.made(frame, len(node.names), filtered=rows.filtered)


def _structs(node: Expand, columns: Sequence[str]) -> str:
    """The rows that an input row becomes, as an array of structs, in Spark SQL."""
    named = [
        ", ".join(f"'c{i}', {typed(to_spark_sql(e, columns), e)}" for i, e in enumerate(made)) for made in node.lists
    ]
    return f"array({', '.join(f'named_struct({one})' for one in named)})"


def typed(sql: str, expression: Expression) -> str:
    """Cast the expression to its type in the plan, which Spark may infer differently."""
    if isinstance(expression, Column) or pa.types.is_null(expression.dtype):
        return sql
    return f"CAST({sql} AS {type_name(expression.dtype)})"


def _join(node: Join, rows: _LegRows, relation: DataFrame) -> _LegRows:
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
        frame = joined.selectExpr(*rows.head, *rows.columns, *renamed, *rows.tail)
        return rows.made(frame, width, filtered=rows.filtered)
    matched = f"{_ROW} IS NOT NULL AS {ACCEPTED}"
    return rows.made(joined.selectExpr(TIME, matched, *rows.columns, *renamed, *rows.tail), width, filtered=True)


def _existence(node: Join, rows: _LegRows, relation: DataFrame) -> _LegRows:
    """A semi or anti join: the relation is grouped by its keys, so that a row matches at most one group."""
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
    return rows.made(joined, rows.width, filtered=rows.filtered).refuse(
        found if node.kind == "semi" else f"NOT {found}"
    )


def _read(frame: DataFrame) -> DataFrame:
    """Read the current rows of a frame."""
    return frame.sparkSession.createDataFrame(frame.toArrow())


def relation_frame(node: Node, relations: Mapping[str, DataFrame]) -> DataFrame:
    """Build a part of the plan over one relation: its columns c0 ... cn."""
    if leg_source(node).name == ONE_ROW.name and not has_spark_functions(node):
        return _session().createDataFrame(constant_table(node))
    match node:
        case Relation() if node.name == ONE_ROW.name:
            return _session().createDataFrame(constant_table(node))
        case Relation():
            frame = relations[node.name.lower()]
            named = [f"{stored_column(frame, field.name)} AS c{index}" for index, field in enumerate(node.schema)]
            return frame.selectExpr(*named)
        case Filter():
            return relation_frame(node.child, relations).where(to_spark_sql(node.predicate, _names(node.child)))
        case Project():
            columns = _names(node.child)
            named = [f"{typed(to_spark_sql(e, columns), e)} AS c{i}" for i, e in enumerate(node.expressions)]
            return relation_frame(node.child, relations).selectExpr(*named)
        case Expand():
            made = f"inline({_structs(node, _names(node.child))})"
            return relation_frame(node.child, relations).selectExpr(f"{made} AS ({', '.join(_names(node))})")
        case _:
            raise AssertionError(f"{type(node).__name__} is not part of a static relation")


def _session() -> SparkSession:
    session = SparkSession.getActiveSession()
    assert session is not None
    return session


def _names(node: Node) -> Sequence[str]:
    return [f"c{index}" for index in range(len(node.schema))]


def relation_table(node: Node, relations: Mapping[str, DataFrame], most: int | None = None) -> pa.Table:
    """Read such a part, or at most `most` rows of it, for operators that look it up."""
    if leg_source(node).name == ONE_ROW.name and not has_spark_functions(node):
        return constant_table(node)
    frame = relation_frame(node, relations)
    found = (frame if most is None else frame.limit(most)).toArrow()
    schema = pa.schema([(f"c{index}", field.dtype) for index, field in enumerate(node.schema)])
    return found.cast(schema).combine_chunks()


def update_frame(leg: UpdateLeg, updates: DataFrame, time: str | None) -> DataFrame:
    """Build the rows of an update leg. Without an `_op` column all updates are '+', which replaces by key."""
    assert time is not None
    moment = micros(quoted(time), update_time(updates, time))
    columns = leg.relation.schema
    named = [f"{stored_column(updates, field.name)} AS c{index}" for index, field in enumerate(columns)]
    sign = f"CASE {OP} WHEN '+' THEN 1 WHEN '-' THEN -1 END" if OP in updates.columns else "1"
    made = f"{moment} AS c{len(named)}"
    return updates.selectExpr(f"{moment} AS {TIME}", *named, made, f"CAST({sign} AS TINYINT) AS {SIGN}")


def update_time(updates: DataFrame, time: str | None) -> pa.DataType:
    """The type of the updates' time column."""
    found = next(field for field in updates.schema.fields if field.name == time)
    return arrow_type(found.dataType)


def micros(column: str, dtype: pa.DataType) -> str:
    """Convert a time column to microseconds, in Spark SQL."""
    if dtype == TIMESTAMP:
        return f"unix_micros({column})"
    if dtype == TIMESTAMP_NTZ:
        return f"timestampdiff(MICROSECOND, TIMESTAMP_NTZ'1970-01-01 00:00:00', {column})"
    if dtype == DATE:
        return f"CAST(unix_date({column}) AS BIGINT) * {DAY}"
    return f"CAST({column} AS BIGINT)"


@dataclass(frozen=True)
class Lookups:
    """Joins of a leg with small tables, and expansions, which run in scatter: from `node` down to its input `below`, which Spark computes.

    All rows of a stream go through scatter anyway, and a lookup by hash takes some nanoseconds. Spark would collect, hash
    and broadcast the table anew for every batch, which takes longer than the rest of its planning. Large tables are still
    broadcast by Spark, once per executor, and so are those below an expression that only Spark can compute.
    """

    node: Node
    below: Node
    tables: Mapping[Node, pa.Table]

    def runner(self) -> LegRunner:
        """Create a runner for this part of the leg."""
        return LegRunner(self.node, self.tables, self.below)


def find_lookups(
    node: Node, relations: Mapping[str, DataFrame], known: dict[Node, pa.Table] | None = None
) -> Lookups | None:
    """Find the part of a leg that can run in scatter: from its top to its lowest join with a small table, or expansion.

    Tables that are `known` are not read again, and those that are read are added to them.
    """
    known = {} if known is None else known
    chain = [node]
    while chain[-1].children:
        chain.append(chain[-1].children[0])
    tables: dict[Node, pa.Table] = {}
    found: Lookups | None = None
    for part in chain[:-1]:
        if needs_spark(part):
            break
        if isinstance(part, Expand) or calls_user(part):
            found = Lookups(node, part.children[0], dict(tables))
        if isinstance(part, Join):
            if part.right not in known:
                known[part.right] = relation_table(part.right, relations, SMALL + 1)
            table = known[part.right]
            if table.num_rows > SMALL:
                break
            tables[part.right] = table
            found = Lookups(node, part.left, dict(tables))
    return found

"""The types of CAST, by their Spark names."""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp
from sqlglot.errors import ParseError

from sash.arguments import whole_number
from sash.errors import TypeMismatchError, UnsupportedSqlError, excerpt
from sash.plan import types
from sash.plan.sql_types import INTERVALS, VARIANT
from sash.sql.coercion import MAX_PRECISION
from sash.sql.source import SqlText

_TYPES: dict[exp.DType, pa.DataType] = {
    exp.DType.BOOLEAN: types.BOOLEAN,
    exp.DType.TINYINT: types.TINYINT,
    exp.DType.SMALLINT: types.SMALLINT,
    exp.DType.INT: types.INT,
    exp.DType.BIGINT: types.BIGINT,
    exp.DType.FLOAT: types.FLOAT,
    exp.DType.DOUBLE: types.DOUBLE,
    exp.DType.TEXT: types.STRING,
    exp.DType.VARCHAR: types.STRING,
    exp.DType.BINARY: types.BINARY,
    exp.DType.DATE: types.DATE,
    exp.DType.TIMESTAMP: types.TIMESTAMP,
    exp.DType.TIMESTAMPTZ: types.TIMESTAMP,
    exp.DType.TIMESTAMPLTZ: types.TIMESTAMP,
    exp.DType.TIMESTAMPNTZ: types.TIMESTAMP_NTZ,
    exp.DType.VARIANT: VARIANT,
}


NO_TIME = "Spark has it switched off (spark.sql.timeType.enabled); use a TIMESTAMP, or an INTERVAL HOUR TO SECOND"
"""Why there are no columns of TIME, and what to use instead."""

_NESTED = (exp.DType.ARRAY, exp.DType.MAP, exp.DType.STRUCT)


def type_of(source: SqlText, node: exp.Expr) -> pa.DataType:
    """The type that the node names."""
    if isinstance(node, exp.DataType):
        if node.this == exp.DType.DECIMAL:
            return _decimal(source, node)
        if node.this in _TYPES and not node.expressions:
            return _TYPES[node.this]
        if node.this in _NESTED and node.expressions:
            return _nested(source, node)
        if isinstance(node.this, exp.Interval):
            return _interval(source, node)
        if node.this == exp.DType.TIME:
            raise source.error(UnsupportedSqlError, f"Sash does not support the type TIME: {NO_TIME}", node)
    raise source.error(UnsupportedSqlError, f"Sash does not support the type {node.sql(dialect='spark')}", node)


def _nested(source: SqlText, node: exp.DataType) -> pa.DataType:
    """ARRAY<type>, MAP<type, type> or STRUCT<name: type, ...>."""
    parts = node.expressions
    if node.this == exp.DType.ARRAY and len(parts) == 1:
        return types.array_of(type_of(source, parts[0]))
    if node.this == exp.DType.MAP and len(parts) == 2:
        return types.map_of(*(type_of(source, part) for part in parts))
    if node.this == exp.DType.STRUCT and all(isinstance(part, exp.ColumnDef) and part.kind for part in parts):
        return types.struct_of([(part.name, type_of(source, part.kind)) for part in parts])
    raise source.error(UnsupportedSqlError, f"Sash does not support the type {node.sql(dialect='spark')}", node)


def _interval(source: SqlText, node: exp.DataType) -> pa.DataType:
    """INTERVAL field, or INTERVAL field TO field."""
    unit = node.this.args.get("unit")
    span = [unit.this, unit.expression] if isinstance(unit, exp.IntervalSpan) else [unit]
    found = INTERVALS.get(f"INTERVAL {' TO '.join(part.name.upper() for part in span if part is not None)}")
    if found is None:
        raise source.error(
            UnsupportedSqlError,
            f"there is no type {node.sql(dialect='spark')}; use one of {', '.join(INTERVALS)}",
            node,
        )
    return found


def _decimal(source: SqlText, node: exp.DataType) -> pa.DataType:
    """DECIMAL(p, s); DECIMAL(p) is DECIMAL(p, 0) and DECIMAL is DECIMAL(10, 0)."""
    sizes = [whole_number(parameter.name, MAX_PRECISION) for parameter in node.expressions] or [10]
    precision, scale = sizes[0], sizes[1] if len(sizes) > 1 else 0
    if not precision or scale is None or scale > precision or len(sizes) > 2:
        written = ",".join(excerpt(parameter.sql(dialect="spark")) for parameter in node.expressions)
        raise source.error(
            TypeMismatchError,
            f"DECIMAL({written}) is not valid: write DECIMAL(p, s) with p from 1 to {MAX_PRECISION} digits, s of them after the "
            "point",
            node,
        )
    return pa.decimal128(precision, scale)


def read_type(source: SqlText, start: int, end: int) -> pa.DataType:
    """The type written between two offsets of the text."""
    text = source.text[start:end]
    try:
        node = exp.DataType.build(text, dialect="spark")
    except ParseError:
        raise source.error(UnsupportedSqlError, f"Sash has no type {text}", start) from None
    node.meta["start"] = start
    return type_of(source, node)

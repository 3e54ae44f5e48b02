"""Every function and cast against Spark itself, on edge values, in one Spark query."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from sash.operators.scalar import evaluate, supports
from sash.plan.expressions import Call, Expression, columns_of
from tests.operators.scalar.build import table
from tests.operators.scalar.cases import ALL

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_INEXACT = {"exp", "ln", "log10", "log2", "pow"}


@pytest.mark.spark
def test_differential_spark(spark: SparkSession) -> None:
    rows = table()
    columns = [column.combine_chunks() for column in rows.columns]
    frame = spark.createDataFrame(rows)
    # Compiling one projection of hundreds of expressions takes longer than interpreting it.
    settings = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        theirs = frame.selectExpr(*(f"{text} AS x{number}" for number, (text, _) in enumerate(ALL))).toArrow()
    finally:
        for key in settings:
            spark.conf.unset(key)
    wrong = []
    for number, (text, expression) in enumerate(ALL):
        assert supports(expression) is None
        expected = theirs.column(number).combine_chunks()
        actual = evaluate(expression, columns, rows.num_rows)
        assert type(actual) is type(pa.array([], expression.dtype))
        assert (actual.type, len(actual)) == (expression.dtype, rows.num_rows)
        if not _same_type(expected.type, actual.type):
            wrong.append(f"{text}: {actual.type}, in Spark {expected.type}")
            continue
        tolerance = 1e-14 if isinstance(expression, Call) and expression.function in _INEXACT else 0.0
        for row, (ours, spark_value) in enumerate(zip(_values(actual), _values(expected), strict=True)):
            if not _same(ours, spark_value, tolerance):
                wrong.append(f"{text}: {ours!r}, in Spark {spark_value!r}, for {_inputs(expression, rows, row)}")
                break
    assert not wrong, "\n".join(wrong)


def _same_type(theirs: pa.DataType, ours: pa.DataType) -> bool:
    if pa.types.is_large_string(theirs):
        return bool(pa.types.is_string(ours))
    return bool(theirs == ours)


def _values(array: pa.Array) -> list[Any]:
    """Python values, but integers for timestamps, which may be outside Python's years."""
    return (array.view(pa.int64()) if pa.types.is_timestamp(array.type) else array).to_pylist()


def _same(ours: Any, theirs: Any, tolerance: float) -> bool:
    if isinstance(ours, float) and isinstance(theirs, float):
        if math.isnan(ours) or math.isnan(theirs):
            return math.isnan(ours) and math.isnan(theirs)
        return ours == theirs or abs(ours - theirs) <= tolerance * abs(theirs)
    return bool(ours == theirs)


def _inputs(expression: Expression, rows: pa.Table, row: int) -> dict[str, Any]:
    return {rows.column_names[index]: rows.column(index)[row].as_py() for index in sorted(columns_of(expression))}

"""Scalar functions whose values are pinned from Spark: evaluated alone, above a source, and above an operator."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sash.errors import SashError
from sash.operators.scalar import evaluate
from sash.plan.catalog import Catalog, StreamEntry
from sash.plan.expressions import Expression, runs_in_sash
from sash.plan.nodes import Project
from sash.plan.types import Field, type_name
from sash.sql import parse
from sash.sql.render import quoted, to_spark_sql
from sash.testing import replay
from tests.sql.spark_expressions import ERROR, Pinned, as_text, edge_values, read, text_of, topics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLE = edge_values()
COLUMNS = [column.combine_chunks() for column in TABLE.columns]
FIELDS = tuple(Field(field.name, field.type) for field in TABLE.schema)
CATALOG = Catalog({"t": StreamEntry("t", FIELDS, "tm")})
PINNED = [pytest.param(pinned, id=f"{topic.stem}: {pinned.sql}") for topic in topics() for pinned in read(topic)]
INEXACT = (
    "sin",
    "cos",
    "tan",
    "cot",
    "csc",
    "sec",
    "asin",
    "acos",
    "atan",
    "exp",
    "log",
    "ln",
    "cbrt",
    "pow",
    "hypot",
    "acosh",
    "tanh",
)
"""Functions whose last digit depends on the library of mathematics."""


def bound(sql: str) -> Expression:
    plan = parse(f"SELECT {sql} AS e FROM t", CATALOG)
    assert isinstance(plan, Project)
    return plan.expressions[0]


def value_of(sql: str) -> str:
    expression = bound(sql)
    return as_text(evaluate(expression, COLUMNS, TABLE.num_rows))


@pytest.mark.parametrize("pinned", PINNED)
def test_value(pinned: Pinned) -> None:
    if pinned.values == ERROR:
        with pytest.raises(SashError):
            value_of(pinned.sql)
    elif pinned.sql.startswith(INEXACT):
        assert _nearly_equal(value_of(pinned.sql), pinned.values)
    else:
        assert value_of(pinned.sql) == pinned.values


@pytest.mark.parametrize(
    "source", ["t", "(SELECT * FROM t LEFT SEMI JOIN t AS u ON t.id = u.id)"], ids=["source", "join"]
)
@pytest.mark.parametrize("topic", topics(), ids=lambda topic: topic.stem)
def test_value_in_a_query(topic: Path, source: str) -> None:
    pinned = [one for one in read(topic) if one.values != ERROR]
    selected = ", ".join(f"{one.sql} AS e{number}" for number, one in enumerate(pinned))
    rows = [{**row, "ts": 1} for row in TABLE.to_pylist()]
    schema = ", ".join(f"{quoted(field.name)} {type_name(field.dtype)}" for field in FIELDS) + ", ts BIGINT"
    query = f"SELECT id AS row_id, {selected} FROM {source} WINDOW 1 HOUR"
    result = replay(query, {"t": rows}, schemas={"t": schema}, unit="s", until=2, shards=1)
    answer = sorted(result.at(2), key=lambda row: row["row_id"])
    for number, one in enumerate(pinned):
        dtype = type_name(bound(one.sql).dtype)
        found = text_of(dtype, [row[f"e{number}"] for row in answer])
        assert found == one.values or (one.sql.startswith(INEXACT) and _nearly_equal(found, one.values)), one.sql


def _nearly_equal(found: str, expected: str | None) -> bool:
    """Whether two texts differ in the last digits of numbers only."""
    words = [re.findall(r"[^\s,\[\]]+", text) for text in (found, expected or "")]
    return len(words[0]) == len(words[1]) and all(map(_same_word, *words))


def _same_word(left: str, right: str) -> bool:
    if left == right:
        return True
    try:
        return math.isclose(float(left), float(right), rel_tol=1e-14)
    except ValueError:
        return False


@pytest.mark.spark
@pytest.mark.parametrize("topic", topics(), ids=lambda topic: topic.stem)
def test_text_for_spark(spark: SparkSession, topic: Path) -> None:
    """Above a source Spark evaluates what Sash has bound, which must mean the same as what was written."""
    settings = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
    # Spark does not convert nested values of type VOID to Arrow.
    known = [one for one in read(topic) if one.values != ERROR and "VOID>" not in (one.values or "")]
    pinned = [one for one in known if not runs_in_sash(bound(one.sql))]
    names = [quoted(field.name) for field in FIELDS]
    texts = [to_spark_sql(bound(one.sql), names) for one in pinned]
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        frame = spark.createDataFrame(TABLE).coalesce(1)
        found = frame.selectExpr("id", *(f"{text} AS e{i}" for i, text in enumerate(texts))).toArrow().sort_by("id")
    finally:
        for key in settings:
            spark.conf.unset(key)
    values = [as_text(found.column(i + 1)) for i in range(len(pinned))]
    assert {one.sql: value for one, value in zip(pinned, values, strict=True)} == {
        one.sql: one.values for one in pinned
    }

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from sash.physical.nodes import StreamLeg
from sash.plan.catalog import Catalog, RelationEntry, StreamEntry
from sash.plan.expressions import Column, SparkFunction
from sash.plan.nodes import Join, Project, Stream, walk
from sash.plan.types import BIGINT, STRING, Field
from sash.planning import plan_query
from sash.runtime.legs import LegRunner, static_tables
from sash.spark.legs import find_lookups, leg_frame
from sash.state.changes import ChangeBatch
from sash.time import FOREVER

ROWS = [(10, "a", 1), (20, "b", 2), (30, None, 3), (40, "a", None), (50, "c", 5), (60, "b", 0)]
ITEMS = [("a", 1, "first"), ("a", 2, "second"), ("b", 2, "third"), (None, 3, "nothing")]
STREAM = (Field("ts", BIGINT), Field("k", STRING), Field("v", BIGINT))
ITEM = (Field("k", STRING), Field("least", BIGINT), Field("label", STRING))
CATALOG = Catalog({"s": StreamEntry("s", STREAM, "ts")}, {"items": RelationEntry("items", ITEM)})

QUERIES = [
    "SELECT k, v FROM s [RANGE 1 SECOND]",
    "SELECT k, v + 1 AS w FROM s [RANGE 1 SECOND] WHERE v > 1",
    "SELECT k, 10 / v AS w FROM s [RANGE 1 SECOND] WHERE v <> 0",
    "SELECT s.k, label FROM s [RANGE 1 SECOND] JOIN items ON s.k = items.k",
    "SELECT s.k, label FROM s [RANGE 1 SECOND] JOIN items ON s.k = items.k AND v >= least WHERE v < 9",
    "SELECT s.k, v, label FROM s [RANGE 1 SECOND] LEFT JOIN items ON s.k = items.k AND v >= least",
    "SELECT k, v FROM s [RANGE 1 SECOND] LEFT SEMI JOIN items ON s.k = items.k",
    "SELECT k, v FROM s [RANGE 1 SECOND] LEFT SEMI JOIN items ON s.k = items.k AND v >= least",
    "SELECT k, v FROM s [RANGE 1 SECOND] LEFT ANTI JOIN items ON s.k = items.k",
    "SELECT k, v FROM s [RANGE 1 SECOND] LEFT ANTI JOIN (SELECT k, least FROM items WHERE least > 1) i ON s.k = i.k AND v >= least",
]


def columns(rows: list[Any], fields: tuple[Field, ...]) -> list[pa.Array]:
    return [pa.array([row[index] for row in rows], field.dtype) for index, field in enumerate(fields)]


@pytest.mark.spark
@pytest.mark.parametrize("sql", QUERIES)
def test_differential_a_leg_in_spark_is_the_leg_in_arrow(spark: SparkSession, sql: str) -> None:
    plan = plan_query(sql, CATALOG).physical
    (leg,) = [leg for leg in plan.legs if isinstance(leg, StreamLeg)]
    items = pa.table(columns(ITEMS, ITEM), names=[field.name for field in ITEM])
    times = np.array([row[0] for row in ROWS], np.int64)
    given = ChangeBatch(times, np.full(len(ROWS), FOREVER), np.ones(len(ROWS), np.int8), tuple(columns(ROWS, STREAM)))
    local = LegRunner(leg.node, static_tables(plan, {"items": items})).run(given)
    wanted = Counter(zip(local.ts.tolist(), *(column.to_pylist() for column in local.columns), strict=True))

    stream = spark.createDataFrame(ROWS, "ts long, k string, v long")
    relation = spark.createDataFrame(ITEMS, "k string, least long, label string")
    found = leg_frame(leg.node, stream, None, {"items": relation}).collect()
    accepted = [row.asDict() for row in found if row.asDict().pop("_ok", True)]
    for row in accepted:
        row.pop("_ok", None)
    assert Counter(tuple(row.values()) for row in accepted) == wanted
    assert {row["_ts"] for row in found} == {row[0] for row in ROWS}, "every row goes on, if only for its time"

    lookups = find_lookups(leg.node, {"items": relation})
    assert (lookups is not None) == ("items" in sql)
    if lookups is not None:
        rows = [
            row.asDict()
            for row in leg_frame(lookups.below, stream, None, {}).collect()
            if row.asDict().get("_ok", True)
        ]
        below = ChangeBatch(
            np.array([row["_ts"] for row in rows], np.int64),
            np.full(len(rows), FOREVER),
            np.ones(len(rows), np.int8),
            tuple(pa.array([row[f"c{i}"] for row in rows], f.dtype) for i, f in enumerate(lookups.below.schema)),
        )
        packed = lookups.runner().run(below)
        assert Counter(zip(packed.ts.tolist(), *(c.to_pylist() for c in packed.columns), strict=True)) == wanted


@pytest.mark.spark
def test_large_tables_and_native_expressions_stay_in_spark(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    relation = spark.createDataFrame(ITEMS, "k string, least long, label string")
    sql = "SELECT i.label, j.label AS second FROM s [RANGE 1 SECOND] JOIN items i ON s.k = i.k JOIN items j ON s.v = j.least"
    (node,) = [leg.node for leg in plan_query(sql, CATALOG).physical.legs if isinstance(leg, StreamLeg)]
    found = find_lookups(node, {"items": relation})
    assert found is not None
    assert (len(found.tables), [type(part) for part in walk(found.below)]) == (2, [Project, Stream])

    upper = node
    while not isinstance(upper, Join):
        upper = upper.children[0]
    plain = [Column(index, field.name, field.dtype) for index, field in enumerate(upper.left.schema)]
    native = tuple(SparkFunction("reverse({0})", (each,), STRING) if each.dtype == STRING else each for each in plain)
    above_a_native = replace(upper, left=Project(upper.left, tuple(each.name for each in plain), native))
    found = find_lookups(above_a_native, {"items": relation})
    assert found is not None
    assert (len(found.tables), found.below) == (1, above_a_native.left), (
        "the other join is below an expression that Spark computes"
    )

    monkeypatch.setattr("sash.spark.legs.SMALL", len(ITEMS) - 1)
    assert find_lookups(node, {"items": relation}) is None

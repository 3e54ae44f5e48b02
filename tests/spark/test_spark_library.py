"""The list of Spark's functions and data sources agrees with the Spark that is installed."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from sash.errors import SashError
from sash.plan.catalog import Catalog
from sash.plan.types import DATE, DOUBLE, STRING, TIMESTAMP, Field
from sash.planning import plan_query
from sash.spark.sources.declared import struct
from sash.spark.types import expression_type
from sash.sql.spark_library import LibraryTyper, library
from scripts.spark_library import SparkLibrary
from tests.kafka import fetched

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

STALE = "run python scripts/spark_library.py"
SCHEMA = (Field("ts", TIMESTAMP), Field("k", STRING), Field("v", DOUBLE), Field("d", DATE))


@pytest.fixture(scope="module")
def installed(spark: SparkSession) -> SparkLibrary:
    return SparkLibrary(spark)


def test_functions_and_sources_are_those_of_the_installed_spark(spark: SparkSession, installed: SparkLibrary) -> None:
    assert library().spark == spark.version, STALE
    given = [name for name in installed.names() if not name.startswith("sash_")]  # those of the session are ours
    assert sorted(library().functions) == given, STALE
    added = {"kafka"} if fetched() else set()
    assert sorted(library().sources) == sorted({*installed.sources()} - added), STALE


def test_kinds_arguments_and_types_are_those_of_the_installed_spark(installed: SparkLibrary) -> None:
    chosen = random.Random(7).sample(sorted(library().functions), 40)
    for name in [*chosen, "approx_count_distinct", "element_at", "now", "explode", "regexp_extract", "split"]:
        known = library().functions[name]
        assert installed.kind(name) == known.kind, f"{name}: {STALE}"
        assert installed.arguments(name) == (known.least, known.most), f"{name}: {STALE}"
        result = installed.result(name, known.least, known.most) if known.kind == "scalar" else None
        assert result == known.result, f"{name}: {STALE}"


def test_no_expression_that_spark_accepts_is_refused_and_no_type_differs(spark: SparkSession) -> None:
    """Calls of all functions that are outside Sash's library, over columns of several types."""
    frame = spark.createDataFrame([], struct(SCHEMA))
    chosen = random.Random(11)
    for name, known in sorted(library().functions.items()):
        if known.kind != "scalar" or chosen.random() > 0.25:
            continue
        count = known.least if known.most is None else chosen.randint(known.least, known.most)
        sql = f"{name}({', '.join(chosen.choice(('ts', 'k', 'v', 'd')) for _ in range(count))})"
        real = expression_type(frame, sql)
        if real is None or isinstance(real, str):
            continue
        typer = LibraryTyper()
        assert typer("s", sql) == real or typer.unsure, sql


def test_a_query_is_planned_alike_with_and_without_spark(spark: SparkSession) -> None:
    frame = spark.createDataFrame([], struct(SCHEMA))
    live, listed = (
        Catalog(spark_type=lambda _, sql: expression_type(frame, sql)),
        Catalog(spark_type=LibraryTyper()),
    )
    for catalog in (live, listed):
        catalog.add_stream("s", SCHEMA)
    for expression in (
        "regexp_extract(k, '(a)', 1)",
        "split(k, ',')[0]",
        "date_format(ts, 'yyyy')",
        "levenshtein(k, 'abc') + 1",
        "months_between(ts, d) > 1.5",
        "make_date(2026, month(d), 1)",
    ):
        text = f"SELECT {expression} AS x FROM s [RANGE 1 MINUTE]"
        assert plan_query(text, live).schema == plan_query(text, listed).schema
    for expression in ("rand(1)", "uuid()", "soundex(k, k)"):
        text = f"SELECT {expression} AS x FROM s [RANGE 1 MINUTE]"
        for catalog in (live, listed):
            with pytest.raises(SashError):
                plan_query(text, catalog)

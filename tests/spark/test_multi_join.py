"""Four streams joined on Spark: the oracle's answers, for any batches and across failures and restarts."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark import cloudpickle
from pyspark.sql import SparkSession

import sash.spark.dataflow
import tests.spark.trouble
from sash.engine import Engine
from sash.testing import replay
from tests.oracle.case import Case, case
from tests.oracle.check import assert_oracle
from tests.oracle.fixed.multi_joins import CHAIN, COMMON, HYBRID
from tests.spark.files import FolderSink, Rows, made_up_rows, write_batch
from tests.spark.trouble import TroubledProcessor, order

pytestmark = pytest.mark.spark

NAMES = ("s", "r", "q", "p")
WINDOWS = {"s": 9_000, "r": 12_000, "q": 9_000, "p": 15_000}
JOIN = case(
    "four_streams",
    "SELECT a.ts AS w, b.ts AS x, c.ts AS y, d.ts AS z FROM {s} AS a, {r} AS b, {q} AS c, {p} AS d "
    "WHERE a.k = b.k AND b.k = c.k AND c.k = d.k AND a.v <= d.v",
    WINDOWS,
    streams={name: made_up_rows(4, seed) for seed, name in enumerate(NAMES)},
    unit="us",
)
SIZES = (7, 40, 1, 60, 52)
"""The rows of each stream in each micro-batch."""


def uneven(case: Case) -> list[int]:
    """A split of all rows into batches of one row, of many, of a few."""
    rows = sum(map(len, case.streams.values()))
    sizes: list[int] = []
    for size in itertools.cycle((1, 20, 8)):
        sizes.append(min(size, rows - sum(sizes)))
        if sum(sizes) == rows:
            return sizes
    raise AssertionError


@pytest.mark.parametrize(
    ("case", "options"),
    [
        (COMMON, {"batch": uneven(COMMON)}),
        (CHAIN, {"batch": 12, "buckets": 9}),
        (HYBRID, {"batch": None, "tau": 4, "join": "hybrid"}),
    ],
    ids=["common", "chain", "lazy hybrid"],
)
def test_oracle_on_spark(spark: SparkSession, case: Any, options: dict[str, Any]) -> None:
    assert_oracle(case, runtime="spark", **options)


def engine_over(spark: SparkSession, folder: Path) -> Engine:
    engine = Engine(spark, shards=2)
    for name in NAMES:
        (folder / name).mkdir(parents=True, exist_ok=True)
        reader = spark.readStream.schema("ts long, k string, v long").option("maxFilesPerTrigger", 1)
        engine.stream(name, reader.option("maxFileAge", "36500d").parquet(str(folder / name)))
    return engine


def put(folder: Path, number: int) -> None:
    """One micro-batch of every stream."""
    begun = sum(SIZES[:number])
    for name in NAMES:
        write_batch(folder / name, number, list(JOIN.streams[name])[begun : begun + SIZES[number]])


def released() -> Counter[tuple[Any, ...]]:
    """The oracle's changes before the last row of the slowest stream."""
    ends = [max(row["ts"] for row in JOIN.streams[name][: sum(SIZES)]) for name in NAMES]
    assert_oracle(JOIN)
    streams: dict[str, Rows] = {name: list(rows) for name, rows in JOIN.streams.items()}
    changes = replay(JOIN.sql, streams, unit="us", until=min(ends) - 1).changes
    return Counter((change.op, change.ts, *change.row.values()) for change in changes)


def test_differential_restarts_and_failures(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloudpickle.register_pickle_by_value(tests.spark.trouble)
    trouble, sink = tmp_path / "trouble", FolderSink(tmp_path / "out")
    monkeypatch.setattr(
        sash.spark.dataflow, "StageProcessor", lambda *given, **named: TroubledProcessor(trouble, *given, **named)
    )
    for given in ((1, "fail", "within"), (2, "kill", "end"), (3, "kill", "within")):
        order(trouble, *given)
    for first, last in ((0, 2), (2, 5)):
        for number in range(first, last):
            put(tmp_path / "in", number)
        query = engine_over(spark, tmp_path / "in").sql(JOIN.sql)
        running = query.start(sink, trigger="available_now", checkpoint=str(tmp_path / "checkpoint"))
        try:
            running.await_termination()
            ((join, (found,)),) = running.progress()["current_choices"].items()
            assert join == "0.0.MultiJoin"
            assert sorted(found["what"].removeprefix("order ").split(", ")) == sorted(NAMES)
            assert (found["shards"], found["why"]) == ([0, 1], "as planned")
            assert f"now in all 2 shards: {found['what']}, as planned" in running.explain()
        finally:
            running.stop()
    assert not list(trouble.iterdir()), "every fault was injected"
    found = sink.read()
    assert sum(found.values()) > 100
    assert found == released()

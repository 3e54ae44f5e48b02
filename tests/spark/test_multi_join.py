"""Four streams joined on Spark: the oracle's answers, whatever the batches and whatever fails or restarts."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark import cloudpickle
from pyspark.sql import SparkSession

import sash.spark.plan
import tests.spark.trouble
from sash.engine import Engine
from sash.testing import replay
from tests.oracle.case import case
from tests.oracle.check import assert_oracle
from tests.oracle.fixed.multi_joins import CHAIN, COMMON, HYBRID
from tests.spark.files import FolderSink, Rows, made_up_rows, write_batch
from tests.spark.trouble import TroubledRound, order

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
"""How many rows of each stream the micro-batches have."""


@pytest.mark.parametrize(
    ("case", "options"),
    [(COMMON, {"batch": 3}), (CHAIN, {"batch": 5}), (HYBRID, {"batch": None, "tau": 4, "join": "hybrid"})],
    ids=["common", "chain", "lazy hybrid"],
)
def test_oracle_on_spark(spark: SparkSession, case: Any, options: dict[str, Any]) -> None:
    assert_oracle(case, runtime="spark", **options)


def engine_over(spark: SparkSession, place: Path) -> Engine:
    engine = Engine(spark, shards=2)
    for name in NAMES:
        (place / name).mkdir(parents=True, exist_ok=True)
        reader = spark.readStream.schema("ts long, k string, v long").option("maxFilesPerTrigger", 1)
        engine.stream(name, reader.option("maxFileAge", "36500d").parquet(str(place / name)))
    return engine


def put(place: Path, number: int) -> None:
    """One micro-batch of every stream."""
    begun = sum(SIZES[:number])
    for name in NAMES:
        write_batch(place / name, number, list(JOIN.streams[name])[begun : begun + SIZES[number]])


def released() -> Counter[tuple[Any, ...]]:
    """The oracle's changes before the last row of the stream that is furthest behind."""
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
    monkeypatch.setattr(sash.spark.plan, "Round", lambda *arguments: TroubledRound(trouble, *arguments))
    for given in ((1, "fail", "within"), (2, "kill", "end"), (3, "kill", "within")):
        order(trouble, *given)
    for first, last in ((0, 2), (2, 5)):
        for number in range(first, last):
            put(tmp_path / "in", number)
        query = engine_over(spark, tmp_path / "in").sql(JOIN.sql)
        running = query.start(sink, trigger="available_now", checkpoint=str(tmp_path / "checkpoint"))
        try:
            running.await_termination()
            assert "orders (" in running.progress()["remarks"]
        finally:
            running.stop()
    assert not list(trouble.iterdir()), "all of it happened"
    found = sink.read()
    assert sum(found.values()) > 100
    assert found == released()

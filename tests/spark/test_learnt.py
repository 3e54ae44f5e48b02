"""What operators learn at run time on Spark, before and after a restart: orders of a join, and how rows of a negation end.

A restart deletes the arenas, so that shards are rebuilt from their logs: what was learnt comes from the checkpoint.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession

from sash.engine import Engine
from sash.operators import expiration_choice, reordering
from sash.planning import plan_query
from sash.running import RunningQuery
from sash.testing import Result, replay
from tests.spark.files import FolderSink, Rows, write_batch

pytestmark = pytest.mark.spark

JOIN_OF_THREE = (
    "SELECT a.ts AS x, b.ts AS y, c.ts AS z FROM s [RANGE 40 MILLISECONDS] AS a, r [RANGE 40 MILLISECONDS] AS b, "
    "q [RANGE 40 MILLISECONDS] AS c WHERE a.k = b.k AND b.k = c.k"
)
OVER_NEGATION = (
    "SELECT t.k, t.v, c.v AS w FROM (SELECT a.k, a.v FROM s [RANGE 400 MILLISECONDS] AS a LEFT ANTI JOIN r "
    "[RANGE 3 MILLISECONDS] AS b ON a.k = b.k) AS t JOIN q [RANGE 100 MILLISECONDS] AS c ON t.k = c.k"
)
OVER_SENT_NEGATION = (
    "SELECT t.k, t.v, c.k AS l FROM (SELECT a.k, a.v FROM s [RANGE 400 MILLISECONDS] AS a LEFT ANTI JOIN r "
    "[RANGE 3 MILLISECONDS] AS b ON a.k = b.k) AS t JOIN q [RANGE 20 MILLISECONDS] AS c ON t.v = c.v"
)
NAMES = ("s", "r", "q")
Batches = list[dict[str, Rows]]


def batches(spans: list[tuple[int, Mapping[str, float]]], keys: Mapping[str, int]) -> Batches:
    """A micro-batch per span, of so many ms with so many rows of each stream a ms; times are in microseconds."""
    random = np.random.default_rng(7)
    made: Batches = []
    begun = 0
    for length, rates in spans:
        batch: dict[str, Rows] = {}
        for name, rate in rates.items():
            times = np.sort(random.integers(1000 * begun, 1000 * (begun + length), int(length * rate)))
            found = zip(times.tolist(), random.integers(0, keys[name], len(times)), range(len(times)), strict=True)
            batch[name] = [{"ts": ts, "k": f"k{key}", "v": number % 9} for ts, key, number in found]
        made.append(batch)
        begun += length
    return made


class Runs:
    """A query on one shard, over files of which each is a batch, stopped and started again."""

    def __init__(self, spark: SparkSession, folder: Path, sql: str, given: Batches, **options: Any) -> None:
        self._spark, self._folder, self._sql, self._options = spark, folder, sql, options
        self._given = given
        self._sink = FolderSink(folder / "out")
        self._put = 0

    def run(self, until: int) -> RunningQuery:
        """Run the batches up to this one, and stop."""
        for number in range(self._put, until):
            for name in NAMES:
                write_batch(self._folder / name, number, self._given[number][name])
        self._put = until
        engine = Engine(self._spark, shards=1)
        for name in NAMES:
            reader = self._spark.readStream.schema("ts long, k string, v long").option("maxFilesPerTrigger", 1)
            engine.stream(name, reader.option("maxFileAge", "36500d").parquet(str(self._folder / name)))
        checkpoint = str(self._folder / "checkpoint")
        running = engine.sql(self._sql, **self._options).start(
            self._sink, trigger="available_now", checkpoint=checkpoint
        )
        try:
            running.await_termination()
        finally:
            running.stop()
        local = Path(self._spark.sparkContext.getConf().get("spark.local.dir") or tempfile.gettempdir())
        for home in (local, *local.glob("blockmgr-*"), *local.glob("spark-*")):
            shutil.rmtree(home / "sash" / str(running.id), ignore_errors=True)
        return running

    def changes(self) -> Counter[tuple[Any, ...]]:
        return self._sink.read()

    def local(self, **options: Any) -> Result:
        """The same rows without Spark, up to the last row of the slowest stream."""
        streams = {name: [row for batch in self._given for row in batch[name]] for name in NAMES}
        until = min(rows[-1]["ts"] for rows in streams.values()) - 1
        return replay(self._sql, streams, unit="us", until=until, shards=1, batch=500, **self._options, **options)


def choice(running: RunningQuery, operator: str) -> tuple[str, str]:
    (found,) = running.progress()["current_choices"][operator]
    return found["what"], found["why"]


def examined(counts: Mapping[str, int]) -> int:
    """The rows that an operator has looked at."""
    return counts["rows_examined"]


def bag(result: Result) -> Counter[tuple[Any, ...]]:
    return Counter((change.op, change.ts, *change.row.values()) for change in result.changes)


def test_orders_of_a_join_change_and_stay_after_a_restart(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The slow stream becomes the fast one: the order turns round, and fewer rows are looked at (paper 4, 5.4)."""
    slow, fast = {"s": 0.2, "r": 0.4, "q": 3.0}, {"s": 3.0, "r": 0.4, "q": 0.2}
    spans = [(600, slow), *[(1100, fast)] * 4]
    given = batches(spans, {"s": 12, "r": 60, "q": 60})
    runs = Runs(spark, tmp_path, JOIN_OF_THREE, given, join="eager-nlj")
    first = runs.run(4)
    order, why = choice(first, "0.0.MultiJoin")
    assert order != "order s, r, q"
    assert "(change 1)" in why
    again = runs.run(5)
    assert again.progress()["total_rebuilt"] == 1
    assert choice(again, "0.0.MultiJoin") == (order, why)
    monkeypatch.setattr(reordering, "PATIENCE", 10**9)
    fixed = runs.local()
    assert runs.changes() == bag(fixed)
    looked = sum(examined(running.operators()["0.0.MultiJoin"]) for running in (first, again))
    assert looked < 0.8 * examined(asdict(fixed.counts["0.0.MultiJoin"]))


def test_how_rows_of_a_negation_end_changes_and_stays_after_a_restart(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many rows end prematurely, so that negative tuples pay; then few do, and calendars pay (paper 5, 5.3.2)."""
    for module in ("sash.engine", "sash.testing.replay"):
        monkeypatch.setattr(import_module(module), "plan_query", partial(plan_query, disable={"pull_up_negation"}))
    many, few = {"s": 10.0, "r": 1.0, "q": 0.1}, {"s": 10.0, "r": 0.01, "q": 0.1}
    given = batches([*[(450, many)] * 4, *[(450, few)] * 3], {"s": 200, "r": 200, "q": 200})
    runs = Runs(spark, tmp_path, OVER_NEGATION, given, partitions=40)
    first = runs.run(3)
    way, why = choice(first, "0.0.SemiJoin")
    assert way == "ends by negative tuples"
    assert "(change 1)" in why
    again = runs.run(4)
    assert again.progress()["total_rebuilt"] == 1
    assert choice(again, "0.0.SemiJoin") == (way, why)
    last = runs.run(7)
    assert choice(last, "0.0.SemiJoin")[0] == "ends by calendar"
    assert "(change 2)" in choice(last, "0.0.SemiJoin")[1]
    monkeypatch.setattr(expiration_choice, "PATIENCE", 10**9)
    fixed = runs.local()
    assert fixed.counts["0.0.SemiJoin"].current_choice == {0: ("ends by calendar", "as planned")}
    assert runs.changes() == bag(fixed)
    looked = sum(examined(running.operators()["0.1.Join"]) for running in (first, again, last))
    assert looked < 0.7 * examined(asdict(fixed.counts["0.1.Join"]))


def test_how_rows_are_sent_to_another_stage_changes_and_stays_after_a_restart(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few rows end prematurely, so that the others need no message; then many do. Both stages are built again from their logs:
    the one has the rows that the other has sent, by one way or the other (paper 5, 5.3.2)."""
    for module in ("sash.engine", "sash.testing.replay"):
        monkeypatch.setattr(import_module(module), "plan_query", partial(plan_query, disable={"pull_up_negation"}))
    few, many = {"s": 10.0, "r": 0.01, "q": 0.02}, {"s": 10.0, "r": 1.0, "q": 0.02}
    given = batches([*[(450, few)] * 3, *[(450, many)] * 2], {"s": 200, "r": 200, "q": 200})
    runs = Runs(spark, tmp_path, OVER_SENT_NEGATION, given, partitions=16)
    first = runs.run(2)
    way, why = choice(first, "0.0.SemiJoin")
    assert way == "ends by calendar"
    assert "(change 1)" in why
    again = runs.run(3)
    assert again.progress()["total_rebuilt"] == 2
    assert choice(again, "0.0.SemiJoin") == (way, why)
    last = runs.run(5)
    assert choice(last, "0.0.SemiJoin")[0] == "ends by negative tuples"
    assert "(change 2)" in choice(last, "0.0.SemiJoin")[1]
    monkeypatch.setattr(expiration_choice, "PATIENCE", 10**9)
    fixed = runs.local()
    assert fixed.counts["0.0.SemiJoin"].current_choice == {0: ("ends by negative tuples", "as planned")}
    assert runs.changes() == bag(fixed)
    sent = sum(running.operators()["0.0.SemiJoin"]["rows_out_negative"] for running in (first, again, last))
    assert sent < 0.9 * fixed.counts["0.0.SemiJoin"].given_negative

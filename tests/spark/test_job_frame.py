"""A job on Spark: several queries as one dataflow give the changes of each query alone."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from sash.physical.channels import StageRows
from sash.physical.nodes import PhysicalPlan
from sash.plan.catalog import Catalog
from sash.plan.options import Trigger
from sash.plan.types import BIGINT, STRING, Field
from sash.planning import plan_query, plan_together
from sash.rows import parse_schema
from sash.runtime.local import LocalRun
from sash.spark.batch_metrics import total
from sash.spark.dataflow import job_frame
from sash.spark.layout import Suspended, layout_of
from sash.spark.output import OutputMode, read_metrics, read_output
from sash.spark.session import query_settings
from sash.spark.sinks.start import start_query
from sash.spark.sources.declared import FILES_OF_ANY_AGE, struct
from sash.spark.sources.inputs import QueryInputs, StreamSource
from sash.spark.stage_errors import failed_queries
from sash.testing import replay, replay_job
from tests.spark.files import made_up_rows, write_batch

pytestmark = pytest.mark.spark

QUERIES = {
    "by_k": "SELECT k, COUNT(*) AS n, SUM(v) AS total FROM s [RANGE 20 MILLISECONDS] GROUP BY k",
    "by_k_filtered": "SELECT k, SUM(v) AS total FROM s [RANGE 50 MILLISECONDS] WHERE v > 3 GROUP BY k",
    "by_v": "SELECT v, COUNT(*) AS n FROM s [RANGE 9 MILLISECONDS] WHERE k <> 'k1' GROUP BY v",
    "joined": "SELECT a.v AS v, b.v AS w FROM s [RANGE 20 MILLISECONDS] AS a JOIN u [RANGE 10 MILLISECONDS] AS b ON a.k = b.k",
    "distinct": "SELECT DISTINCT k, v FROM s [RANGE 20 MILLISECONDS]",
    "over_distinct": "SELECT k, COUNT(*) AS n FROM (SELECT DISTINCT k, v FROM s [RANGE 20 MILLISECONDS]) AS t GROUP BY k",
    "looked_up": "SELECT city, COUNT(*) AS n FROM u [RANGE 30 MILLISECONDS] AS a JOIN t ON a.k = t.k GROUP BY city",
    "looked_up_longer": "SELECT city, COUNT(*) AS n FROM u [RANGE 60 MILLISECONDS] AS a JOIN t ON a.k = t.k GROUP BY city",
    "count": "SELECT COUNT(*) AS n FROM u [RANGE 30 MILLISECONDS] WHERE v DIV 2 > 1 AND k <> 'k3'",
    "last": "SELECT k, v FROM s [PARTITION BY k ROWS 2]",
    "endless": "SELECT k, MAX(v) AS most FROM u [RANGE UNBOUNDED] GROUP BY k",
    "pairs": "SELECT DISTINCT k, v FROM u [RANGE 15 MILLISECONDS]",
    # It reads the pairs in their shards, but a level later than they are made.
    "pairs_later": "SELECT p.k, p.v FROM (SELECT DISTINCT k, v FROM u [RANGE 15 MILLISECONDS]) AS p JOIN (SELECT k, MAX(v) AS v FROM s [RANGE 30 MILLISECONDS] GROUP BY k) AS h ON p.v = h.v",
    "most": "SELECT MAX(n) AS n FROM (SELECT k, COUNT(*) AS n FROM s [RANGE 20 MILLISECONDS] GROUP BY k) AS t",
}
TOWNS = [{"k": key, "city": f"city {number % 2}"} for number, key in enumerate(f"k{digit}" for digit in range(8))]


def changes_of(result: Any) -> Counter[tuple[Any, ...]]:
    return Counter((change.ts, change.op, tuple(change.row.values())) for change in result.changes)


def test_together_as_each_alone(spark: SparkSession) -> None:
    rows = made_up_rows(4)
    streams = {"s": rows, "u": [{**row, "v": (row["v"] * 7 + 3) % 11} for row in rows[::2]]}
    common: dict[str, Any] = {"relations": {"t": TOWNS}, "batch": 40, "until": 400}
    together = replay_job(QUERIES, streams, runtime="spark", **common)
    for name, sql in QUERIES.items():
        used = {stream: streams[stream] for stream in streams if f" {stream} [" in sql}
        relations = {"relations": common["relations"]} if " t ON" in sql else {"relations": None}
        alone = replay(sql, used, **{**common, **relations})
        assert changes_of(together[name]) == changes_of(alone), name


CATALOG = Catalog()
for _name in ("s", "u"):
    CATALOG.add_stream(_name, parse_schema("ts BIGINT, k STRING, v BIGINT"), "ts")


class Job:
    """A job over files, in one folder per stream, that is run batch by batch and can be started again."""

    def __init__(self, spark: SparkSession, home: Path, queries: dict[str, str]) -> None:
        self._spark, self._home = spark, home
        planned = {name: plan_query(sql, CATALOG, shards=2) for name, sql in queries.items()}
        self.plan: PhysicalPlan = plan_together(planned, 2).physical
        self.made: dict[str, Counter[tuple[Any, ...]]] = {name: Counter() for name in queries}
        self.metrics: list[Any] = []
        self._batches = 0
        for name in ("s", "u"):
            (home / name).mkdir(parents=True)

    def write(self, s: list[dict[str, Any]], u: list[dict[str, Any]]) -> None:
        write_batch(self._home / "s", self._batches, s)
        write_batch(self._home / "u", self._batches, u)
        self._batches += 1

    def run(self, parked: tuple[str, ...] = ()) -> None:
        """Start the job, process the files, and stop it."""
        schema = struct((Field("ts", BIGINT), Field("k", STRING), Field("v", BIGINT)))
        reader = self._spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).options(**FILES_OF_ANY_AGE)
        streams = {name: StreamSource(reader.parquet(str(self._home / name))) for name in ("s", "u")}
        checkpoint = str(self._home / "checkpoint")
        with query_settings(self._spark, 2, checkpoint):
            suspended = Suspended(frozenset(parked), frozenset(parked))
            frame = job_frame(self.plan, QueryInputs(streams), 2, [OutputMode()] * len(self.plan.outputs), suspended)
            query = start_query(frame, self._collect, {}, Trigger("available_now"), checkpoint)
        self.id = str(query.id)
        try:
            query.awaitTermination()
        finally:
            query.stop()

    def _collect(self, batch: DataFrame, number: int) -> None:
        table = batch.toArrow()
        self.metrics.append(total(read_metrics(table)))
        for output, changes in read_output(table, self.plan).items():
            columns = [changes.ts.tolist(), changes.sign.tolist(), *(column.to_pylist() for column in changes.columns)]
            self.made[self.plan.outputs[output].query].update(zip(*columns, strict=True))

    def expected(self, batches: list[tuple[list[dict[str, Any]], list[dict[str, Any]]]]) -> dict[str, Counter[Any]]:
        """The changes that the local runtime makes of these batches."""
        run = LocalRun(self.plan, {}, 2)
        made: dict[str, Counter[Any]] = {name: Counter() for name in self.made}
        for pair in batches:
            rows = {name: _batch(given) for name, given in zip("su", pair, strict=True)}
            for output, changes in enumerate(run.advance_all(rows, {n: int(b.ts.max()) for n, b in rows.items()})):
                columns = [changes.ts.tolist(), changes.sign.tolist(), *(c.to_pylist() for c in changes.columns)]
                made[self.plan.outputs[output].query].update(zip(*columns, strict=True))
        return made


def _batch(rows: list[dict[str, Any]]) -> Any:
    import numpy as np

    from sash.state.changes import ChangeBatch
    from sash.time import FOREVER

    ts = np.array([row["ts"] for row in rows], np.int64)
    columns = [pa.array(ts), pa.array([row["k"] for row in rows]), pa.array([row["v"] for row in rows], pa.int64())]
    return ChangeBatch.stamped(ts, np.full(len(ts), FOREVER), columns)


def pairs(count: int) -> list[tuple[list[dict[str, Any]], list[dict[str, Any]]]]:
    """Batches of two streams, with a row each 100 microseconds."""
    made = []
    for number in range(count):
        start = number * 5_000
        s = [{"ts": start + 100 * i, "k": "abcdef"[(i * 7 + number) % 6], "v": i % 10} for i in range(50)]
        u = [{"ts": start + 200 * i, "k": "abcdef"[(i * 5 + number) % 6], "v": i % 7} for i in range(25)]
        made.append((s, u))
    return made


SHARED = {
    "pairs": "SELECT DISTINCT k, v FROM s [RANGE 12 MILLISECONDS]",
    "values": "SELECT k, COUNT(*) AS n FROM (SELECT DISTINCT k, v FROM s [RANGE 12 MILLISECONDS]) AS t GROUP BY k",
    "sums": "SELECT k, SUM(v) AS total FROM s [RANGE 4 MILLISECONDS] WHERE v > 2 GROUP BY k",
    "joined": "SELECT a.v AS v, b.v AS w FROM s [RANGE 3 MILLISECONDS] AS a JOIN u [RANGE 2 MILLISECONDS] AS b ON a.k = b.k",
    "most": "SELECT MAX(v) AS most FROM u [RANGE 6 MILLISECONDS]",
}


def test_a_restart_without_arenas_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    job, batches = Job(spark, tmp_path, SHARED), pairs(5)
    channels = layout_of(job.plan, 2, share=True).channels.channels
    assert any(isinstance(c.source, StageRows) and c.source.local for c in channels), "an input is local"
    for pair in batches[:3]:
        job.write(*pair)
    job.run()
    for home in Path(tempfile.gettempdir()).glob(f"blockmgr-*/sash/{job.id}"):
        shutil.rmtree(home)
    for pair in batches[3:]:
        job.write(*pair)
    job.run()
    assert job.made == job.expected(batches)
    assert sum(metrics.rebuilt for metrics in job.metrics) >= len(job.plan.stages)
    last = job.metrics[-1]
    assert last.rows_in == 75, "every source is read once"
    assert set(last.stages) == {str(stage.index) for stage in job.plan.stages}
    assert last.outputs["2"]["clock"] == 24_900
    assert {"seconds", "clock", "state_rows", "state_bytes"} <= set(last.stages["0"])


def test_a_parked_query_catches_up(spark: SparkSession, tmp_path: Path) -> None:
    job, batches = Job(spark, tmp_path, SHARED), pairs(6)
    job.write(*batches[0])
    job.run()
    before = {name: Counter(made) for name, made in job.made.items()}
    for pair in batches[1:4]:
        job.write(*pair)
    job.run(parked=("joined", "values"))
    assert job.made["joined"] == before["joined"]
    assert job.made["values"] == before["values"]
    assert job.made["pairs"] == job.expected(batches[:4])["pairs"], "a shared stage goes on"
    for pair in batches[4:]:
        job.write(*pair)
    job.run()
    assert job.made == job.expected(batches)


def test_errors_name_the_queries(spark: SparkSession, tmp_path: Path) -> None:
    queries = {
        **SHARED,
        "leg": "SELECT k, SUM(10 DIV (v - 100)) AS n FROM s [RANGE 4 MILLISECONDS] GROUP BY k",
        "stage": "SELECT k, 10 DIV (SUM(v) - 100000) AS n FROM s [RANGE 4 MILLISECONDS] GROUP BY k",
    }
    job, batches = Job(spark, tmp_path, queries), pairs(3)
    job.write(*batches[0])
    job.run()
    wrong = [*batches[1][0][:-1], {**batches[1][0][-1], "v": 100}]
    job.write(wrong, batches[1][1])
    with pytest.raises(Exception, match=r"DIVIDE_BY_ZERO|by zero") as leg:
        job.run()
    assert failed_queries(leg.value) == ["leg"]
    job.run(parked=("leg",))
    large = [
        {"ts": batches[2][0][0]["ts"], "k": "z", "v": 100_000},
        {"ts": batches[2][0][0]["ts"] + 50_000, "k": "y", "v": 1},
    ]
    job.write(large, batches[2][1])
    with pytest.raises(Exception, match="stage") as stage:
        job.run(parked=("leg",))
    assert failed_queries(stage.value) == ["stage"]
    job.run(parked=("leg", "stage"))
    expected = Job(spark, tmp_path / "others", SHARED).expected(
        [batches[0], (wrong, batches[1][1]), (large, batches[2][1])]
    )
    assert {name: job.made[name] for name in SHARED} == expected, "the others go on"


def test_a_stalled_stream_delays_only_its_readers(spark: SparkSession, tmp_path: Path) -> None:
    job, batches = Job(spark, tmp_path, SHARED), pairs(3)
    job.write(*batches[0])
    job.run()
    stalled = {name: Counter(job.made[name]) for name in ("joined", "most")}
    for number, (s, _) in enumerate(batches[1:], 1):
        write_batch(tmp_path / "s", number, s)
    job.run()
    expected = job.expected(batches)
    assert {name: job.made[name] for name in ("pairs", "values", "sums")} == {
        name: expected[name] for name in ("pairs", "values", "sums")
    }
    assert {name: job.made[name] for name in stalled} == stalled
    for number, (_, u) in enumerate(batches[1:], 1):
        write_batch(tmp_path / "u", number, u)
    job.run()
    assert job.made == expected

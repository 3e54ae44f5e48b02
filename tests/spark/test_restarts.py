"""One job with a query of every kind of state, stopped after every batch: all goes on from what is in the checkpoint.

Every start has arenas of its own, so all shards are rebuilt. What is released is compared batch by batch with the local
runtime, which is never stopped; strategies that wait must go on with what they have learnt.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from sash.engine import Engine
from sash.testing import replay_job
from tests.spark.files import (
    COUNT_WINDOWS,
    ROWS_PER_BATCH,
    SQL,
    TWO_STAGES,
    FolderSink,
    Rows,
    batches_of,
    file_engine,
    made_up_rows,
    write_batch,
)

pytestmark = pytest.mark.spark

BATCHES = 5
WINDOW = "[RANGE 30 MILLISECONDS]"
NESTED = f"(SELECT k, array(v, v + 1) AS both, named_struct('v', v, 'k', k) AS pair FROM s {WINDOW})"
PLAIN = {
    "totals": SQL,
    "totals of a shorter window": "SELECT k, COUNT(*) AS n, SUM(v) AS t FROM s [RANGE 7 MILLISECONDS] GROUP BY k",
    "totals of some rows": f"SELECT k, AVG(v) AS a FROM s {WINDOW} WHERE v > 3 GROUP BY k",
    "two stages": TWO_STAGES,
    "count windows": COUNT_WINDOWS,
    "tumbling windows": "SELECT k, window_end, SUM(v) AS t FROM TUMBLE(TABLE d, DESCRIPTOR(ts), INTERVAL '0.013' SECONDS) GROUP BY k, window_end",
    "sessions": "SELECT k, session_window.start, COUNT(*) AS n FROM d GROUP BY k, session_window(ts, '4 milliseconds')",
    "emitted": "SELECT k, window_end, SUM(v) AS t FROM HOP(TABLE d, DESCRIPTOR(ts), INTERVAL '0.007' SECONDS, INTERVAL '0.021' SECONDS) GROUP BY k, window_end EMIT ON WINDOW CLOSE",
    "emitted sessions": "SELECT k, session_window.end AS e, COUNT(*) AS n FROM d GROUP BY k, session_window(ts, '4 milliseconds') EMIT ON WINDOW CLOSE",
    "own function": f"SELECT k, SUM(doubled(v)) AS t FROM s {WINDOW} GROUP BY k HAVING doubled(COUNT(*)) > 4",
    "own aggregate": f"SELECT k, spread(v) AS w FROM s {WINDOW} GROUP BY k",
    "over": f"SELECT k, v, SUM(v) OVER (PARTITION BY k ORDER BY v, ts ROWS 2 PRECEDING) AS t, LAG(v) OVER (PARTITION BY k ORDER BY ts) AS b FROM s {WINDOW}",
    "first rows": f"SELECT k, v FROM s {WINDOW} QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC) <= 2",
    "not in": f"SELECT k, v FROM s {WINDOW} WHERE v NOT IN (SELECT v FROM s [RANGE 3 MILLISECONDS] WHERE k = 'k3')",
    "scalar subquery": f"SELECT k, v, (SELECT MAX(b.v) FROM s [RANGE 9 MILLISECONDS] AS b WHERE b.k = a.k) AS m FROM s {WINDOW} AS a",
    "nested keys": f"SELECT both, MAX(pair) AS m, COUNT(*) AS n FROM {NESTED} GROUP BY both",
    "exploded": f"SELECT k, x, COUNT(*) AS n FROM {NESTED} LATERAL VIEW explode(both) AS x GROUP BY k, x",
    "rollup": f"SELECT k, v, COUNT(*) AS n FROM s {WINDOW} GROUP BY ROLLUP (k, v)",
    "constants": "SELECT k, COUNT(*) AS n FROM VALUES ('k1'), ('k2'), ('k1') AS f (k) GROUP BY k",
    "constants in two stages": "SELECT n, COUNT(*) AS m FROM (SELECT k, COUNT(*) AS n FROM VALUES (1), (2), (1) AS f (k) GROUP BY k) GROUP BY n",
    "beside constants": f"SELECT k, v FROM s {WINDOW} UNION ALL SELECT 'none', COUNT(*) FROM VALUES (1), (1) AS f (x)",
    "crossed with constants": f"SELECT n, m FROM (SELECT COUNT(*) AS n FROM s {WINDOW}) CROSS JOIN (SELECT MAX(x) AS m FROM VALUES (1), (4) AS f (x))",
    "above a constant": f"SELECT k, v FROM s {WINDOW} WHERE v > (SELECT AVG(x) FROM VALUES (1), (4) AS f (x))",
    "above the average": f"SELECT k, v FROM s {WINDOW} WHERE v > (SELECT AVG(v) FROM s [RANGE 9 MILLISECONDS])",
    "interval join": "SELECT a.v, b.v AS w FROM d AS a JOIN d AS b ON a.k = b.k AND b.ts BETWEEN a.ts AND a.ts + INTERVAL '0.003' SECONDS",
}
PACED: dict[str, tuple[str, dict[str, Any]]] = {
    "input-triggered": (TWO_STAGES, {"strategy": "input-triggered"}),
    "re-evaluation": (TWO_STAGES, {"strategy": "re-evaluation"}),
    "piggyback": (SQL, {"strategy": "piggyback", "patience": 6}),
    "time-probing": (TWO_STAGES, {"strategy": "time-probing", "probe": 7}),
}
"""Queries by strategies of their own, with lengths in milliseconds."""


class Spread:
    """The greatest value less the least, by all values: it has a state to be rebuilt."""

    def init(self) -> list[int]:
        return []

    def add(self, state: list[int], values: pa.Array) -> list[int]:
        return sorted([*state, *values.to_pylist()])

    def remove(self, state: list[int], values: pa.Array) -> list[int]:
        left = Counter(state)
        left.subtract(values.to_pylist())
        return sorted(left.elements())

    def result(self, state: list[int]) -> int:
        return state[-1] - state[0] if state else -1


def doubled(values: pa.Array) -> pa.Array:
    return pc.multiply(values, 2)


def engine_over(spark: SparkSession, folder: Path) -> Engine:
    """An engine whose stream `s` has times that are numbers, and `d` the same rows with dates."""
    engine = file_engine(spark, folder)
    reader = spark.readStream.schema("ts long, k string, v long").option("maxFilesPerTrigger", 1)
    files = reader.option("maxFileAge", "36500d").parquet(str(folder))
    engine.stream("d", files.selectExpr("timestamp_micros(ts) AS ts", "k", "v"))
    engine.aggregate("spread", Spread, "BIGINT")
    engine.function("doubled", doubled, "BIGINT")
    return engine


def lengths_of(options: dict[str, Any], scale: int) -> dict[str, Any]:
    """The options, with lengths as text for an engine (scale 0), or as numbers of microseconds."""
    return {
        name: value if isinstance(value, str) else value * scale if scale else f"{value} milliseconds"
        for name, value in options.items()
    }


def released_locally(rows: Rows) -> dict[str, list[Counter[tuple[Any, ...]]]]:
    """The changes of every query by the micro-batch that releases them."""
    queries = [(name, sql, {}) for name, sql in PLAIN.items()]
    queries += [(name, sql, lengths_of(options, 1000)) for name, (sql, options) in PACED.items()]
    # Each file is a batch of both streams.
    results = replay_job(
        queries,
        {"s": rows, "d": rows},
        unit="us",
        until=rows[-1]["ts"],
        batch=2 * ROWS_PER_BATCH,
        schemas={"d": "ts TIMESTAMP, k STRING, v BIGINT"},
        functions={"doubled": (doubled, "BIGINT")},
        aggregates={"spread": (Spread, "BIGINT")},
    )
    return {
        name: [Counter(written(change) for change in result.changes if change.batch == n) for n in range(BATCHES)]
        for name, result in results.items()
    }


def written(change: Any) -> tuple[Any, ...]:
    return tuple(map(repr, (change.op, int(change.ts), *change.row.values())))


def test_differential_every_kind_of_state_survives_a_restart_after_every_batch(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = made_up_rows(BATCHES)
    sinks = {name: FolderSink(tmp_path / "out" / name) for name in (*PLAIN, *PACED)}
    for number, batch in enumerate(batches_of(rows)):
        write_batch(tmp_path / "in", number, batch)
        engine = engine_over(spark, tmp_path / "in")
        job = engine.job(checkpoint=tmp_path / "checkpoint")
        for name, sql in PLAIN.items():
            job.add(name, sql, sinks[name], mode="changes")
        for name, (sql, options) in PACED.items():
            job.add(name, engine.sql(sql, **lengths_of(options, 0)), sinks[name], mode="changes")
        running = job.start()
        running.process_all()
        assert bool(running.progress()["total_rebuilt"]) == (number > 0)
        running.stop()
        engine.close()
    local = released_locally(rows)
    for name, sink in sinks.items():
        for number, wanted in enumerate(local[name]):
            table = pq.read_table(sink.directory / f"{number}.parquet")
            times = table.column("_ts").cast(pa.int64())
            found = table.set_column(table.column_names.index("_ts"), "_ts", times).to_pylist()
            assert Counter(tuple(map(repr, row.values())) for row in found) == wanted, (name, number)
    in_time = {TWO_STAGES: local["two stages"], SQL: local["totals"]}
    assert [name for name, (sql, _) in PACED.items() if local[name] == in_time[sql]] == ["re-evaluation"]

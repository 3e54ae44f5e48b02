from __future__ import annotations

import urllib.request
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener

import sash
from sash.metrics import batch_metrics
from sash.spark.batch_metrics import METRICS_COLUMN, BatchMetrics
from sash.spark.gather import OBSERVATION_NAME
from sash.spark.progress import Progress
from sash.testing import replay
from tests.spark.files import SQL, TWO_STAGES, batches_of, file_engine, made_up_rows, write_batch

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("sql", [SQL, TWO_STAGES])
def test_differential_operators_are_counted_as_they_are_locally(spark: SparkSession, sql: str) -> None:
    rows = made_up_rows(2)
    local = replay(sql, {"s": rows}, unit="us", batch=40, shards=2)
    on_spark = replay(sql, {"s": rows}, unit="us", batch=40, shards=2, runtime="spark")
    assert on_spark.counts == local.counts
    assert sum(counts.expired for counts in on_spark.counts.values()) > 0


def test_rates_start_at_the_first_batch_with_a_watermark() -> None:
    def entry(batch: int, clock: int | None) -> dict[str, Any]:
        observed = {OBSERVATION_NAME: {METRICS_COLUMN: [BatchMetrics(clock=clock).to_json()]}}
        return {"batchId": batch, "durationMs": {"triggerExecution": 100}, "observedMetrics": observed}

    progress = Progress(["0.0.Aggregate"])
    progress.add([entry(0, None), entry(1, 5_000_000)])
    assert progress.actual().seconds is None
    progress.add([entry(2, 9_000_000)])
    assert progress.actual().seconds == 4


class Listener(StreamingQueryListener):
    """A user's own listener: Spark's events carry the metrics of Sash."""

    def __init__(self) -> None:
        self.received: list[dict[str, Any]] = []

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802
        """Nothing to note."""

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        metrics = batch_metrics(event.progress)
        assert metrics is not None
        self.received.append(metrics)

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        """Nothing to note."""

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        """Nothing to note."""


def test_progress_reaches_callbacks_listeners_and_prometheus(spark: SparkSession, tmp_path: Path) -> None:
    rows = made_up_rows(3)
    for number, batch in enumerate(batches_of(rows)):
        write_batch(tmp_path / "in", number, batch)
    engine = file_engine(spark, tmp_path / "in")
    calls: list[tuple[str, dict[str, Any]]] = []
    engine.on_progress(lambda name, progress: calls.append((name, progress)))
    url = engine.metrics()
    listener = Listener()
    spark.streams.addListener(listener)
    try:
        with pytest.raises(sash.SashError, match="already served"):
            engine.metrics()
        running = engine.sql(SQL).start("noop", trigger="available_now", name="totals")
        running.await_termination()
        progress = running.progress()
        assert progress["total_rows_in"] == len(rows)
        assert progress["state_rows"] >= sum(counts["state_rows"] for counts in running.operators().values()) > 0
        (aggregate,) = [name for name in progress["operators"] if name.endswith("Aggregate")]
        assert 0 < progress["operators"][aggregate]["rows_in"] <= 40
        assert running.operators()[aggregate]["rows_in"] <= len(rows)
        assert set(progress["delay_seconds"]) == {"average", "p50", "p95", "p99", "max"}
        assert set(progress["delay_seconds"].values()) == {None}, "these rows are from 1970"
        assert sum(running.delays()) == running.delay_sum == 0
        assert [entry["batch"] for entry in running.drain_progress()] == [0, 1, 2]
        assert running.drain_progress() == []
        text = urllib.request.urlopen(url).read().decode()
        assert f'sash_rows_in_total{{query="totals"}} {len(rows)}' in text
        assert f'sash_operator_rows_in_total{{query="totals",stage="0",position="{aggregate.split(".")[1]}"' in text
        held = running.operators()[aggregate]["state_bytes"]
        assert f'operator="Aggregate"}} {held}' in text
        assert progress["state_bytes"] >= held == progress["operators"][aggregate]["state_bytes"] > 0
        assert progress["operators"][aggregate]["rows_per_second"] > 0
        assert "sash_batch_delay_seconds{" not in text
        spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
        assert [metrics["late"] for metrics in listener.received] == [0, 0, 0]
        assert progress["state_growth"] == progress["state_rows"] - calls[-2][1]["state_rows"]
        same = {part: seen for part, seen in progress.items() if not part.startswith(("total_", "state_growth"))}
        assert {part: seen for part, seen in listener.received[-1].items() if part in same} == same
        assert sum(metrics["rows_out"] for metrics in listener.received) == progress["total_rows_out"]
        assert [name for name, _ in calls] == ["totals"] * 3
        assert [progress["batch"] for _, progress in calls] == [0, 1, 2]
    finally:
        spark.streams.removeListener(listener)
        engine.close()
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(url)


def test_a_run_is_explained(spark: SparkSession, tmp_path: Path) -> None:
    rows = made_up_rows(3)
    for number, batch in enumerate(batches_of(rows)):
        write_batch(tmp_path / "in", number, batch)
    query = file_engine(spark, tmp_path / "in").sql(SQL)
    running = query.start("noop", trigger="available_now")
    running.await_termination()
    text = running.explain()
    (name,) = [name for name in running.operators() if name.endswith("Aggregate")]
    counts = running.operators()[name]
    assert (
        f"actual: {counts['rows_in']:,} in, {counts['rows_out']:,} ({counts['rows_out_negative']:,} negative) out"
        in text
    )
    assert f"{counts['state_rows']:,} kept" in text
    assert "s of stream time" in text
    assert "actual" not in query.explain()
    again = query.explain(analyze=True)
    assert again == text

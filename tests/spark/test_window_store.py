from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sash.engine import Engine
from sash.errors import (
    CancelledError,
    CatalogError,
    EvaluationError,
    OptionError,
    OverloadedError,
    QueryTimeoutError,
    StoreError,
    UnsupportedSqlError,
)
from sash.testing import replay
from sash.testing.histories import classify
from sash.window_store.execute import SnapshotExecution
from sash.window_store.options import MemoryLimits, SnapshotOptions
from sash.window_store.queries import WindowQueries
from sash.window_store.scheduling.recorder import Recorder
from sash.window_store.store.manifest import Slice
from sash.window_store.sub_windows import Scan, scan_locally
from sash.window_store.summaries.base import Tables
from sash.window_store.summaries.core import Core
from tests.spark.files import Rows, batches_of, file_engine, made_up_rows, write_batch

pytestmark = pytest.mark.spark

PATIENCE = 600.0  # seconds until a test that hangs fails
SQL = "SELECT k, COUNT(*) AS n, SUM(v) AS total FROM s [RANGE 15 MILLISECONDS] GROUP BY k"


def counted(rows: list[dict[str, Any]]) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for row in rows)


def truth(sql: str, rows: Rows, as_of: int) -> Counter[tuple[Any, ...]]:
    return counted(replay(sql, {"s": rows}, unit="us").at(as_of - 1))


def feed(directory: Path, rows: Rows, batches: range) -> None:
    for number in batches:
        write_batch(directory, number, batches_of(rows)[number])


def test_a_kept_stream_answers_while_it_runs_and_goes_on_after_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    rows = made_up_rows(8)
    source, store = tmp_path / "source", str(tmp_path / "store")
    feed(source, rows, range(4))
    for last in (4, 8):
        feed(source, rows, range(last))
        engine = file_engine(spark, source)
        kept = engine.keep("s", window="20 milliseconds", every="5 milliseconds", path=store)
        kept.process_all()
        answer = engine.snapshot(SQL)
        assert answer.as_of == rows[40 * last - 1]["ts"] // 5_000 * 5_000
        assert counted(answer.to_pylist()) == truth(SQL, rows, answer.as_of)
        assert answer.sub_windows_read == 3
        assert counted([row.asDict() for row in answer.to_spark().collect()]) == counted(answer.to_pylist())
        by_jobs = engine.snapshot(SQL, reads="spark", access="WS", isolation="serial")
        assert counted(by_jobs.to_pylist()) == counted(answer.to_pylist())
        progress = kept.progress()
        assert progress["batch"] == last - 1
        assert progress["sub_windows"] == 4
        assert progress["late"] == 0
        kept.stop()
        engine.windows.close()


def test_the_answer_of_a_query_is_queried_like_a_window(spark: SparkSession, tmp_path: Path) -> None:
    rows = made_up_rows(5)
    source = tmp_path / "source"
    feed(source, rows, range(5))
    engine = file_engine(spark, source)
    standing = "SELECT k, COUNT(*) AS n FROM s [RANGE 15 MILLISECONDS] GROUP BY k"
    kept = engine.keep(engine.sql(standing), window="15 milliseconds", every="5 milliseconds", name="counts")
    kept.process_all()
    answer = engine.snapshot("SELECT n, COUNT(*) AS groups, MAX(k) AS last FROM counts GROUP BY n")
    whole = [dict(zip(("k", "n"), row, strict=True)) for row in truth(standing, rows, answer.as_of)]
    expected = Counter(
        (n, len(same), max(same))
        for n in {row["n"] for row in whole}
        if (same := [r["k"] for r in whole if r["n"] == n])
    )
    assert counted(answer.to_pylist()) == expected
    assert answer.as_of > 0
    top = engine.snapshot("SELECT k, n FROM counts ORDER BY n DESC LIMIT 2").to_pylist()
    assert [row["n"] for row in top] == sorted((row["n"] for row in whole), reverse=True)[:2]
    kept.stop()
    engine.windows.close()


@pytest.mark.parametrize(
    ("standing", "ends"),
    [
        ("SELECT a.k, a.v, b.v AS w FROM s [RANGE 15 MILLISECONDS] AS a JOIN s [RANGE 10 MILLISECONDS] AS b ON a.k = b.k AND a.v < b.v", True),
        ("SELECT k, COUNT(*) AS v, SUM(v) AS w FROM s [RANGE 15 MILLISECONDS] GROUP BY k", False),
        ("SELECT a.k, a.v, a.v + 1 AS w FROM s [RANGE 15 MILLISECONDS] AS a LEFT ANTI JOIN (SELECT k FROM s [RANGE 1 MILLISECOND] WHERE v > 7) AS b ON a.k = b.k", True),
    ],
)  # fmt: skip
def test_an_answer_is_read_while_rows_are_inserted_into_it(
    spark: SparkSession, tmp_path: Path, standing: str, ends: bool
) -> None:
    rows, recorder, source = made_up_rows(8), Recorder(), tmp_path / "source"
    feed(source, rows, range(2))
    engine = file_engine(spark, source)
    kept = engine.keep(
        engine.sql(standing), "20 milliseconds", "5 milliseconds", name="kept", path=str(tmp_path / "kept"), recorder=recorder
    )  # fmt: skip
    kept.process_all()
    window = engine.windows.plan("SELECT k FROM kept", SnapshotOptions()).window
    assert window.layout.ends is ends
    arriving = iter(range(2, 8))

    def scan(root: Path, parts: Sequence[Slice], core: Core) -> Tables:
        """Feed more rows after every second read."""
        found = scan_locally(root, parts, core)
        number = next(arriving, None) if len(recorder.history.split()) % 2 else None
        if number is not None:
            feed(source, rows, range(number, number + 1))
            kept.process_all()
        return found

    engine.windows.scans["local"] = lambda _: scan
    for isolation in ("latest", "latest-window-serializable", "window-serializable", "latest"):
        answer = engine.snapshot(
            "SELECT k, v, COUNT(*) AS n, MAX(w) AS w FROM kept GROUP BY k, v", isolation=isolation, access="WS"
        )
        whole = replay(standing, {"s": rows}, unit="us").at(answer.as_of - 1)
        found = Counter((row["k"], row["v"]) for row in whole)
        assert {(row["k"], row["v"]): row["n"] for row in answer.to_pylist()} == found
        assert all(
            row["w"] == max(r["w"] for r in whole if (r["k"], r["v"]) == (row["k"], row["v"]))
            for row in answer.to_pylist()
        )
    done = recorder.history.split()
    assert "window-serializable" in classify(recorder.history, 4, recorder.lengths)
    assert {operation[0] for operation in done} >= set("rwic")
    assert window.manifest.updates > 10
    engine.close()


def test_queries_are_refused_cancelled_and_fail_alone(spark: SparkSession, tmp_path: Path) -> None:
    rows, source = made_up_rows(4), tmp_path / "source"
    feed(source, rows, range(3))
    engine = file_engine(spark, source)
    kept = engine.keep("s", window="20 milliseconds", every="5 milliseconds")
    kept.process_all()
    engine.windows.runner.capacity = 2
    entered, allowed = threading.Semaphore(0), threading.Event()

    def gate(root: Path, parts: Sequence[Slice], core: Core) -> Tables:
        entered.release()
        assert allowed.wait(PATIENCE)
        return scan_locally(root, parts, core)

    plain, engine.windows.scans["local"] = engine.windows.scans["local"], lambda _: gate
    cancelled, slow = (engine.submit(SQL, access="WS") for _ in range(2))
    assert entered.acquire(timeout=PATIENCE)
    with pytest.raises(OverloadedError, match="2 queries are running or waiting, and no more than 2 may"):
        engine.snapshot(SQL)
    cancelled.cancel()
    with pytest.raises(CancelledError, match="cancelled"):
        cancelled.result()
    with pytest.raises(QueryTimeoutError, match="no answer within 0 s"):
        engine.snapshot(SQL, timeout=0)
    allowed.set()
    (answer,) = slow.result()
    assert counted(answer.to_pylist()) == truth(SQL, rows, answer.as_of)
    engine.windows.scans["local"] = plain
    with engine.periodic(SQL) as other:
        next(other)
        with pytest.raises(EvaluationError):
            engine.snapshot("SELECT SUM(1 / (v - v)) AS t FROM s")
        feed(source, rows, range(3, 4))
        kept.process_all()
        (later,) = next(other)
        assert counted(later.to_pylist()) == truth(SQL, rows, later.as_of)
        assert later.update > answer.update
    with pytest.raises(UnsupportedSqlError, match=r"engine.keep\(engine.sql\(...\), name=...\) and query that"):
        engine.snapshot("SELECT a.k FROM s [NOW] AS a JOIN s [NOW] AS b ON a.k = b.k")
    engine.close()


def suspended_after_two_reads(engine: Engine, reads: Any) -> list[SnapshotExecution]:
    """Submit a query of a higher priority after two reads of one of priority 0; it is in the list from then on."""
    plain, urgent = engine.windows.scans[reads], []

    def suspending(priority: int) -> Scan:
        scan, count = plain(priority), iter(range(100))

        def counted_scan(root: Path, parts: Sequence[Slice], core: Core) -> Tables:
            found = scan(root, parts, core)
            if priority == 0 and next(count) == 1:
                urgent.append(engine.submit(SQL, access="WS", priority=10, reads=reads))
            return found

        return counted_scan

    engine.windows.scans[reads] = suspending
    return urgent


LONG = "SELECT k, MAX(v) AS most, COUNT(*) AS n FROM s [RANGE 20 MILLISECONDS] GROUP BY k"


@pytest.mark.parametrize("reads", ["local", "spark"])
def test_a_query_of_higher_priority_suspends_another_before_and_after_a_restart(
    spark: SparkSession, tmp_path: Path, reads: Any
) -> None:
    """After two of its four reads a query is suspended by one of three; it goes on, or reads again where memory is short."""
    rows, source, store = made_up_rows(8), tmp_path / "source", str(tmp_path / "store")
    for last, memory in ((4, 1 << 30), (8, 0)):
        feed(source, rows, range(last))
        recorder, engine = Recorder(), file_engine(spark, source)
        engine.shards = 1  # one read at a time
        kept = engine.keep("s", "20 milliseconds", "5 milliseconds", path=store, recorder=recorder)
        kept.process_all()
        engine.windows.limits = MemoryLimits(suspended=memory)
        urgent = suspended_after_two_reads(engine, reads)
        low = engine.snapshot(LONG, access="WS", priority=0, reads=reads)
        (high,) = urgent[0].result()
        for sql, answer in ((LONG, low), (SQL, high)):
            assert counted(answer.to_pylist()) == truth(sql, rows, answer.as_of)
        done = [step for step in recorder.history.split() if "Q" in step]
        again = 0 if memory else 2
        order = ["rQ1", "rQ1", *["uQ1"] * again, *["rQ2"] * 3, "cQ2", *["rQ1"] * (2 + again), "cQ1"]
        assert [step.split("[")[0] for step in done if step[0] != "u"] == [step for step in order if step[0] != "u"]
        assert sum(step.startswith("uQ1") for step in done) == again
        assert (low.reads_given_up, low.restarts, high.restarts) == (again, 0, 0)
        assert "latest-window-serializable" in classify(recorder.history, 4, recorder.lengths)
        kept.stop()
        engine.windows.close()


def test_the_length_of_sub_windows_changes_while_the_stream_is_kept(spark: SparkSession, tmp_path: Path) -> None:
    rows, source, store = made_up_rows(12), tmp_path / "source", str(tmp_path / "store")
    feed(source, rows, range(3))
    every = "5 milliseconds"
    changed = False
    for last in range(4, 13, 2):
        engine = file_engine(spark, source)
        kept = engine.keep("s", window="20 milliseconds", every=every, path=store)
        kept.process_all()
        if not changed:
            kept.change_every("10 milliseconds")
            every, changed = "10 milliseconds", True
            assert kept.progress()["changing"] == {"every": "0.01 s", "sub_windows": 0, "of": 2}
        feed(source, rows, range(last))
        kept.process_all()
        answer = engine.snapshot(SQL)
        assert counted(answer.to_pylist()) == truth(SQL, rows, answer.as_of)
        changing = "changing" in kept.progress()
        kept.stop()
        engine.windows.close()
    assert not changing
    assert "2 sub-windows of 0.01 s" in answer.explain()


def test_periodic_answers_follow_the_stream(spark: SparkSession, tmp_path: Path) -> None:
    rows = made_up_rows(8)
    source = tmp_path / "source"
    feed(source, rows, range(2))
    engine = file_engine(spark, source)
    kept = engine.keep("s", window="20 milliseconds", every="5 milliseconds", path=str(tmp_path / "store"))
    kept.process_all()
    with engine.periodic(SQL, every=2) as periodic:
        seen = next(periodic)[0]
        for number in range(2, 8):
            write_batch(source, number, batches_of(rows)[number])
            kept.process_all()
            answer = next(periodic)[0]
            assert answer.update >= seen.update + 2
            assert counted(answer.to_pylist()) == truth(SQL, rows, answer.as_of)
            seen = answer
    kept.stop()
    engine.windows.close()


def test_another_reader_attaches_by_path(spark: SparkSession, tmp_path: Path) -> None:
    rows = made_up_rows(3)
    source, store = tmp_path / "source", tmp_path / "store"
    feed(source, rows, range(3))
    engine = file_engine(spark, source)
    kept = engine.keep("s", window=60, every=10, path=str(store))
    kept.process_all()
    other = WindowQueries()
    other.attach("s", store)
    (answer,) = other.submit("SELECT COUNT(*) AS n, SUM(v) AS total FROM s [ROWS 25]", SnapshotOptions()).result()
    complete = sorted((row["ts"], row["k"], row["v"]) for row in rows)[: (len(rows) - 1) // 10 * 10]
    assert answer.to_pylist() == [{"n": 25, "total": sum(v for _, _, v in complete[-25:])}]
    other.close()
    kept.stop()


def test_windows_that_are_not_kept_raise_errors(spark: SparkSession, tmp_path: Path) -> None:
    engine = Engine(spark)
    frame = spark.readStream.format("rate").load().selectExpr("timestamp AS ts", "value")
    engine.stream("s", frame)
    with pytest.raises(StoreError, match="s is not kept"):
        engine.snapshot("SELECT COUNT(*) AS n FROM s [RANGE 1 SECOND]")
    with pytest.raises(CatalogError, match="no stream t to keep"):
        engine.keep("t", window="1 minute", every="1 second")
    with pytest.raises(OptionError, match="whole multiple"):
        engine.keep("s", window="1 minute", every="7 seconds")
    with pytest.raises(CatalogError, match="needs a name"):
        engine.keep(engine.sql("SELECT value FROM s [NOW]"), window="1 minute", every="1 second")
    with pytest.raises(StoreError, match="no window store"):
        engine.attach("s", str(tmp_path))

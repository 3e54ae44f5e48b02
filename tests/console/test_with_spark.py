"""A job on Spark, with its history, its control socket and the console's view of it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sash.console import preview_worker
from sash.console.job_view import JobView
from sash.console.report import JobReport
from sash.control import ControlServer
from sash.engine import Engine
from sash.errors import ControlError, SashError
from sash.history.limits import HistoryLimits
from sash.history.ring import HistoryRing
from sash.history.writer import HistoryWriter
from sash.job_index import JobEntry
from sash.spark.job_history import history_folder
from sash.testing import replay
from tests.spark.files import SQL, batches_of, file_engine, made_up_rows, write_batch

pytestmark = pytest.mark.spark

STREAM = "CREATE STREAM s(ts BIGINT, k STRING, v BIGINT) USING parquet OPTIONS (path 'in');"


class Flaky:
    """A sink that may fail."""

    fails = False

    def __call__(self, frame: Any, number: int) -> None:
        if self.fails:
            raise ValueError("no")


def start(spark: SparkSession, folder: Path, flaky: Flaky) -> tuple[Engine, Any, Any]:
    engine = file_engine(spark, folder / "in")
    engine.history = folder / "run", HistoryLimits()
    job = engine.job(checkpoint=str(folder / "checkpoint"))
    job.add("each", SQL, "changelog", path=str(folder / "each"))
    job.add("last", SQL, "changelog", mode="upsert", key=["k"], path=str(folder / "last"))
    job.add("flaky", SQL, flaky)
    job.keep("s", "40 milliseconds", "10 milliseconds")
    own = engine.sql(SQL).start("changelog", name="own", checkpoint=str(folder / "own"), path=str(folder / "of_own"))
    return engine, job.start(), own


def test_the_console_shows_what_the_job_answers(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = made_up_rows(6)
    batches = batches_of(rows)
    for number, batch in enumerate(batches[:3]):
        write_batch(tmp_path / "in", number, batch)
    flaky = Flaky()
    engine, running, own = start(spark, tmp_path, flaky)
    running.process_all()
    own.process_all()
    own.finish()
    with monkeypatch.context() as patch:  # two sinks get a batch that is not in the history when the job ends
        flaky.fails = True
        patch.setattr(HistoryWriter, "end", lambda *_: None)
        write_batch(tmp_path / "in", 3, batches[3])
        with pytest.raises(SashError, match="no"):
            running.process_all()
    flaky.fails = False
    engine.close()
    for number, batch in enumerate(batches[4:], 4):
        write_batch(tmp_path / "in", number, batch)
    engine, running, own = start(spark, tmp_path, flaky)  # it goes on where it was
    statement = SimpleNamespace(sink="changelog", mode=None)
    session: Any = SimpleNamespace(
        backend=SimpleNamespace(
            jobs=lambda: {running.name: running},
            separate=lambda: {"own": own},
            paused=False,
            catalog=engine.catalog,
            queries=dict,
        ),
        queries={"own": statement},
    )
    report = JobReport(engine, lambda: session, lambda: STREAM)
    running.process_all()
    running.progress()
    own.process_all()
    own.progress()
    files = tmp_path / "run"
    server = ControlServer(files / "control.sock", report.handle)
    entry = JobEntry(
        "shop.sql", 1, str(tmp_path), "2026-01-01 00:00:00 UTC", str(files / "control.sock"), "", str(files / "job.log")
    )
    view = JobView(entry)
    try:
        check_answers(view, rows, "each")
        check_answers(view, rows, "own")
        check_history(history_folder(files, running.name), view)
        check_view(view)
    finally:
        view.close()
        server.close()
        running.stop()
        own.stop()
        engine.close()


def check_answers(view: JobView, rows: list[dict[str, Any]], query: str) -> None:
    """The answer at every instant is that of a replay of all rows; by key, it is that after a batch."""
    result = replay(SQL, {"s": rows}, until=rows[-1]["ts"] + 1, unit="us")
    span = view.span(query)
    assert span["watermark"] == rows[-1]["ts"]
    for at in range(0, span["last"], 977):
        found = view.answer(query, at)
        expected = Counter((row["k"], row["n"], row["total"]) for row in result.at(at))
        assert Counter(map(tuple, found["rows"])) == expected, at
    assert not view.answer(query, span["watermark"])["known"]
    now = view.answer(query)
    assert sorted(view.answer("last")["rows"]) == sorted(now["rows"])
    assert now["columns"] == [
        {"name": "k", "type": "STRING"},
        {"name": "n", "type": "BIGINT"},
        {"name": "total", "type": "BIGINT"},
    ]


def check_history(folder: Path, view: JobView) -> None:
    """Every committed change is there once, over the restart, with the numbers that the sink got."""
    ring = HistoryRing(folder)
    ring.poll()
    parts = ring.changes("each")
    assert parts is not None
    numbers = [part.number for part in parts]
    assert numbers == list(range(len(numbers)))
    assert len(numbers) >= 6
    found, position = [], (0, 0)
    while True:
        some = view.changes("each", position, limit=7)
        if not some["changes"]:
            break
        found += [(one["batch"], one["index"]) for one in some["changes"]]
        position = found[-1][0], found[-1][1] + 1
    every = ring.changes("each")
    assert every is not None
    assert found == [(part.number, index) for part in every for index in range(part.table.num_rows)]


def check_view(view: JobView) -> None:
    queries = {query["name"]: query for query in view.queries()}
    assert set(queries) == {"each", "last", "flaky", "own"}
    assert queries["own"]["state"] == "running"
    assert queries["own"]["total_rows_in"] == 40 * 3
    assert queries["own"]["sink"] == "changelog"
    assert queries["last"]["mode"] == "upsert"
    assert "[RANGE 60 MILLISECONDS]" in queries["each"]["sql"]
    assert queries["each"]["batches"][-1]["rows_in"] == 40
    plan, own = view.plan()
    names = {node["id"] for node in plan["nodes"]}
    assert {"leg:0", "out:each", "out:last"} <= names
    assert own["name"] == "own"
    assert any(node["kind"] == "operator" and node["rows_in"] for node in own["nodes"])
    (counted,) = (node for node in plan["nodes"] if node["label"] == "Aggregate")
    assert sum(shard["rows_in"] for shard in counted["shards"]) == counted["rows_in"]
    assert len(counted["shards"]) >= 2
    assert all(edge["from"] in names and edge["to"] in names for edge in plan["edges"])
    assert any(node["label"] == "Aggregate" and node["rows_in"] and node["seconds"] for node in plan["nodes"])
    assert sum(len(stage["shards"]) for stage in plan["stages"]) >= 2
    assert "Aggregate" in view.explain("each")
    status = view.status()
    assert status["state"] == "running"
    assert status["jobs"][0]["state_bytes"] > 0
    assert 'sash_up{query="each"} 1' in view.metrics()
    (window,) = view.windows()
    assert window["rows"] == sum(part["rows"] for part in window["sub_windows"]) > 0
    snapshot = view.snapshot("SELECT COUNT(*) AS n FROM s [RANGE 20 MILLISECONDS]", "latest")
    assert snapshot["rows"][0][0] > 0
    assert snapshot["read"]["sub-windows"] > 0
    assert [entry["kind"] for entry in view.catalog()] == ["stream", "window"]
    assert view.check("SELECT k FROM s [RANGE 1 SECOND]") == []
    (problem,) = view.check("SELECT nothing FROM s [RANGE 1 SECOND]")
    assert problem["line"] == 1
    assert "not allowed" in view.check("SELECT reflect('a', 'b') FROM s [RANGE 1 SECOND]")[0]["text"]


def test_a_preview_shows_no_more_rows_than_asked_for(spark: SparkSession, tmp_path: Path) -> None:
    rows = made_up_rows(1)
    write_batch(tmp_path / "in", 0, rows)
    script = STREAM.replace("'in'", f"'{tmp_path / 'in'}'") + "CREATE QUERY q AS SELECT k FROM s [ROWS 1] INTO noop;"
    expected = replay(SQL, {"s": rows}, unit="us").at(rows[-1]["ts"] - 1)
    engine = Engine(spark, shards=1)
    try:
        whole, cut = (preview_worker._run(engine, script, SQL, 0, most) for most in (100, 3))
        assert sorted(whole["rows"]) == sorted([row["k"], row["n"], row["total"]] for row in expected)
        assert whole["note"] is None
        assert len(cut["rows"]) == 3
        assert (cut["total"], cut["note"]) == (len(expected), f"the first 3 of {len(expected)} rows")
        assert not any(query.active for query in engine.running.values())
        with pytest.raises(ControlError, match="only one SELECT"):
            preview_worker._run(engine, script, "DROP STREAM s", 0, 3)
    finally:
        engine.close()

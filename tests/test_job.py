from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from sash.change.stored import Completeness
from sash.errors import CheckpointError, OptionError, QueryFailedError, SinkError
from sash.plan.catalog import Catalog
from sash.plan.types import BIGINT, STRING, Field
from sash.planning import PlannedJob, plan_query, plan_together
from sash.sizes import size_in_bytes
from sash.spark.batch_metrics import PARTS, BatchMetrics, combined
from sash.spark.completion import Completion
from sash.spark.folders import Folder
from sash.spark.job_manifest import check_manifest, first_batch, generation_folder, read_manifest
from sash.spark.job_output import JobOutput, OnError
from sash.spark.job_progress import Delivery, JobProgress, scopes
from sash.spark.job_run import Search, leg_suspects
from sash.spark.outbox import Outbox
from sash.spark.parking import Parking
from sash.spark.sinks.base import OutputSpec
from sash.spark.sinks.batch import Batch
from sash.spark.sinks.function import WindowSink

SPEC = OutputSpec((Field("k", STRING),), BIGINT, "changes", None, "one")


def folder(path: Path) -> Folder:
    return Folder(None, str(path))  # type: ignore[arg-type]


def planned(**queries: str) -> PlannedJob:
    catalog = Catalog()
    catalog.add_stream("s", (Field("ts", BIGINT), Field("k", STRING), Field("v", BIGINT)), "ts")
    catalog.add_stream("t", (Field("ts", BIGINT), Field("k", STRING)), "ts")
    return plan_together({name: plan_query(sql, catalog, shards=2) for name, sql in queries.items()}, 2)


@pytest.mark.parametrize("failing", [{"a"}, {"c"}, {"e"}, {"b", "d"}, {"a", "b", "c", "d", "e"}])
def test_a_search_finds_a_query_that_fails(failing: set[str]) -> None:
    search, trials = Search("abcde", QueryFailedError("by zero")), 0
    while search.culprit is None:
        trials += 1
        tried = set("abcde") - search.left_out
        search.learn(failed=bool(tried & failing))
    assert search.culprit in failing
    assert trials <= 3


def test_only_queries_with_expressions_that_may_fail_in_spark_are_suspected() -> None:
    job = planned(
        safe="SELECT k, COUNT(*) AS n FROM s [RANGE 1 SECOND] WHERE v > 2 GROUP BY k",
        divides="SELECT k, SUM(1 / v) AS x FROM s [RANGE 1 SECOND] GROUP BY k",
        filters="SELECT COUNT(*) AS n FROM s [RANGE 1 SECOND] WHERE 1 / v > 2",
        above="SELECT k, 1 / COUNT(*) AS x FROM s [RANGE 1 SECOND] GROUP BY k",
    )
    assert leg_suspects(job.physical) == ["divides", "filters"]


def test_the_metrics_of_a_batch_are_attributed_to_queries() -> None:
    shared = "SELECT DISTINCT k FROM s [RANGE 1 SECOND]"
    job = planned(a=shared, b=shared, c="SELECT k, COUNT(*) AS n FROM t [RANGE 1 SECOND] GROUP BY k")
    progress = JobProgress(job.physical, scopes(job.physical, {"a": ["s"], "b": ["s"], "c": ["t"]}))
    first, second = job.output("a").stage, job.output("c").stage
    assert job.output("b").stage == first
    counts = dict.fromkeys(PARTS, 1)
    parts = [
        BatchMetrics(rows_in=7, bad=1, streams={"s": {"rows_in": 7}}),
        BatchMetrics(rows_in=5, streams={"t": {"rows_in": 5}}),
        BatchMetrics(
            stages={
                str(first): {"seconds": 0.4, "state_bytes": 100, "state_rows": 2},
                str(second): {"seconds": 0.3, "state_bytes": 10, "state_rows": 1},
            },
            outputs={"0": {"clock": 5_000_000}, "1": {"clock": 5_000_000}, "2": {"clock": 3_000_000}},
            operators={name: counts for stage in job.physical.stages for name in stage.operator_names},
            streams={"s": {"late": 2}},
        ),
    ]
    seen: list[str] = []
    progress.on_batch = lambda name, _: seen.append(name)
    deliveries = {"a": Delivery(3, 0.1), "b": Delivery(4, 0.2)}
    progress.record(8, combined(parts), parts, deliveries, {name: name for name in deliveries})
    report: dict[str, Any] = {"batchId": 8, "durationMs": {"triggerExecution": 1000}}
    report["sources"] = [{"endOffset": '{"t": {"0": 7, "1": 4}}', "latestOffset": '{"t": {"0": 9, "1": 4}}'}]
    assert progress.update(report)
    assert not progress.update(report)
    a, b, c = (progress.queries[name].last() for name in "abc")
    assert (a["rows_in"], a["late"], a["bad"], a["rows_out"], a["state_bytes"]) == (7, 2, 1, 3, 100)
    assert (b["state_bytes"], b["rows_out"], b["watermark"]) == (100, 4, 5_000_000)
    assert (c["rows_in"], c["late"], c["bad"], c["state_bytes"], c["watermark"]) == (5, 0, 0, 10, 3_000_000)
    assert [one["share"] for one in (a, b, c)] == [0.3, 0.4, 0.3]
    assert c["lag_seconds"] - a["lag_seconds"] == pytest.approx(2)
    assert [one["backlog_rows"] for one in (a, b, c)] == [2, 2, 2]
    whole = progress.whole.last()
    assert (whole["rows_in"], whole["rows_out"], whole["watermark"]) == (12, 7, 3_000_000)
    assert seen == ["a", "b", "c"]
    assert progress.state_bytes(combined(parts)) == {"a": 100, "b": 100, "c": 10}


def test_the_figures_of_alike_queries_are_their_own() -> None:
    job = planned(
        t="SELECT k, COUNT(*) AS n FROM s [RANGE 1 SECOND] GROUP BY k", c="SELECT DISTINCT k FROM t [RANGE 1 SECOND]"
    )
    progress = JobProgress(job.physical, scopes(job.physical, {"t": ["s"], "c": ["t"]}), first=100)
    for name in ("x", "y"):
        progress.add_alike(name, "t")
    stages = {str(job.output("t").stage): {"seconds": 0.4}, str(job.output("c").stage): {"seconds": 0.3}}
    parts = [BatchMetrics(stages=stages, outputs={"0": {"clock": 5_000_000}, "1": {"clock": 3_000_000}})]
    deliveries = {"x": Delivery(3, 0.2), "c": Delivery(1, 0.1)}
    progress.record(8, combined(parts), parts, deliveries, {"x": "t", "y": "t", "c": "c"})
    assert progress.update({"batchId": 8, "durationMs": {"triggerExecution": 1000}})
    x, y, c = (progress.of(name).last() for name in "xyc")
    assert [one["rows_out"] for one in (x, y, c)] == [3, 0, 1]
    assert [one["share"] for one in (x, y, c)] == [0.4, 0.2, 0.4]
    assert x["lag_seconds"] == y["lag_seconds"] == pytest.approx(c["lag_seconds"] - 2)
    assert [one["share"] for one in progress.of("x").drain()] == [0.4]


def manifest(*queries: tuple[str, str], shards: int = 2) -> dict[str, Any]:
    made = [{"name": name, "sql": sql, "options": {}, "mode": "net", "key": None, "sink": "x"} for name, sql in queries]
    return {"state": 7, "shards": shards, "heartbeats": [], "queries": made}


def test_a_checkpoint_belongs_to_one_job(tmp_path: Path) -> None:
    here = generation_folder(None, str(tmp_path))  # type: ignore[arg-type]
    assert (tmp_path / "CURRENT").read_text() == "g1"
    identity = check_manifest(here, manifest(("a", "1"), ("b", "2")))
    assert check_manifest(here, manifest(("a", "1"), ("b", "2"))) == identity
    other = {**manifest(("a", "1"), ("b", "2"))}
    other["queries"][0]["sink"] = "y"
    assert check_manifest(here, other) == identity
    assert (read_manifest(here) or {})["queries"][0]["sink"] == "y"
    with pytest.raises(CheckpointError, match="written in format 7, and this version of Sash writes format 8"):
        check_manifest(here, {**manifest(("a", "1")), "state": 8})


def test_the_manifest_keeps_what_belongs_to_its_generation(tmp_path: Path) -> None:
    here = generation_folder(None, str(tmp_path))  # type: ignore[arg-type]
    check_manifest(here, manifest(("a", "1")))
    assert first_batch(here) == 0
    here.write("sash-job.json", json.dumps({**(read_manifest(here) or {}), "first_batch": 7}))
    check_manifest(here, manifest(("a", "1")))
    assert first_batch(here) == 7


class Target(WindowSink):
    """A sink that records what it gets, and fails while it is told to."""

    name = "target"

    def __init__(self) -> None:
        super().__init__(self.take)
        self.got: list[tuple[int, list[str]]] = []
        self.problem: Exception | None = None

    def take(self, batch: Batch, number: int) -> None:
        if self.problem is not None:
            raise self.problem
        self.got.append((number, batch.table.column("k").to_pylist()))


def batch(*keys: str, clock: int | None = None) -> Batch:
    columns = [["+"] * len(keys), [1] * len(keys), list(keys)]
    types = [pa.string(), pa.int64(), pa.string()]
    table = pa.table([pa.array(c, t) for c, t in zip(columns, types, strict=True)], names=["_op", "_ts", "k"])
    return to_batch(table, clock)


def to_batch(table: pa.Table, clock: int | None = None) -> Batch:
    made = Batch.of_table(table, SPEC.schema, SPEC.time, None)  # type: ignore[arg-type]
    made.clock = clock
    return made


def output(path: Path, sink: Target, on_error: OnError = "suspend") -> JobOutput:
    parking = Parking(folder(path))
    return JobOutput("q", 0, SPEC, sink, on_error, Outbox(folder(path), "q", SPEC, 1 << 20), parking, to_batch)


def test_a_parked_output_keeps_its_batches_and_resumes_in_order(tmp_path: Path) -> None:
    sink = Target()
    made = output(tmp_path, sink)
    made.put(batch("a"), 0)
    sink.problem = SinkError("full")
    made.put(batch("b"), 1)
    sink.problem = None
    made.put(batch("c"), 2)
    again = output(tmp_path, sink)
    again.put(batch("d"), 3)
    assert sink.got == [(0, ["a"])]
    assert again.resume() == 3
    again.put(batch("e"), 4)
    assert sink.got == [(0, ["a"]), (1, ["b"]), (2, ["c"]), (3, ["d"]), (4, ["e"])]
    assert output(tmp_path, sink).parking["q"] is None


def test_an_output_that_must_not_be_parked_fails_with_its_name(tmp_path: Path) -> None:
    sink = Target()
    sink.problem = SinkError("full")
    made = output(tmp_path, sink, "fail")
    with pytest.raises(SinkError, match="query q: full") as raised:
        made.put(batch("a"), 0)
    assert raised.value.query == "q"
    assert made.parking["q"] is None


def test_an_output_that_waits_until_it_is_complete_gets_everything_then(tmp_path: Path) -> None:
    sink = Target()
    made = output(tmp_path, sink)
    made.completion = Completion(Completeness(100), waits=True)
    made.put(batch("a", clock=None), 0)
    made.put(batch("b", clock=99), 1)
    assert sink.got == []
    made.put(batch("c", clock=100), 2)
    assert sink.got == [(0, ["a"]), (1, ["b"]), (2, ["c"])]


def test_a_window_over_a_new_stream_is_full_some_time_after_its_first_row(tmp_path: Path) -> None:
    first = Completion(Completeness(after=50), False, "q", folder(tmp_path))
    first.learn(None)
    assert first.instant is None
    first.learn(100)
    assert (first.instant, first.reached, first.holds) == (150, False, False)
    again = Completion(Completeness(after=50), True, "q", folder(tmp_path))
    assert (again.instant, again.holds) == (150, True)
    again.learn(150)
    assert again.reached


def test_a_sink_catches_up_with_its_outbox_at_the_start(tmp_path: Path) -> None:
    sink = Target()
    made = output(tmp_path, sink)
    made.outbox.add(3, batch("a").table)
    made.catch_up()
    assert sink.got == [(3, ["a"])]


def test_sizes_have_units() -> None:
    assert size_in_bytes("64 MB", "outbox") == 64 << 20
    for wrong in ("much", "-1 MB", "0", 0, True, None, "1 XB"):
        with pytest.raises(OptionError, match="outbox must be a size"):
            size_in_bytes(wrong, "outbox")

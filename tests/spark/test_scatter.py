from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

import pyarrow as pa
import pytest

from sash.errors import BadRowError
from sash.plan.types import BIGINT, STRING
from sash.spark.layout import Target
from sash.spark.messages import CONTROL, METRICS, SCHEMA, Message, from_frame, to_frames, to_record_batches
from sash.spark.scatter import ClockScatter, Feed, Scatter
from sash.state.encoding import decode
from sash.state.partition_clocks import PartitionReport

LABELS = (2, 0, 14, 3)
TARGETS = (Target(0, (0,), LABELS), Target(3, (), LABELS[:1]))


def scattered(scatter: Scatter, *batches: pa.RecordBatch) -> list[dict[str, object]]:
    return [row for packed in scatter(batches) for row in packed.to_pylist()]


def rows_of(packed: list[dict[str, object]], channel: int) -> Counter[tuple[object, ...]]:
    found: Counter[tuple[object, ...]] = Counter()
    for row in packed:
        if row["channel"] == channel and row["blob"] is not None:
            batch = decode(row["blob"])  # type: ignore[arg-type]
            found.update(zip(batch.ts.tolist(), *(column.to_pylist() for column in batch.columns), strict=True))
    return found


def scatter(*, drop: bool = False) -> Scatter:
    return Scatter("s", 10, drop, counts=True, feeds=(Feed((0, 1), (STRING, BIGINT), TARGETS),))


def leg(ts: list[int | None], ok: list[bool] | None = None) -> pa.RecordBatch:
    columns = {"_ts": pa.array(ts, pa.int64())}
    if ok is not None:
        columns["_ok"] = pa.array(ok)
    columns["c0"] = pa.array([f"k{(t or 0) % 7}" for t in ts])
    columns["c1"] = pa.array([t or 0 for t in ts], pa.int64())
    return pa.RecordBatch.from_pydict(columns)


def test_every_row_reaches_each_target_once_and_equal_keys_one_shard() -> None:
    packed = scattered(scatter(), leg(list(range(50))), leg(list(range(50, 100))))
    everything = Counter((t, f"k{t % 7}", t) for t in range(100))
    assert rows_of(packed, 0) == rows_of(packed, 3) == everything
    shards: dict[object, set[object]] = {}
    for row in packed:
        if row["channel"] == 0 and row["blob"] is not None:
            for key in decode(row["blob"]).columns[0].to_pylist():  # type: ignore[arg-type]
                shards.setdefault(key, set()).add(row["label"])
    assert all(len(labels) == 1 for labels in shards.values())


def test_all_shards_receive_the_clock_even_if_every_row_is_refused() -> None:
    packed = scattered(scatter(), leg([100, 300, 200], ok=[False] * 3))
    clocks = {(row["channel"], row["label"]): row["clock"] for row in packed if row["channel"] != METRICS}
    assert clocks == {**{(0, label): 290 for label in LABELS}, (3, 2): 290}
    assert not rows_of(packed, 0)


def test_the_marks_of_partitions_are_of_all_rows() -> None:
    batch = leg([100, 300, 200], ok=[True, False, True])
    batch = batch.append_column("_part", pa.array(["0", "0", "1"])).append_column("_now", pa.array([7, 7, 7]))
    packed = scattered(replace(scatter(), idle_after=5), batch)
    reports = {str(row["marks"]) for row in packed if row["channel"] != METRICS}
    assert list(map(PartitionReport.from_text, reports)) == [PartitionReport(7, 5, {"0": 290, "1": 190})]


def test_a_stream_without_rows_sends_nothing() -> None:
    assert scattered(scatter()) == []
    assert scattered(scatter(), leg([])) == []


def test_rows_without_a_time_fail_or_are_counted() -> None:
    with pytest.raises(BadRowError, match="stream s has a row whose time column is NULL"):
        scattered(scatter(), leg([1, None]))
    packed = scattered(scatter(drop=True), leg([1, None, 3]))
    (metrics,) = [row for row in packed if row["channel"] == METRICS]
    assert json.loads(str(metrics["metrics"])) == {"rows_in": 3, "bad": 1, "streams": {"s": {"rows_in": 3, "bad": 1}}}
    assert sum(rows_of(packed, 0).values()) == 2


def test_rows_ahead_of_their_batch_are_counted_and_move_no_clock() -> None:
    batch = leg([1, 500, None, 107, 108]).append_column("_now", pa.array([100] * 5))
    packed = scattered(replace(scatter(drop=True), max_jump=7), batch)
    assert sorted(row[0] for row in rows_of(packed, 0).elements()) == [1, 107]
    (metrics,) = [row for row in packed if row["channel"] == METRICS]
    counts = {"rows_in": 5, "bad": 1, "ahead": 2}
    assert json.loads(str(metrics["metrics"])) == {**counts, "streams": {"s": counts}}
    assert {row["clock"] for row in packed if row["channel"] != METRICS} == {97}


def test_a_batch_of_rows_ahead_alone_sends_no_clock() -> None:
    batch = leg([500, 2**63 - 1]).append_column("_now", pa.array([100] * 2))
    packed = scattered(replace(scatter(), max_jump=7), batch)
    assert [row["channel"] for row in packed] == [METRICS]


def test_a_limit_beyond_the_calendar_drops_nothing() -> None:
    batch = leg([-(2**62), 2**62]).append_column("_now", pa.array([2**61] * 2))
    packed = scattered(replace(scatter(), max_jump=2**62), batch)
    assert sum(rows_of(packed, 0).values()) == 2


def test_a_clock_without_rows_reaches_every_shard() -> None:
    scatter_clock = ClockScatter(CONTROL, 0, TARGETS)
    packed = [
        row for batch in scatter_clock([pa.RecordBatch.from_pydict({"_ts": [5, 9]})]) for row in batch.to_pylist()
    ]
    assert {(row["channel"], row["label"], row["clock"], row["kind"]) for row in packed} == {
        *((0, label, 9, CONTROL) for label in LABELS),
        (3, 2, 9, CONTROL),
    }


def test_messages_are_unchanged_by_pandas() -> None:
    messages = [Message(2, 0, clock=-(2**62), blob=b"x"), Message(0, METRICS, metrics='{"late": 3}')]
    assert [m for frame in to_frames(messages) for m in from_frame(frame)] == messages
    (packed,) = to_record_batches(messages)
    assert packed.schema == SCHEMA

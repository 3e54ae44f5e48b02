from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sash.changelog import compaction, last_batch, parts, read_after
from sash.errors import CatalogError, OptionError
from sash.plan.types import BIGINT, STRING, TIMESTAMP, Field
from sash.spark.sinks.base import OutputSpec
from sash.spark.sinks.batch import Batch, WriteBatch
from sash.spark.sinks.changelog import ChangeLog

Change = tuple[str, int, str, int]
SCHEMA = (Field("k", STRING), Field("n", BIGINT))
SPARK: Any = SimpleNamespace(conf=SimpleNamespace(get=lambda _: None))  # all that a small batch asks of a session


def sink(log: Path, mode: Any = "changes", time: pa.DataType = BIGINT, **options: Any) -> WriteBatch:
    return ChangeLog({"path": str(log), **options}).open(OutputSpec(SCHEMA, time, mode, (0,), "one"))


def batch(changes: list[Change], time: pa.DataType = BIGINT) -> Batch:
    op, ts, k, n = zip(*changes, strict=True)
    table = pa.table([op, pa.array(ts).cast(time), k, n], names=["_op", "_ts", "k", "n"])
    return Batch.of_table(table, SCHEMA, time, SPARK)


def made_up(batches: int) -> list[list[Change]]:
    """Counters of five keys, each of which a batch changes at its own instant."""
    rnd = random.Random(0)
    state: dict[str, int] = {}
    found = []
    for number in range(batches):
        changes: list[Change] = []
        for k in rnd.sample("abcde", 2):
            if k in state:
                changes.append(("-", number * 10, k, state.pop(k)))
            if rnd.random() < 0.8:
                state[k] = number
                changes.append(("+", number * 10, k, number))
        found.append(changes or [("+", number * 10, "z", number)])
    return found


def fold(changes: list[Change], at: int) -> Counter[tuple[str, int]]:
    found: Counter[tuple[str, int]] = Counter()
    for op, ts, *row in changes:
        if ts <= at:
            found[row[0], row[1]] += 1 if op == "+" else -1
    assert all(count >= 0 for count in found.values())
    return +found


def logged(log: Path, after: int = -1, upto: int | None = None) -> list[Change]:
    """The changes of some batches, read with Sash."""
    tables = (table for _, table in read_after(log, after, upto))
    return [
        (op, ts, k, n)
        for table in tables
        for op, ts, k, n in zip(
            *(column.to_pylist() for column in table.set_column(1, "_ts", table["_ts"].cast(pa.int64())).columns),
            strict=True,
        )
    ]


@pytest.mark.parametrize("time", [BIGINT, TIMESTAMP])
def test_compaction_keeps_every_change_of_every_batch(tmp_path: Path, time: pa.DataType) -> None:
    batches, log = made_up(130), tmp_path / "log"
    write = sink(log, time=time, compact=10)
    for number, changes in enumerate(batches):
        write(batch(changes, time), number)
        if number % 13 == 0:
            assert logged(log) == [change for part in batches[: number + 1] for change in part]
    assert len(parts(log)) < 13
    assert last_batch(log) == 129
    for after in (-1, 0, 57, 128, 129):
        assert logged(log, after) == [change for part in batches[after + 1 :] for change in part]
    assert logged(log, 20, 33) == [change for part in batches[21:34] for change in part]
    whole = pd.read_parquet(log)  # any reader of Parquet finds every change once
    assert Counter(zip(whole["k"], whole["n"], whole["_op"], strict=True)) == Counter(
        (k, n, op) for part in batches for op, _, k, n in part
    )
    physical = {pq.ParquetFile(path).schema.column(1).physical_type for part in parts(log) for path in part.files}
    assert physical == {"INT64"}


def test_a_batch_that_is_repeated_after_a_compaction_is_in_the_log_once(tmp_path: Path) -> None:
    batches, log = made_up(10), tmp_path / "log"
    for number, changes in enumerate(batches):
        write = sink(log, compact=1)  # a process of its own for every batch
        write(batch(changes), number)
        write(batch(changes), number)
    assert logged(log) == [change for part in batches for change in part]


def test_a_compaction_that_dies_at_any_step_leaves_the_log_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches, log = made_up(9), tmp_path / "log"
    write = sink(log, compact=0)
    for number, changes in enumerate(batches):
        write(batch(changes), number)
    wanted = [change for part in batches for change in part]
    steps: list[tuple[Any, str]] = [
        (pq.ParquetWriter, "write_table"), (os, "link"), (compaction, "_exchange"), (Path, "rename")
    ]  # fmt: skip
    for owner, name in steps:
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                compaction.Compaction(log, 1, None, lambda table: table).run(8)
        assert logged(log) == wanted
        assert len(pd.read_parquet(log)) == len(wanted)
    compaction.Compaction(log, 1, None, lambda table: table).run(9)
    assert logged(log) == wanted
    assert [(part.first, part.last) for part in parts(log)] == [(0, 8)]


def test_a_reader_that_listed_the_log_before_a_compaction_finds_its_files(tmp_path: Path) -> None:
    batches, log = made_up(6), tmp_path / "log"
    write = sink(log, compact=0)
    for number, changes in enumerate(batches):
        write(batch(changes), number)
    reader = read_after(log)
    first = next(reader)[1]
    compaction.Compaction(log, 1, None, lambda table: table).run(5)
    assert len(parts(log)) == 2
    assert first.num_rows + sum(table.num_rows for _, table in reader) == sum(map(len, batches))


def test_a_log_whose_folder_cannot_be_exchanged_stays_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: Path) -> None:
        raise OSError("not on this file system")

    monkeypatch.setattr(compaction, "_exchange", refuse)
    batches, log = made_up(9), tmp_path / "log"
    write = sink(log, compact=3)
    for number, changes in enumerate(batches):
        write(batch(changes), number)
    assert logged(log) == [change for part in batches for change in part]
    assert "is not compacted: not on this file system" in caplog.text


@pytest.mark.parametrize("mode", ["changes", "net", "upsert"])
def test_past_their_retention_changes_are_net_and_the_answer_stays(tmp_path: Path, mode: str) -> None:
    batches, log = made_up(120), tmp_path / "log"
    write = sink(log, mode, compact=10, retain="300 microseconds")
    for number, changes in enumerate(batches):
        write(batch(changes), number)
    every, kept = [change for part in batches for change in part], logged(log)
    assert len(kept) < len(every) // 2
    newest = every[-1][1]
    for instant in range(newest - 300, newest + 1, 10):
        assert fold(kept, instant) == fold(every, instant)
    with pytest.raises(CatalogError, match="replaced by their net changes"):
        logged(log, 20)
    assert logged(log, 110) == [change for part in batches[111:] for change in part]


def test_options_that_cannot_be_kept_are_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="number of batches"):
        ChangeLog({"path": "log", "compact": "often"})
    with pytest.raises(OptionError, match="retain needs compaction"):
        ChangeLog({"path": "log", "compact": 0, "retain": "1 hour"})
    with pytest.raises(OptionError, match="need a local path"):
        sink(Path("hdfs://far/log"), compact=10)

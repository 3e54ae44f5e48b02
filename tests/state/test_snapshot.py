from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest

from sash.physical.nodes import PhysicalPlan, StreamLeg
from sash.plan.catalog import Catalog, StreamEntry
from sash.plan.nodes import Range
from sash.planning import plan_query
from sash.runtime.shard import Shard
from sash.state.changes import ChangeBatch
from sash.state.log import CHUNK_BYTES, InputLog
from sash.state.memory import MappedMemory
from sash.state.snapshot import LOG_BYTES, ArraySnapshot
from sash.time import FOREVER
from tests.runtime.test_rebuild import SCHEMA, Chain, listed, rows
from tests.state.test_log import Store, numbers

QUERIES = {
    "sum": "SELECT k, SUM(x) AS total, AVG(x) AS mean, COUNT(*) AS n FROM s GROUP BY k",
    "whole": "SELECT COUNT(*) AS n, SUM(x) AS total FROM s",
    "distinct": "SELECT DISTINCT k, g FROM s",
    "chain": "SELECT n, COUNT(*) AS c FROM (SELECT k, COUNT(*) AS n FROM s GROUP BY k) GROUP BY n",
    "after_distinct": "SELECT g, COUNT(*) AS c FROM (SELECT DISTINCT k, g FROM s) GROUP BY g",
    "beside_a_window": "SELECT k, COUNT(*) AS n, SUM(x) AS total FROM "
    "(SELECT k, x FROM s UNION ALL SELECT k, x FROM r [RANGE 30 MICROSECONDS]) GROUP BY k",
    "beside_changes": "SELECT DISTINCT k FROM "
    "(SELECT k FROM s WHERE x < 0 UNION ALL SELECT COUNT(*) AS k FROM r [RANGE 30 MICROSECONDS] GROUP BY g)",
}


class SnapshotChain(Chain):
    """A chain whose shards are on files, every stage with logs and a snapshot in a store."""

    def __init__(self, plan: PhysicalPlan, home: Path) -> None:
        super().__init__(plan)
        self.store = Store()
        self.number = numbers()
        self.places = (home / str(index) for index in itertools.count())
        self.memories = [MappedMemory(next(self.places)) for _ in plan.stages]
        self.shards = [Shard(plan, stage, memory, {}) for stage, memory in zip(plan.stages, self.memories, strict=True)]
        self.headers: list[str | None] = [None] * len(plan.stages)

    def load(self, stage: int) -> tuple[ArraySnapshot, list[InputLog]]:
        header = self.headers[stage]
        inputs = self.plan.stages[stage].inputs
        snapshot, logs = (None, [None] * len(inputs)) if header is None else json.loads(header)
        found = []
        for given, directory in zip(inputs, logs, strict=True):
            leg = None if given.leaf.leg is None else self.plan.legs[given.leaf.leg]
            horizon = given.leaf.horizon if isinstance(leg, StreamLeg) and isinstance(leg.window, Range) else None
            dtypes = [field.dtype for field in given.leaf.schema]
            found.append(InputLog(self.store, dtypes, horizon=horizon, directory=directory))
        return ArraySnapshot(self.store, snapshot), found

    def keep(self, taking: bool) -> None:
        """Write what the last batch accepted; and a snapshot instead of all the logs."""
        for stage, memory in enumerate(self.memories):
            snapshot, logs = self.load(stage)
            for log, accepted in zip(logs, self.logs[stage], strict=True):
                log.append(accepted[-1], self.shards[stage].clock, self.number)
            if taking:
                snapshot.write(memory, self.number)
                for log in logs:
                    log.clear()
            self.headers[stage] = json.dumps([snapshot.directory, [log.directory for log in logs]])

    def rebuild(self) -> None:
        for number, stage in enumerate(self.plan.stages):
            clocks = self.shards[number].clocks
            snapshot, logs = self.load(number)
            self.memories[number] = MappedMemory(next(self.places))
            snapshot.load(self.memories[number])
            self.shards[number] = Shard(self.plan, stage, self.memories[number], {})
            self.shards[number].restore([log.load() for log in logs], clocks)


@pytest.mark.parametrize("name", QUERIES)
def test_differential_a_shard_built_again_from_snapshot_and_log(name: str, tmp_path: Path) -> None:
    catalog = Catalog({stream: StreamEntry(stream, SCHEMA, "ts") for stream in ("s", "r")})
    plan = plan_query(QUERIES[name], catalog).physical
    rng = np.random.default_rng(7)
    steady, shaken = Chain(plan), SnapshotChain(plan, tmp_path)
    waited = 0
    for step in range(16):
        start = step * 20
        streams: dict[str, ChangeBatch] = {stream: rows(rng, start, start + 20) for stream in ("s", "r")}
        clock = start + int(rng.integers(0, 20)) if step < 15 else int(FOREVER)
        assert listed(shaken.advance(streams, clock)) == listed(steady.advance(streams, clock)), (name, step)
        shaken.keep(taking=step % 4 == 1)
        if step % 4 != 0:  # straight after a snapshot, and one and two batches later
            waited += shaken.shards[0].waiting
            shaken.rebuild()
        assert [shard.clocks for shard in shaken.shards] == [shard.clocks for shard in steady.shards]
        assert [shard.state_rows for shard in shaken.shards] == [shard.state_rows for shard in steady.shards]
    assert waited, "some rows waited for the clock while their shard was lost"


def test_files_of_any_size_come_back_and_old_chunks_go(tmp_path: Path) -> None:
    store, number = Store(), numbers()
    memory = MappedMemory(tmp_path / "a")
    memory.array("long", np.int64, CHUNK_BYTES // 8 + 3)[:] = np.arange(CHUNK_BYTES // 8 + 3)
    memory.array("exact", np.uint8, CHUNK_BYTES)[-1] = 7
    memory.array("short", np.int8, 1)
    snapshot = ArraySnapshot(store)
    snapshot.write(memory, number)
    first = set(store)
    assert len(first) == 4
    memory.array("short", np.int8, 1)[0] = 5
    snapshot.write(memory, number)
    assert len(store) == 4
    assert not first & set(store)
    assert snapshot.size == sum(len(data) for data in store.values())

    again = MappedMemory(tmp_path / "b")
    ArraySnapshot(store, json.loads(json.dumps(snapshot.directory))).load(again)
    assert again.files == memory.files
    for name, size in memory.files.items():
        assert again.read(name, 0, size) == memory.read(name, 0, size)


def test_due_when_the_log_has_outgrown_the_floor_and_the_last_snapshot() -> None:
    assert not ArraySnapshot(Store()).due(LOG_BYTES)
    assert ArraySnapshot(Store()).due(LOG_BYTES + 1)
    large = ArraySnapshot(Store(), {"size": 3 * LOG_BYTES, "files": []})
    assert not large.due(3 * LOG_BYTES)
    assert large.due(3 * LOG_BYTES + 1)


def test_a_log_that_was_cleared_is_empty() -> None:
    store, number = Store(), numbers()
    batch = rows(np.random.default_rng(1), 0, 20)
    log = InputLog(store, [field.dtype for field in SCHEMA])
    log.append(batch, 0, number)
    assert store
    log.clear()
    assert not store
    assert (log.size, len(log.load())) == (0, 0)

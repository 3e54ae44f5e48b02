"""Rows that a channel keeps to windows of several lengths, in one shard without Spark: batch by batch, stages output what they
output where each keeps its own rows, whatever is lost or parked in between."""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sash import planning
from sash.physical.channels import ScanRows
from sash.physical.nodes import PhysicalPlan
from sash.plan.describe import describe
from sash.spark.header import read_header, write_header
from sash.spark.layout import NONE_SUSPENDED, Suspended, layout_of
from sash.spark.messages import METRICS, OUTPUT, Message
from sash.spark.output import OutputMode
from sash.spark.scatter import pack_rows
from sash.spark.shard_batch import ShardBatch
from sash.spark.stage import StageProcessor
from sash.state.changes import ChangeBatch
from sash.state.encoding import decode
from tests.physical.test_plan_job import planned

SUMS = "SELECT item_id, COUNT(*) AS n, SUM(price) AS t FROM sales [RANGE {0} SECONDS] {1} GROUP BY item_id"
QUERIES = (
    SUMS.format(2, ""),
    SUMS.format(30, ""),
    SUMS.format(9, "WHERE store_id < 3"),
    SUMS.format(20, "WHERE quantity = 1"),
    SUMS.format(15, "").replace("SUM", "MAX"),
)
SECOND = 1_000_000


@dataclass
class State:
    """The state of a shard: what Spark's map state has."""

    chunks: dict[Any, Any] = field(default_factory=dict)

    def getValue(self, key: Any) -> Any:  # noqa: N802
        return self.chunks.get(key)

    def updateValue(self, key: Any, value: Any) -> None:  # noqa: N802
        self.chunks[key] = value

    def removeKey(self, key: Any) -> None:  # noqa: N802
        del self.chunks[key]


class OneShard:
    """A job of one level in one shard."""

    def __init__(self, plan: PhysicalPlan, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self.plan = plan
        self.state = State()
        self.folder = folder
        self._patch = monkeypatch
        self.start(NONE_SUSPENDED)

    def start(self, suspended: Suspended) -> None:
        """Start with these queries parked."""
        self.processor = StageProcessor(
            layout_of(self.plan, 1, share=True, suspended=suspended),
            0,
            {},
            [OutputMode()] * len(self.plan.outputs),
            None,
        )

    def run(
        self, rows: list[tuple[int, int, int, float, int]], clock: int
    ) -> tuple[list[Counter[Any]], dict[str, Any]]:
        """The changes of every query in a batch, and what it measured."""
        self._patch.setenv("SPARK_LOCAL_DIRS", str(self.folder))
        layout = self.processor.layout
        (label,) = layout.labels[0]
        given = list(self._messages(rows, clock, label))
        found = [Counter[Any]() for _ in self.plan.outputs]
        measured: dict[str, Any] = {}
        header = read_header(self.state, layout.channels)  # type: ignore[arg-type]
        batch = ShardBatch(self.processor, label, header, self.state)  # type: ignore[arg-type]
        for message in batch.run({channel.index: given for channel in layout.channels.channels}):
            assert isinstance(message, Message)
            if message.channel == OUTPUT and message.blob is not None:
                part = decode(message.blob)
                columns = [column.to_pylist() for column in part.columns]
                found[message.output].update(zip(part.ts.tolist(), part.sign.tolist(), *columns, strict=True))
            if message.channel == METRICS:
                measured = json.loads(message.metrics or "")
        write_header(self.state, header)  # type: ignore[arg-type]
        return found, measured

    def _messages(self, rows: list[tuple[int, int, int, float, int]], clock: int, label: int) -> Iterator[Message]:
        (channel,), (scan,) = self.processor.layout.channels.channels, self.processor.layout.channels.scans
        assert isinstance(channel.source, ScanRows)
        names = ("ts", "store_id", "item_id", "price", "quantity")
        tests = {"store_id < 3": lambda row: row[1] < 3, "quantity = 1": lambda row: row[4] == 1}
        columns = [
            pa.array([row[names.index(scan.columns[column].expression.name)] for row in rows], dtype)  # type: ignore[attr-defined]
            for column, dtype in zip(channel.source.columns, channel.columns, strict=True)
        ]
        bits = [tests[describe(scan.filters[number][0])] for number in channel.source.filters]
        masks = [sum(1 << bit for bit, test in enumerate(bits) if test(row)) for row in rows]
        ts = np.array([row[0] for row in rows], np.int64)
        batch = ChangeBatch.explicit(ts, np.ones(len(rows), np.int8), [*columns, pa.array(masks, pa.int64())])
        yield from pack_rows(batch, Message(label, channel.index, clock=clock))


@pytest.fixture
def shards(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> tuple[OneShard, OneShard]:
    """The job with rows that are common, and the one whose stages each keep their own."""
    sharing = planned(*QUERIES).physical
    with monkeypatch.context() as patched:
        patched.setattr(planning, "share_windows", lambda plan: plan)
        apart = planned(*QUERIES).physical
    assert [stage.inputs[0].common for stage in sharing.stages] == [True, True, True, True, False]
    assert not any(stage.inputs[0].common for stage in apart.stages)
    return OneShard(sharing, monkeypatch, tmp_path / "common"), OneShard(apart, monkeypatch, tmp_path / "apart")


def batches(seed: int, count: int) -> Iterator[tuple[list[tuple[int, int, int, float, int]], int]]:
    """Rows of each batch with its clock, which some of them are behind or ahead of."""
    rnd, clock = random.Random(seed), 0
    for _ in range(count):
        size = rnd.choice((0, 1, 5, 80))
        before, clock = clock, clock + rnd.choice((0, 1, SECOND // 2, 3 * SECOND, 12 * SECOND))
        rows = [
            (
                rnd.randrange(before - SECOND, clock + SECOND),
                rnd.randrange(6),
                rnd.randrange(9),
                rnd.randrange(99) / 4,
                1,
            )
            for _ in range(size)
        ]
        yield [(max(ts, 0), *rest, rnd.randrange(3)) for ts, *rest, _ in rows], clock  # type: ignore[misc]


EVENTS: dict[str, dict[int, str]] = {
    "nothing happens": {},
    "arenas are lost": {7: "arenas", 20: "arenas"},
    "common rows are lost": {9: "rows", 10: "rows", 25: "rows"},
    "queries are parked": {6: "park b c", 14: "go on", 22: "park a b c d e", 27: "go on"},
    "parked queries lose their arenas": {6: "park b", 9: "arenas", 14: "go on", 18: "arenas"},
    "a parked query is rebuilt": {6: "lose b", 16: "rebuild b", 17: "go on"},
    "a parked query begins again": {6: "lose b", 16: "empty b", 17: "go on"},
}


@pytest.mark.parametrize("what", EVENTS)
def test_differential_common_rows_are_those_that_stages_would_keep(
    shards: tuple[OneShard, OneShard], what: str
) -> None:
    compared = 0
    for number, (rows, clock) in enumerate(batches(len(what), 36)):
        event, *names = EVENTS[what].get(number, "nothing").split()
        chosen = frozenset(names)
        for shard in shards:
            match event:
                case "arenas":
                    shutil.rmtree(shard.folder)
                case "rows":
                    for place in shard.folder.rglob("common-*"):
                        shutil.rmtree(place)
                case "park":
                    shard.start(Suspended(standing=chosen))
                case "lose":
                    shard.start(Suspended(standing=chosen, lost=chosen))
                case "rebuild":
                    shard.start(Suspended(rebuilt=chosen))
                case "empty":
                    shard.start(Suspended(rebuilt=chosen, emptied=chosen))
                case "go":
                    shard.start(NONE_SUSPENDED)
        (common, _), (apart, _) = (shard.run(rows, clock) for shard in shards)
        assert common == apart, (what, number)
        compared += sum(map(len, common))
    assert compared > 500


def test_windows_that_share_rows_need_less_memory(shards: tuple[OneShard, OneShard]) -> None:
    rnd = random.Random(1)
    for number in range(40):
        rows = [
            (
                rnd.randrange(number * SECOND, (number + 1) * SECOND),
                rnd.randrange(6),
                rnd.randrange(9),
                0.5,
                rnd.randrange(2),
            )
            for _ in range(2_000)
        ]
        (_, common), (_, apart) = (shard.run(rows, (number + 1) * SECOND) for shard in shards)
    own = common["stages"]["4"]["state_bytes"]
    assert own == apart["stages"]["4"]["state_bytes"], "MAX keeps its own rows in both"
    assert common["state_bytes"] - own < 0.7 * (apart["state_bytes"] - own)
    sizes = [common["stages"][str(stage)]["state_bytes"] for stage in range(4)]
    assert min(sizes) > max(sizes) / 2, "what is shared counts for every stage that reads it"

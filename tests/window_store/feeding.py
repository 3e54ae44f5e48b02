"""Shared by the tests of window stores: a store that is fed batch by batch, and the expected answers."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from sash.plan.types import BIGINT, DOUBLE, STRING, Field
from sash.testing import replay
from sash.window_store.options import SnapshotOptions
from sash.window_store.periodic import PeriodicQuery
from sash.window_store.queries import WindowQueries
from sash.window_store.scheduling.recorder import Recorder
from sash.window_store.snapshot import Snapshot
from sash.window_store.store.layout import Kind, StoreLayout

SCHEMA = (Field("ts", BIGINT), Field("k", STRING), Field("v", BIGINT), Field("x", DOUBLE))
DDL = "ts BIGINT, k STRING, v BIGINT, x DOUBLE"
Rows = list[dict[str, Any]]


def layout(length: int = 10, count: int = 4, kind: Kind = "time", retain: int = 0) -> StoreLayout:
    return StoreLayout("s", SCHEMA, "ts", kind, length, count, retain)


def table(rows: Rows) -> pa.Table:
    columns = {field.name: pa.array([row[field.name] for row in rows], field.dtype) for field in SCHEMA}
    return pa.table({"_ts": columns["ts"], **columns})


def made_up(seed: int, start: int, stop: int, count: int) -> Rows:
    """Unordered rows with times in [start, stop), with NULLs and with doubles of very different magnitudes."""
    rnd = random.Random(f"{seed}.{start}")
    return [
        {
            "ts": rnd.randrange(start, stop),
            "k": rnd.choice(["a", "b", "c", None]),
            "v": rnd.choice([None, *range(6)]),
            "x": rnd.choice([None, 0.0, -0.0, rnd.uniform(-9, 9), rnd.uniform(-1, 1) * 1e12, 1e-9]),
        }
        for _ in range(count)
    ]


class Fed:
    """A store with its queries, and all rows fed to it."""

    def __init__(
        self,
        root: Path,
        made: StoreLayout | None = None,
        recorder: Recorder | None = None,
        seed: int = 0,
        parallel: int = 1,
    ) -> None:
        self.root = root
        self.queries = WindowQueries(parallel)
        self.writer = self.queries.write(root, made or layout(), recorder)
        self.rows: Rows = []
        self.seed = seed
        self.clock = 0
        self.batch = 0

    def feed(self, until: int, count: int = 20) -> int:
        """Apply one micro-batch that advances the clock to `until`; returns the number of window updates."""
        rows = made_up(self.seed, self.clock, until, count)
        self.rows += rows
        made = self.writer.apply(self.batch, table(rows), until)
        self.batch, self.clock = self.batch + 1, until
        return made

    def snapshot(self, sql: str | list[str], **options: Any) -> list[Snapshot]:
        return self.queries.submit(sql, SnapshotOptions(**options)).result()

    def periodic(
        self,
        sql: str | list[str],
        every: int = 1,
        callback: Callable[[list[Snapshot]], None] | None = None,
        queue: int = 16,
        **options: Any,
    ) -> PeriodicQuery:
        return self.queries.periodic(sql, SnapshotOptions(every=every, priority=0, **options), callback, queue)

    def truth(self, sql: str, as_of: int) -> Counter[tuple[Any, ...]]:
        """The answer of the standing query at the last instant before `as_of`."""
        return truth(self.rows, sql, as_of)

    def close(self) -> None:
        self.queries.close()
        self.writer.close()


def truth(rows: Rows, sql: str, as_of: int) -> Counter[tuple[Any, ...]]:
    """The answer of the standing query over these rows at the last instant before `as_of`."""
    ordered = sorted(rows, key=_order)
    if found := re.search(r"\[ROWS (\d+)\]", sql):
        ordered = [row for row in ordered if row["ts"] < as_of][-int(found[1]) :]
        sql = sql.replace(found[0], "[RANGE 1 SECOND]")
    return counted(replay(sql, {"s": ordered}, unit="us", schemas={"s": DDL}).at(as_of - 1))


def _order(row: dict[str, Any]) -> list[tuple[bool, Any]]:
    """By time, then by all columns, NULLs first."""
    return [(value is not None, value) for value in row.values()]


def counted(rows: Rows) -> Counter[tuple[Any, ...]]:
    """Rows as a bag, compared bit by bit except for NaN."""
    return Counter(tuple("NaN" if value != value else value for value in row.values()) for row in rows)  # noqa: PLR0124

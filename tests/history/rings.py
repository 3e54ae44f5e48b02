"""A history made without Spark: a writer whose tasks are done when `settled` returns, and a reader of the same folder."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from sash.history.limits import HistoryLimits
from sash.history.outputs import KeptQuery
from sash.history.ring import HistoryRing
from sash.history.writer import HistoryWriter
from sash.plan.options import Mode
from sash.time import SECOND

COLUMNS = (("item", "STRING"), ("n", "BIGINT"))


def kept(name: str = "q", mode: Mode = "changes", columns: Sequence[tuple[str, str]] = COLUMNS) -> KeptQuery:
    return KeptQuery(name, mode, (0,) if mode == "upsert" else None, tuple(columns), "timestamp[us]")


def changes(*given: tuple[str, int, str, int]) -> pa.Table:
    """Changes as (op, seconds, item, n)."""
    op, ts, item, n = zip(*given, strict=True) if given else ((), (), (), ())
    return pa.table(
        {
            "_op": pa.array(op, pa.string()),
            "_ts": pa.array([t * SECOND for t in ts], pa.int64()).cast(pa.timestamp("us")),
            "item": pa.array(item, pa.string()),
            "n": pa.array(n, pa.int64()),
        }
    )


class WrittenHistory:
    """A job's side of a history. Its clock moves by assignment only."""

    def __init__(self, folder: Path, limits: HistoryLimits | None = None, now: float = 1000.0) -> None:
        self.folder, self.now = folder, now
        self.writer = HistoryWriter(folder, limits or HistoryLimits(), lambda: self.now)
        self.ring = HistoryRing(folder)

    def open(self, *queries: KeptQuery, fresh: bool = False, switched: int | None = None) -> WrittenHistory:
        self.writer.open(queries or (kept(),), fresh=fresh, switched=switched)
        return self

    def batch(
        self,
        number: int,
        clock: int,
        given: dict[str, pa.Table | None],
        *,
        net: Collection[str] = (),
        commit: bool = True,
    ) -> None:
        self.writer.begin(number)
        for name, table in given.items():
            self.writer.add(name, number, table, clock * SECOND, net=name in net)
        self.writer.end(number)
        if commit:
            self.writer.commit(number)

    def settled(self) -> HistoryRing:
        """The reader, after all that was submitted is written."""
        assert self.writer.settle(60)
        self.ring.poll()
        return self.ring

    def close(self) -> None:
        self.writer.close()


def rows(ring: HistoryRing, query: str = "q", at: int | None = None) -> list[dict[str, Any]] | str:
    """The answer of a query at a second, without `_op` and `_ts`, or the reason why it is not known."""
    found = ring.answer(query, None if at is None else at * SECOND)
    if found.reason is not None:
        return found.reason
    listed = [] if found.rows is None else found.rows.drop_columns(["_op", "_ts"]).to_pylist()
    return sorted(listed, key=lambda row: str(sorted(row.items())))


def listed(
    ring: HistoryRing, query: str = "q", after: tuple[int, int] | None = None
) -> list[tuple[int, int, str]] | None:
    """The changes after a position as (batch, index, item)."""
    found = ring.changes(query, after)
    if found is None:
        return None
    return [
        (part.number, part.index + index, item)
        for part in found
        if part.table.num_rows
        for index, item in enumerate(part.table.column("item").to_pylist())
    ]

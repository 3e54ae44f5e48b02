"""The histories of a job's dataflows, as answers and changes of its queries."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from sash.console.values import rows_of
from sash.errors import NotKeptError
from sash.history.answers import ADDED, counted
from sash.history.outputs import KeptQuery, Position
from sash.history.ring import HistoryRing, KeptAnswer

Values = dict[str, Any]

NO_HISTORY = "no history is kept: the job was started with --history off, or has not finished a batch"


class KeptHistory:
    """The histories in a run folder, one for each dataflow. May be used from several threads."""

    def __init__(self, run_folder: Path) -> None:
        self._folder = run_folder / "history"
        self._rings: dict[str, HistoryRing] = {}
        self._lock = threading.Lock()

    def poll(self) -> int:
        """Take in what is new; return a number that grows with it."""
        with self._lock:
            names = sorted(path.name for path in self._folder.iterdir()) if self._folder.is_dir() else []
            if names != list(self._rings):
                self._rings = {name: self._rings.get(name) or HistoryRing(self._folder / name) for name in names}
            for ring in self._rings.values():
                ring.poll()
            return sum(ring.version for ring in self._rings.values())

    def ring(self, query: str) -> tuple[HistoryRing, KeptQuery]:
        """The history that has a query; if several have one of its name, that which was written to last."""
        self.poll()
        found = [(ring, kept) for ring in list(self._rings.values()) if (kept := ring.queries.get(query)) is not None]
        if found:
            return max(found, key=lambda one: one[0].written)
        known = sorted(self.queries())
        raise NotKeptError(
            f"no history is kept of query {query}; there is one of {', '.join(known)}" if known else NO_HISTORY
        )

    def queries(self) -> dict[str, list[Values]]:
        """The columns of the queries, by name."""
        self.poll()
        return {name: columns_of(query) for ring in self._rings.values() for name, query in ring.queries.items()}

    def answer(self, query: str, at: int | None, limit: int) -> Values:
        """The answer of a query as the pages show it."""
        ring, kept = self.ring(query)
        found = ring.answer(query, at)
        rows, counts, total = _listed(found, limit)
        return {
            "columns": columns_of(kept),
            "rows": rows,
            "counts": counts,
            "as_of": found.as_of,
            "watermark": found.watermark,
            "total": total,
            "known": found.reason is None,
            "reason": found.reason,
            "position": found.position,
            "mode": kept.mode,
        }

    def changes(self, query: str, after: Position | None, limit: int) -> Values:
        """The last changes of a query, or those after a position, at most `limit`."""
        ring, _ = self.ring(query)
        parts = ring.changes(query, after)
        if parts is None:
            return {"changes": [], "last": None, "restart": True}
        found: list[Values] = []
        for part in parts:
            if not part.table.num_rows:
                continue
            table = part.table if after is None else part.table.slice(0, limit - len(found))
            times = table.column(1).cast("int64").to_pylist()
            ops, rows = table.column(0).to_pylist(), rows_of(table.select(range(ADDED, table.num_columns)))
            found += [
                {"batch": part.number, "index": part.index + place, "ts": ts, "op": op, "row": row}
                for place, (ts, op, row) in enumerate(zip(times, ops, rows, strict=True))
            ]
            if after is None:
                found = found[-limit:]
            elif len(found) >= limit:
                break
        return {"changes": found, "last": [found[-1]["batch"], found[-1]["index"]] if found else None, "restart": False}

    def span(self, query: str) -> Values:
        """The first and the last instant at which the answer is known."""
        ring, _ = self.ring(query)
        first, last = ring.span(query)
        return {"first": first, "last": last, "watermark": ring.watermark(query)}


def columns_of(query: KeptQuery) -> list[Values]:
    """The columns of a query with their types."""
    return [{"name": name, "type": kind} for name, kind in query.columns]


def _listed(found: KeptAnswer, limit: int) -> tuple[list[list[Any]], list[int], int]:
    """The first rows of an answer, how often each occurs, and how many rows there are."""
    if found.rows is None:
        return [], [], 0
    rows, counts = counted(found.rows)
    return rows_of(rows.slice(0, limit)), counts[:limit], sum(counts)

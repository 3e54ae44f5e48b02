"""A small model of a job for the pages: sales in a sliding window of a minute, summed by item, without Spark."""

from __future__ import annotations

import random
import re
from typing import Any

from sash.console.kept import NO_HISTORY
from sash.errors import NotKeptError, OptionError, SqlSyntaxError
from tests.console import hostile

SECOND = 1_000_000
START = 1_700_000_000 * SECOND
WINDOW = 60
HOSTILE = "<script>document.title='hacked'</script>"
ITEMS = ["apples", "bread", "coffee", "dates", HOSTILE]
SQL = "SELECT item, SUM(price) AS total, COUNT(*) AS sales\nFROM sales [RANGE 1 MINUTE]\nGROUP BY item"
COLUMNS = [{"name": "item", "type": "string"}, {"name": "total", "type": "double"}, {"name": "sales", "type": "bigint"}]

Sale = tuple[int, str, float]


class FakeView:
    """Time moves by `advance` only. Answers are computed from the sales in the window, changes from two answers."""

    name = "shop"
    checkpoint = "/data/shop"

    def __init__(self, allow_changes: bool = False, begun: int = START, polite: bool = False) -> None:
        self.polite = polite
        self.items = [*ITEMS[:-1], "eggs"] if polite else ITEMS
        self.allow_changes = allow_changes
        self.begun = begun
        self.now = 0
        self.sales: list[Sale] = []
        self.log: list[dict[str, Any]] = []
        self.batches: list[dict[str, Any]] = []
        self.added: list[str] = []
        self.broken = self.stopped = False
        self._random = random.Random(7)
        for _ in range(90):
            self.advance()

    def advance(self) -> None:
        """A second passes: sales arrive, old ones leave. No bread is sold in every other minute."""
        before = self._answer(self.now)
        self.now += 1
        pick = self._random
        items = [item for item in self.items if item != "bread" or self.now // WINDOW % 2 == 0]
        sold = [(self.now, pick.choice(items), round(pick.uniform(1, 20), 2)) for _ in range(pick.randint(1, 4))]
        self.sales += sold
        after = self._answer(self.now)
        changes = [("-", row) for item, row in before.items() if after.get(item) != row]
        changes += [("+", row) for item, row in after.items() if before.get(item) != row]
        for index, (op, row) in enumerate(changes):
            self.log.append(
                {"batch": self.now, "index": index, "ts": self.begun + self.now * SECOND, "op": op, "row": row}
            )
        self.batches.append(
            {
                "time": self.begun + self.now * SECOND,
                "batch": self.now,
                "batch_ms": 240 + pick.randint(0, 90),
                "rows_in": len(sold),
                "rows_out": len(changes),
                "state_bytes": 2_000 * self._live(self.now),
                "state_rows": self._live(self.now),
                "lag_seconds": 1.2 + pick.random(),
            }
        )

    def _live(self, at: int) -> int:
        return sum(at - WINDOW < ts <= at for ts, _, _ in self.sales)

    def _answer(self, at: int) -> dict[str, list[Any]]:
        found: dict[str, list[Any]] = {}
        for ts, item, price in self.sales:
            if at - WINDOW < ts <= at:
                row = found.setdefault(item, [item, 0.0, 0])
                row[1], row[2] = round(row[1] + price, 2), row[2] + 1
        return dict(sorted(found.items()))

    def status(self) -> dict[str, Any]:
        last = self.batches[-1]
        if self.broken:
            raise RuntimeError("the run folder is <gone>")
        return {
            "name": self.name,
            "state": "stopped" if self.stopped else "running",
            "since": self.begun,
            "trigger_seconds": 1,
            "jobs": [
                {
                    **last,
                    "name": "shop",
                    "rows_per_second": last["rows_in"],
                    "total_late": 3,
                    "total_bad": 1,
                    "total_ahead": 0,
                }
            ],
            "backlog_rows": None,
            "backlog_files": 3,
            "catch_up_seconds": 1.5,
            "errors": [
                {
                    "time": self.begun + 42 * SECOND,
                    "query": "totals",
                    "text": "row without a time was dropped",
                    "row": ["dates", None, self.items[-1]],
                }
            ],
            "batches": self.batches[-120:],
        }

    def queries(self) -> list[dict[str, Any]]:
        last = self.batches[-1]
        shared = {
            "state": "running",
            "complete": True,
            "watermark": self.begun + self.now * SECOND,
            "batches": self.batches[-120:],
        }
        totals = {
            "total_rows_in": len(self.sales),
            "total_rows_out": len(self.log),
            "total_late": 3,
            "total_bad": 1,
            "columns": COLUMNS,
            "error": None,
        }
        first = {
            **last,
            **shared,
            **totals,
            "name": "totals",
            "sql": SQL,
            "sink": "memory",
            "mode": "changes",
            "share": 0.62,
        }
        hard = {
            **first,
            "name": hostile.NAME,
            "sql": hostile.SQL,
            "columns": hostile.COLUMNS,
            "share": None,
            "error": hostile.ERROR,
        }
        return [
            first,
            {
                **first,
                "name": "alerts",
                "state": "parked since batch 12: the sink refused a connection",
                "share": 0.38,
                "error": "connection refused",
            },
            *([] if self.polite else [hard]),
        ]

    def answer(self, query: str, at: int | None = None, limit: int = 500) -> dict[str, Any]:
        self._check_kept(query)
        if query == hostile.NAME:
            return hostile.answer(self.begun + self.now * SECOND, limit)
        moment = self.now if at is None else (at - self.begun) // SECOND
        known = moment <= self.now
        rows = list(self._answer(moment).values()) if known else []
        return {
            "columns": COLUMNS,
            "rows": rows[:limit],
            "counts": [1] * len(rows[:limit]),
            "as_of": self.begun + self.now * SECOND if at is None else at,
            "watermark": self.begun + self.now * SECOND,
            "total": len(rows),
            "known": known,
            "reason": None if known else "not yet known",
        }

    def changes(self, query: str, after: tuple[int, int] | None = None, limit: int = 200) -> dict[str, Any]:
        self._check_kept(query)
        if query == hostile.NAME:
            return hostile.changes(self.begun + self.now * SECOND)
        found = (
            self.log[-limit:] if after is None else [c for c in self.log if (c["batch"], c["index"]) > after][:limit]
        )
        return {"changes": found, "last": [found[-1]["batch"], found[-1]["index"]] if found else None, "restart": False}

    @staticmethod
    def _check_kept(query: str) -> None:
        if query == "alerts":
            raise NotKeptError(NO_HISTORY)

    def span(self, query: str) -> dict[str, Any]:
        self._check_kept(query)
        return {
            "first": self.begun + SECOND,
            "last": self.begun + self.now * SECOND,
            "watermark": self.begun + self.now * SECOND,
        }

    def plan(self) -> list[dict[str, Any]]:
        if self.stopped:
            return []

        def operator(name: str, stage: int, label: str, detail: str, seconds: float, shared: int = 1) -> dict[str, Any]:
            kept = self._live(self.now)
            counts = {
                "rows_in": len(self.sales),
                "rows_out": len(self.log),
                "state_rows": kept,
                "state_bytes": 900 * kept,
            }
            return {
                "id": name,
                "label": label,
                "detail": detail,
                "stage": stage,
                "kind": "operator",
                "shared": shared,
                "seconds": seconds,
                "shards": [
                    {"shard": s, **{part: n // 4 for part, n in counts.items()}, "seconds": seconds * share}
                    for s, share in enumerate((0.2, 0.2, 0.5, 0.1))
                ],
                **counts,
            }

        legs = [
            {
                "id": f"leg:{i}",
                "label": n,
                "detail": d,
                "kind": "leg",
                "stage": None,
                "shared": 2 - i,
                "rows_per_second": 2.5,
            }
            for i, (n, d) in enumerate([("sales", "RANGE 1 MINUTE, price > 0"), ("returns", "RANGE 1 MINUTE")])
        ]
        return [
            {
                "name": "shop",
                "legs": [],
                "nodes": [
                    *legs,
                    operator("0.0.Minus", 0, "Minus", "sales EXCEPT returns", 0.021, 2),
                    operator("1.0.Aggregate", 1, "Aggregate", "SUM(price), COUNT(*) BY item", 0.094),
                    operator("2.0.Join", 2, "Join", "sales.item = limits.item", 0.052),
                    operator("2.1.TopK", 2, "TopK", "ORDER BY price LIMIT 10", 0.008),
                    {
                        "id": "out:totals",
                        "label": "totals",
                        "detail": "memory",
                        "kind": "output",
                        "stage": None,
                        "rows_per_second": 4.0,
                    },
                    {
                        "id": "out:alerts",
                        "label": "alerts",
                        "detail": "kafka",
                        "kind": "output",
                        "stage": None,
                        "rows_per_second": 1.0,
                    },
                ],
                "edges": [
                    {"from": a, "to": b, "pattern": p, "expiry": e, "rows_per_second": r}
                    for a, b, p, e, r in (
                        ("leg:0", "0.0.Minus", "WKS", "fifo", 2.5),
                        ("leg:1", "0.0.Minus", "WKS", "fifo", 0.1),
                        ("0.0.Minus", "1.0.Aggregate", "STR", "explicit", 2.4),
                        ("0.0.Minus", "2.0.Join", "STR", "explicit", 2.4),
                        ("2.0.Join", "2.1.TopK", "STR", "explicit", 3.0),
                        ("1.0.Aggregate", "out:totals", "STR", "explicit", 4.0),
                        ("2.1.TopK", "out:alerts", "STR", "explicit", 1.0),
                    )
                ],
                "stages": [
                    {
                        "index": i,
                        "partition": key,
                        "strategy": "auto",
                        "seconds": 0.1,
                        "shards": [{"shard": s, "seconds": t, "state_rows": 9} for s, t in enumerate(times)],
                    }
                    for i, (key, times) in enumerate(
                        [("item", [0.005] * 4), ("item", [0.01, 0.012, 0.065, 0.007]), ("item", [0.015] * 4)]
                    )
                ],
                "choices": [
                    {
                        "time": self.begun + 30 * SECOND,
                        "operator": "2.0.Join",
                        "choice": "probe limits first",
                        "reason": "fewer matches per row",
                    }
                ],
            }
        ]

    def explain(self, query: str) -> str:
        return f"Plan of {query}\n  Aggregate  SUM(price), COUNT(*) BY item\n    Leg sales [RANGE 1 MINUTE]\n"

    def windows(self) -> list[dict[str, Any]]:
        if self.stopped:
            return []
        begin = self.begun + (self.now - WINDOW) * SECOND
        parts = [
            {
                "number": self.now // 5 + i - 11,
                "begin": begin + i * 5 * SECOND,
                "end": begin + (i + 1) * 5 * SECOND,
                "rows": n,
                "bytes": 64 * n,
                "state": "current" if i == 11 else "full",
            }
            for i in range(12)
            for n in [sum(0 < ts - (self.now - WINDOW + i * 5) <= 5 for ts, _, _ in self.sales)]
        ]
        rows = self._live(self.now)
        last = self.now // 5
        versions = {"done": [last - 2, last - 1, last], "reading": [last - 3], "next": [last - 4, last - 5]}
        read = {
            "id": 1,
            "sql": "SELECT MAX(price) FROM sales [RANGE 30 SECONDS]",
            "isolation": "ttu",
            "priority": 0,
            "waits_for": None,
        }
        return [{
            "name": "sales", "path": "/data/shop/windows/sales", "length": WINDOW * SECOND, "every": 5 * SECOND, "unit": "us",
            "watermark": self.begun + self.now * SECOND, "updates": self.now // 5, "due": self.begun + (self.now // 5 + 1) * 5 * SECOND,
            "rows": rows, "bytes": 64 * rows, "late": 3, "freshness_seconds": float(self.now % 5), "sub_windows": parts,
            "reads": [{**read, "state": "reading", "read": 3, "of": 6, "seconds": 0.012, "versions": versions}], "aborts": 1, "completed": 17,
        }]  # fmt: skip

    def snapshot(self, sql: str, isolation: str, timeout: float = 10, limit: int = 500) -> dict[str, Any]:
        if "sales" not in sql:
            raise OptionError("a snapshot reads a kept window: write FROM sales")
        found = self.answer("totals", limit=limit)
        return {
            **found,
            "access": "scan of sub-windows",
            "read": {"sub-windows": 12, "rows": self._live(self.now)},
            "seconds": 0.018,
            "aborts": 0,
        }

    def preview(self, sql: str, seconds: float = 5, rows: int = 500) -> dict[str, Any]:
        problems = self.check(sql)
        if problems:
            raise SqlSyntaxError(problems[0]["text"], problems[0]["line"], problems[0]["column"])
        return {**self.answer("totals", limit=rows), "changes": 12, "note": None}

    def check(self, sql: str) -> list[dict[str, Any]]:
        found = re.search(r"\bFRM\b", sql)
        if found is None:
            return []
        line = sql.count("\n", 0, found.start())
        column = found.start() - (sql.rfind("\n", 0, found.start()) + 1)
        return [{"line": line + 1, "column": column + 1, "length": 3, "text": "unexpected FRM; did you mean FROM?"}]

    def catalog(self) -> list[dict[str, Any]]:
        columns = [{"name": n, "type": t} for n, t in (("ts", "timestamp"), ("item", "string"), ("price", "double"))]
        return [
            {"name": "sales", "kind": "stream", "columns": columns},
            {"name": "returns", "kind": "stream", "columns": columns[:2]},
        ]

    def add(self, sql: str) -> str:
        problems = self.check(sql)
        if problems:
            raise SqlSyntaxError(problems[0]["text"], problems[0]["line"], problems[0]["column"])
        self.added.append(sql)
        return f"Created query: {sql.split()[2]}"

"""What is known of a query's batches: read from Spark's reports, the counts that it observed among them, and summed up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sash.physical.analyze import Actual
from sash.physical.shard import BEGINNING, Counts
from sash.spark.counts import EDGES, PARTS, added, counts_of, percentile, read
from sash.state.changes import FOREVER

METRICS = "sash"
"""The name under which Spark reports what it observed, to its listeners too."""

_SUMMED = ("rows_in", "rows_out", "late", "bad", "rebuilt")
_PERCENTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}


class Progress:
    """Of one query with these operators, since its start."""

    def __init__(self, operators: Sequence[str]) -> None:
        self._names = list(operators)
        self._totals = dict.fromkeys(_SUMMED, 0)
        self._operators = {name: dict.fromkeys(PARTS, 0) for name in operators}
        self._counted = -1
        self._last: dict[str, Any] = {"batch": None}
        self._first: tuple[int, dict[str, Counts]] | None = None
        self.delays: tuple[int, ...] = (0,) * (len(EDGES) + 1)
        self.delay_sum = 0.0

    def take(self, entries: Sequence[Any]) -> list[dict[str, Any]]:
        """Count the batches of Spark's reports that are new; their progress."""
        fresh = []
        for entry in entries:
            if METRICS in entry["observedMetrics"] and entry["batchId"] > self._counted:
                self._counted = entry["batchId"]
                self._count(entry)
                fresh.append(self.last())
        return fresh

    def last(self) -> dict[str, Any]:
        """The last batch, and the totals."""
        return {**self._last, **{f"total_{part}": count for part, count in self._totals.items()}}

    def operators(self) -> dict[str, dict[str, int]]:
        """The totals of every operator, and its rows in state now."""
        return {name: dict(counts) for name, counts in self._operators.items()}

    def actual(self) -> Actual:
        """What the operators did, for EXPLAIN ANALYZE."""
        counts = {name: counts_of(seen) for name, seen in self._operators.items()}
        rows = {name: seen["state_rows"] for name, seen in self._operators.items()}
        held, clock = self._last.get("state_bytes", 0), self._last.get("clock")
        if self._first is None or clock is None or clock <= self._first[0]:
            return Actual(counts, rows, held)
        return Actual(counts, rows, held, seconds=(clock - self._first[0]) / 1e6, before=self._first[1])

    def _count(self, entry: Any) -> None:
        seen = entry["observedMetrics"][METRICS]
        reading = read(self._names, seen) if self._names else None
        millis = entry["durationMs"].get("triggerExecution") or 0
        for part in _SUMMED:
            self._totals[part] += seen[part] or 0
        rows = seen["rows_in"] or 0
        self._last = {
            "batch": entry["batchId"],
            "batch_ms": millis,
            "clock": seen["clock"],
            **({"joins": seen["remark"]} if seen["remark"] else {}),
            **{part: seen[part] or 0 for part in (*_SUMMED, "state_rows", "state_bytes")},
            "rows_per_second": _rate(rows, millis),
        }
        if reading is None:
            return
        self._last["expired"] = sum(counts["expired"] for counts in reading.operators.values())
        self._last["delay_seconds"] = {
            "average": reading.delay_average,
            **{name: percentile(reading.delays, share) for name, share in _PERCENTILES.items()},
            "max": reading.delay_longest,
        }
        self._last["switches"] = reading.switches
        self._last["operators"] = {name: _with_rate(counts, millis) for name, counts in reading.operators.items()}
        self.delay_sum += reading.delay_sum
        self.delays = tuple(a + b for a, b in zip(self.delays, reading.delays, strict=True))
        for name, counts in reading.operators.items():
            self._operators[name] = added(self._operators[name], counts)
        clock = seen["clock"]  # None as long as a stream has brought nothing
        if self._first is None and clock is not None and BEGINNING < clock < FOREVER:
            self._first = clock, {name: counts_of(counts) for name, counts in self._operators.items()}


def _rate(rows: int, millis: int) -> float | None:
    return round(1000 * rows / millis, 1) if millis else None


def _with_rate(counts: dict[str, int], millis: int) -> dict[str, int | float | None]:
    return {**counts, "rows_per_second": _rate(counts["rows_in"], millis)}

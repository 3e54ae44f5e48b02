"""What is known of a query's batches: read from Spark's reports, the counts that it observed among them, and summed up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sash.runtime.analyze import Actual
from sash.runtime.in_force import over_shards
from sash.runtime.shard import Counts
from sash.spark.batch_metrics import METRICS_COLUMN, total
from sash.spark.counts import EDGES, PARTS, added, counts_of, percentile
from sash.spark.gather import OBSERVATION_NAME
from sash.time import BEGINNING, FOREVER

_SUMMED = ("rows_in", "rows_out", "late", "bad", "rebuilt")
_PERCENTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}


class Progress:
    """Of one query with these operators, since its start."""

    def __init__(self, operators: Sequence[str]) -> None:
        self._names = list(operators)
        self._totals = dict.fromkeys(_SUMMED, 0)
        self._operators = {name: dict.fromkeys(PARTS, 0) for name in operators}
        self._in_force: dict[str, dict[int, tuple[str, str]]] = {}
        self._counted = -1
        self._last: dict[str, Any] = {"batch": None}
        self._first: tuple[int, dict[str, Counts]] | None = None
        self.delays: tuple[int, ...] = (0,) * (len(EDGES) + 1)
        self.delay_sum = 0.0

    def take(self, entries: Sequence[Any]) -> list[dict[str, Any]]:
        """Count the batches of Spark's reports that are new; their progress."""
        fresh = []
        for entry in entries:
            if OBSERVATION_NAME in entry["observedMetrics"] and entry["batchId"] > self._counted:
                self._counted = entry["batchId"]
                self._count(entry)
                fresh.append(self.last())
        return fresh

    def follows(self, entries: Sequence[Any]) -> bool:
        """Whether these reports go on where the last that was counted ended."""
        return all(entry["batchId"] <= self._counted + 1 for entry in entries)

    def last(self) -> dict[str, Any]:
        """The last batch, and the totals."""
        return {**self._last, **{f"total_{part}": count for part, count in self._totals.items()}}

    def operators(self) -> dict[str, dict[str, int]]:
        """The totals of every operator, and its rows in state now."""
        return {name: dict(counts) for name, counts in self._operators.items()}

    def actual(self) -> Actual:
        """What the operators did, for EXPLAIN ANALYZE."""
        counts = {name: counts_of(seen, self._in_force.get(name, {})) for name, seen in self._operators.items()}
        rows = {name: seen["state_rows"] for name, seen in self._operators.items()}
        held, clock = self._last.get("state_bytes", 0), self._last.get("clock")
        if self._first is None or clock is None or clock <= self._first[0]:
            return Actual(counts, rows, held)
        return Actual(counts, rows, held, seconds=(clock - self._first[0]) / 1e6, before=self._first[1])

    def _over_shards(self) -> dict[str, list[dict[str, Any]]]:
        """What operators do that they may do otherwise: by operator, what, why, and in which shards."""
        return {name: [found.as_json for found in over_shards(shards)] for name, shards in self._in_force.items()}

    def _count(self, entry: Any) -> None:
        seen = total(entry["observedMetrics"][OBSERVATION_NAME][METRICS_COLUMN] or (), self._names)
        millis = entry["durationMs"].get("triggerExecution") or 0
        for part in _SUMMED:
            self._totals[part] += getattr(seen, part)
        for name, shards in seen.in_force.items():
            self._in_force.setdefault(name, {}).update(
                {int(shard): (what, why) for shard, (what, why) in shards.items()}
            )
        self._last = {
            "batch": entry["batchId"],
            "batch_ms": millis,
            "clock": seen.clock,
            **({"in_force": self._over_shards()} if self._in_force else {}),
            **{part: getattr(seen, part) for part in (*_SUMMED, "state_rows", "state_bytes")},
            "rows_per_second": _rate(seen.rows_in, millis),
        }
        self._last["expired"] = sum(counts["expired"] for counts in seen.operators.values())
        self._last["delay_seconds"] = {
            "average": seen.delay_average,
            **{name: percentile(seen.delays, share) for name, share in _PERCENTILES.items()},
            "max": seen.delay_longest / 1000,
        }
        self._last["switches"] = seen.switches
        self._last["operators"] = {name: _with_rate(counts, millis) for name, counts in seen.operators.items()}
        self.delay_sum += seen.delay_sum / 1000
        self.delays = tuple(a + b for a, b in zip(self.delays, seen.delays, strict=True))
        for name, counts in seen.operators.items():
            self._operators[name] = added(self._operators.get(name, dict.fromkeys(PARTS, 0)), counts)
        clock = seen.clock  # None as long as a stream has brought nothing
        if self._first is None and clock is not None and BEGINNING < clock < FOREVER:
            self._first = clock, {name: counts_of(counts) for name, counts in self._operators.items()}


def _rate(rows: int, millis: int) -> float | None:
    return round(1000 * rows / millis, 1) if millis else None


def _with_rate(counts: dict[str, int], millis: int) -> dict[str, int | float | None]:
    return {**counts, "rows_per_second": _rate(counts["rows_in"], millis)}

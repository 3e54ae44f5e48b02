"""Paper 1's workload in simulation: its five queries over made-up sales, by strategy, with measured service times.

Inter-arrival times are exponential. The number of items is such that a sale of one stream finds its item in the other's
window with the paper's probability.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import log
from time import process_time

import numpy as np
import pyarrow as pa

from bench.queueing import release_times
from bench.service_times import measure_service_times, set_service_times
from sash.plan.catalog import Catalog, RelationEntry, StreamEntry
from sash.plan.options import Options, check_strategy
from sash.planning import Planned, plan_query
from sash.rows import parse_schema
from sash.runtime.counts import Counts
from sash.runtime.legs import static_tables
from sash.runtime.local import LocalRun
from sash.state.changes import ChangeBatch
from sash.testing.simulation import SimulatedInput, Simulation, SimulationSettings
from sash.time import FOREVER, SECOND

_SALES = parse_schema("ts BIGINT, store_id BIGINT, item_id BIGINT, price BIGINT")
PRICES = 1000
STORES = 100
_JOIN_SELECTIVITY = 0.6


@dataclass(frozen=True)
class Workload:
    """A query of Table 1 under one load: `rate` in sales per second and stream, `window` and run `length` in seconds."""

    query: str
    rate: float
    window: int = 20
    length: int = 60
    selectivity: float = 0.25
    streams: int = 2
    seed: int = 0

    @property
    def items(self) -> int:
        """The number of items for which 0.6 of one stream's sales match the other's window (Q2)."""
        return max(10, round(self.rate * self.window / -log(1 - _JOIN_SELECTIVITY)))

    @property
    def sql(self) -> str:
        """The query, with thresholds for the selectivity."""
        window = f"WINDOW {self.window} SECONDS"
        price = round(PRICES * (1 - self.selectivity))
        match self.query:
            case "q1":
                return f"SELECT SUM(s.price) AS total FROM sales1 AS s WHERE s.price >= {price} {window}"
            case "q2":
                names = [f"s{number}" for number in range(1, self.streams + 1)]
                sources = ", ".join(f"sales{number} AS s{number}" for number in range(1, self.streams + 1))
                equal = " AND ".join(f"s1.item_id = {name}.item_id" for name in names[1:])
                return f"SELECT DISTINCT s1.item_id FROM {sources} WHERE {equal} AND s1.price >= {price} {window}"
            case "q3":
                return (
                    "SELECT COUNT(DISTINCT s.store_id) AS n FROM sales1 AS s, favorite_items AS f "
                    f"WHERE s.item_id = f.item_id {window}"
                )
            case "q4":
                return (
                    "SELECT s.item_id, SUM(s.price) AS total FROM favorite_items AS fi, sales1 AS s, favorite_stores AS fs "
                    f"WHERE fi.item_id = s.item_id AND s.store_id = fs.store_id GROUP BY s.item_id {window}"
                )
            case _:
                return (
                    "SELECT s.item_id, SUM(s.price) AS total FROM favorite_items AS f, (SELECT item_id, price FROM sales1 "
                    "MINUS SELECT item_id, price FROM sales2) AS s WHERE f.item_id = s.item_id GROUP BY s.item_id "
                    f"{window}"
                )

    @cached_property
    def _names(self) -> list[str]:
        return [f"sales{number}" for number in range(1, self.streams + 1)]

    def simulate(
        self, strategy: str, service: Mapping[str, float] | None = None, settings: SimulationSettings | None = None
    ) -> SimulatedRun:
        """Simulate the query event by event, with operators that take the `service` times, or no time."""
        planned = self._planned(strategy)
        tables = static_tables(planned.physical, self.relations)
        simulation = Simulation(planned.physical, tables, self._inputs(planned), settings)
        set_service_times(simulation, service or {})
        done = simulation.run(self.length * SECOND)
        full = done.changes.ts >= self.window * SECOND
        released = done.released < FOREVER
        delays = (done.released - done.changes.ts)[full & released] / SECOND
        return SimulatedRun(delays, int((full & ~released).sum()), done.counts, done.switches)

    def service_times(self, strategy: str) -> dict[str, float]:
        """The microseconds per row that this machine takes in each leg and operator, row by row."""
        planned = self._planned(strategy)
        tables = static_tables(planned.physical, self.relations)
        return measure_service_times(planned.physical, tables, self._inputs(planned), self.length * SECOND)

    def _inputs(self, planned: Planned) -> dict[str, SimulatedInput]:
        return {
            name: SimulatedInput(self._rows(number))
            for number, name in enumerate(self._names)
            if name in planned.streams
        }

    def compute(self, strategy: str, service: Mapping[str, float], probe: int | None = None) -> SimulatedRun:
        """The same as `simulate`, computed at once (`bench/queueing.py`); `service` may also have times of legs."""
        planned = self._planned(strategy)
        streams = {name: given.rows for name, given in self._inputs(planned).items()}
        tables = static_tables(planned.physical, self.relations)
        done = release_times(planned.physical, tables, streams, self.length * SECOND, service, probe)
        full, released = done.changes.ts >= self.window * SECOND, done.released < FOREVER
        delays = (done.released - done.changes.ts)[full & released] / SECOND
        return SimulatedRun(delays, int((full & ~released).sum()), done.counts, {})

    def throughput(self, strategy: str) -> float:
        """Changes per second of the local runtime, in micro-batches of a second."""
        done = self.run_batches(strategy)
        return done.changes / done.seconds

    def run_batches(self, strategy: str) -> BatchRun:
        """Run the query in the local runtime, in micro-batches of a second; measured once two windows are over."""
        planned = self._planned(strategy)
        streams = {name: given.rows for name, given in self._inputs(planned).items()}
        run = LocalRun(planned.physical, static_tables(planned.physical, self.relations))
        seconds, changes, arrived, before = 0.0, 0, 0, 0
        for second in range(self.length):
            start, end = second * SECOND, (second + 1) * SECOND
            rows = {name: _between(batch, start, end) for name, batch in streams.items()}
            if second == 2 * self.window:
                before = sum(seen.taken for seen in run.counts.values())
            begun = process_time()
            given = run.advance(rows, dict.fromkeys(streams, end))
            if second >= 2 * self.window:
                seconds += process_time() - begun
                changes += len(given)
                arrived += sum(map(len, rows.values()))
        return BatchRun(seconds, changes, arrived, sum(seen.taken for seen in run.counts.values()) - before)

    def _planned(self, strategy: str) -> Planned:
        """Plan the paper's pipelines: binary joins, and DISTINCT where it is written."""
        catalog = Catalog(
            {name: StreamEntry(name, _SALES, "ts") for name in self._names},
            {
                "favorite_items": RelationEntry("favorite_items", parse_schema("item_id BIGINT")),
                "favorite_stores": RelationEntry("favorite_stores", parse_schema("store_id BIGINT")),
            },
        )
        options = Options(check_strategy(strategy), join="binary")
        disabled = {"push_distinct_below_join", "order_joins", "pull_up_negation", "push_down_negation"}
        return plan_query(self.sql, catalog, disabled, shards=1, options=options)

    @property
    def sales(self) -> dict[str, ChangeBatch]:
        """The rows of the streams that the query reads."""
        return {name: self._rows(number) for number, name in enumerate(self._names) if name in self.sql}

    @property
    def relations(self) -> dict[str, pa.Table]:
        """The favourites, with the numbers of rows that give the paper's selectivities."""
        share = 0.1**0.5 if self.query == "q4" else 0.1
        return {
            "favorite_items": pa.table({"item_id": range(max(1, round(share * self.items)))}),
            "favorite_stores": pa.table({"store_id": range(round(share * STORES))}),
        }

    def _rows(self, stream: int) -> ChangeBatch:
        random = np.random.default_rng([self.seed, stream])
        count = int(1.2 * self.rate * self.length) + 50
        ts = np.cumsum(random.exponential(SECOND / self.rate, count)).astype(np.int64)
        ts = ts[ts <= self.length * SECOND]
        count = len(ts)
        columns = (
            pa.array(ts),
            pa.array(random.integers(0, STORES, count)),
            pa.array(random.integers(0, self.items, count)),
            pa.array(random.integers(0, PRICES, count)),
        )
        return ChangeBatch(ts, np.full(count, FOREVER), np.ones(count, np.int8), columns)


def _between(batch: ChangeBatch, start: int, end: int) -> ChangeBatch:
    first, last = (int(np.searchsorted(batch.ts, at, side="left")) for at in (start, end))
    return batch.slice(first, last)


@dataclass(frozen=True)
class BatchRun:
    """Processor seconds, changes, rows that arrived, and rows that all operators took in."""

    seconds: float
    changes: int
    arrived: int
    taken: int


@dataclass(frozen=True)
class SimulatedRun:
    """The output delays of the changes in seconds, once the window is full, and the number that was never released."""

    delays: np.ndarray[tuple[int], np.dtype[np.float64]]
    unreleased: int
    counts: Mapping[str, Counts]
    switches: Mapping[str, int]

    @property
    def average(self) -> float:
        return float(self.delays.mean()) if len(self.delays) else 0.0

    @property
    def longest(self) -> float:
        return float(self.delays.max()) if len(self.delays) else 0.0

    @property
    def work(self) -> int:
        """Rows and time messages that all operators took in."""
        return sum(seen.taken + seen.messages for name, seen in self.counts.items() if not name.startswith("leg"))

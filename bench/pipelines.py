"""Paper 1's workload in simulation: its five queries over made-up sales, by strategy, with measured service times.

Inter-arrival times are exponential. The number of items is such that a sale of one stream finds its item in the other's
window with the paper's probability.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import takewhile
from math import ceil, log
from time import process_time

import numpy as np
import pyarrow as pa

from bench.queueing import release_times
from bench.service_times import measure_service_times, set_service_times
from sash.physical.nodes import StreamLeg
from sash.plan.catalog import Catalog, RelationEntry, StreamEntry
from sash.plan.nodes import Node
from sash.plan.options import Options, check_strategy
from sash.planning import Planned, plan_query
from sash.rows import parse_schema
from sash.runtime.counts import Counts
from sash.runtime.legs import LegRunner, static_tables
from sash.runtime.local import LocalRun
from sash.state.changes import ChangeBatch
from sash.state.memory import Ints
from sash.testing.simulation import SimulatedInput, Simulation, SimulationResult, SimulationSettings
from sash.time import FOREVER, SECOND

_SALES = parse_schema("ts BIGINT, store_id BIGINT, item_id BIGINT, price BIGINT")
PRICES = 1000
STORES = 100
_JOIN_SELECTIVITY = 0.6
_FIRST_KIND = ("Filter", "Project", "Union", "Join", "Lookup", "Combine")
_COUNTED = ("taken", "taken_negative", "messages")


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
        inputs = self._inputs(planned)
        begun, done = (
            _simulated(planned, tables, inputs, service or {}, settings, until)
            for until in (self.window * SECOND - 1, self.length * SECOND)
        )
        counts = {name: _difference(seen, begun.counts[name]) for name, seen in done.counts.items()}
        return self._run_of(planned, tables, done.changes, done.released, counts, done.switches)

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
        full = self.window * SECOND
        done = release_times(planned.physical, tables, streams, self.length * SECOND, service, probe, full)
        return self._run_of(planned, tables, done.changes, done.released, done.counts, {})

    def _run_of(
        self,
        planned: Planned,
        tables: Mapping[Node, pa.Table],
        changes: ChangeBatch,
        released: Ints,
        counts: Mapping[str, Counts],
        switches: Mapping[str, int],
    ) -> SimulatedRun:
        """The delays of the changes, and the rows, once the window is full."""
        full, left = changes.ts >= self.window * SECOND, released < FOREVER
        delays = (released - changes.ts)[full & left] / SECOND
        below: Counter[str] = Counter()
        for leg in planned.physical.legs:
            if isinstance(leg, StreamLeg):
                rows = self._rows(self._names.index(leg.stream))
                below += rows_into_leg(leg.node, tables, rows.slice(_first(rows, self.window * SECOND), len(rows)))
        return SimulatedRun(delays, int((full & ~left).sum()), counts, below, switches)

    def with_changes(self, count: int, strategy: str, service: Mapping[str, float]) -> Workload:
        """The workload, as long as it needs for the strategy to release so many changes once the window is full."""
        made = self
        while (found := len(made.compute(strategy, service).delays)) < count:
            longer = ceil(1.05 * (made.length - made.window) * count / max(1, found))
            made = replace(made, length=made.window + max(longer, made.length))
        return made

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


def _simulated(
    planned: Planned,
    tables: Mapping[Node, pa.Table],
    inputs: Mapping[str, SimulatedInput],
    service: Mapping[str, float],
    settings: SimulationSettings | None,
    until: int,
) -> SimulationResult:
    simulation = Simulation(planned.physical, tables, inputs, settings)
    set_service_times(simulation, service)
    return simulation.run(until)


def _difference(seen: Counts, before: Counts) -> Counts:
    return Counts(**{name: count - getattr(before, name) for name, count in vars(seen).items() if name in _COUNTED})


def rows_into_leg(node: Node, tables: Mapping[Node, pa.Table], rows: ChangeBatch) -> Counter[str]:
    """How many of these rows of its stream the selections, projections and joins with tables of a leg take in, by kind."""
    taken: Counter[str] = Counter()
    while node.children:
        kind, node = type(node).__name__, node.children[0]
        taken[kind] += len(LegRunner(node, tables).run(rows))
    return taken


def _between(batch: ChangeBatch, start: int, end: int) -> ChangeBatch:
    return batch.slice(_first(batch, start), _first(batch, end))


def _first(batch: ChangeBatch, time: int) -> int:
    """The number of the first row from this time on."""
    return int(np.searchsorted(batch.ts, time, side="left"))


@dataclass(frozen=True)
class BatchRun:
    """Processor seconds, changes, rows that arrived, and rows that all operators took in."""

    seconds: float
    changes: int
    arrived: int
    taken: int


@dataclass(frozen=True)
class SimulatedRun:
    """Once the window is full: the output delays of the changes in seconds, and the number that was never released; what
    the operators of the stages took in, and `below` the rows into those of the legs. Switches are those of the whole run."""

    delays: np.ndarray[tuple[int], np.dtype[np.float64]]
    unreleased: int
    counts: Mapping[str, Counts]
    below: Mapping[str, int]
    switches: Mapping[str, int]

    @property
    def average(self) -> float:
        return float(self.delays.mean()) if len(self.delays) else 0.0

    @property
    def longest(self) -> float:
        return float(self.delays.max()) if len(self.delays) else 0.0

    @property
    def work(self) -> int:
        """Rows and time messages that all operators took in, but for Expire, which belongs to the scan."""
        return sum(self.below.values()) + sum(seen.taken + seen.messages for _, seen in self._operators)

    @property
    def first_kind(self) -> int:
        """Rows into selections and joins below the first operator that must process expirations."""
        legs = sum(rows for kind, rows in self.below.items() if kind != "Project")
        return legs + sum(seen.taken for kind, seen in self._first_operators if kind != "Project")

    @property
    def negatives(self) -> int:
        """Retractions into the operators below the first one that must process expirations."""
        return sum(seen.taken_negative for _, seen in self._first_operators)

    @property
    def _operators(self) -> list[tuple[str, Counts]]:
        """The operators of the stages but Expire: their kinds, in the order of the pipeline, and counts."""
        named = [(name.split(".")[-1], seen) for name, seen in self.counts.items() if not name.startswith("leg")]
        return [(kind, seen) for kind, seen in named if kind != "Expire"]

    @property
    def _first_operators(self) -> Iterator[tuple[str, Counts]]:
        return takewhile(lambda operator: operator[0] in _FIRST_KIND, self._operators)

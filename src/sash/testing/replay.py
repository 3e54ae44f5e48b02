"""Replay: run a query over rows with times and look at its answer at any instant; for users' tests and ours.

>>> result = replay(
...     "SELECT k, COUNT(*) AS n FROM s [RANGE 5 SECONDS] GROUP BY k",
...     streams={"s": [{"ts": 200, "k": "a"}, {"ts": 800, "k": "b"}]},
...     unit="ms", until=10_000,
... )
>>> result.at(5_199)
[{'k': 'a', 'n': 1}, {'k': 'b', 'n': 1}]
>>> result.at(5_200)
[{'k': 'b', 'n': 1}]
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from sash.errors import CatalogError, OptionError, StrategyError
from sash.plan.catalog import Catalog
from sash.plan.observation import seen
from sash.plan.options import JoinForm, Options, ReplayStrategy
from sash.plan.statistics import UNKNOWN, Statistics
from sash.plan.types import Field, Schema
from sash.planning import Planned, plan_query
from sash.rows import Row, parse_schema, refuse_duplicates, to_dicts
from sash.runtime.analyze import Actual
from sash.runtime.counts import Counts
from sash.runtime.legs import static_tables
from sash.runtime.local import LocalRun
from sash.runtime.shard import released_by
from sash.state.changes import ChangeBatch, concat
from sash.state.hashing import hash_rows
from sash.testing.feeds import TIME, Feed, MicroBatch, feed_of, micro_batches, relation_of
from sash.testing.simulation import Feed as SimulatedFeed
from sash.testing.simulation import Pace, Simulated, Simulation
from sash.time import BEGINNING, FOREVER, HOUR, MICROSECOND, MILLISECOND, MINUTE, SECOND

UNITS = {"us": MICROSECOND, "ms": MILLISECOND, "s": SECOND, "m": MINUTE, "h": HOUR}

_LATE = ("input-triggered", "clock-triggered", "piggyback")
"""Strategies under which a change may be released later than at its time, though no operator is slow."""


@dataclass(frozen=True)
class Change:
    """One change of the answer; `ts` and `released` are in the replay's unit."""

    ts: int | float
    op: str
    row: dict[str, Any]
    released: int | float | None


@dataclass(frozen=True)
class Result:
    """What a replay gave: the change stream, the answer at any instant, and what each operator did."""

    changes: list[Change]
    counts: dict[str, Counts] = field(default_factory=dict)
    late: int = 0
    state_rows: int = 0
    schema: Schema = ()
    switches: dict[str, int] = field(default_factory=dict)
    planned: Planned | None = None
    actual: Actual | None = None
    statistics: Mapping[str, Statistics] = field(default_factory=dict)
    """What was seen of every stream and relation: rates, rows, numbers of values, frequent values."""

    def explain(self) -> str:
        """The plan as it ran (EXPLAIN ANALYZE): rows, rates and expirations of every operator beside the estimates.

        Rows in state are those that were kept when the last row had come; on Spark they are not told.
        """
        if self.planned is None:
            raise CatalogError("this result was not made by replay: there is no plan to explain")
        return self.planned.explain(actual=self.actual)

    @property
    def delays(self) -> list[int | float]:
        """How long after its time each change was released, in the replay's unit; those never released are left out."""
        return [change.released - change.ts for change in self.changes if change.released is not None]

    def at(self, instant: float) -> list[dict[str, Any]]:
        """Q(T): the rows of the answer at an instant."""
        rows: dict[Any, list[dict[str, Any]]] = {}
        for change in self.changes:
            if change.ts > instant:
                break
            same = rows.setdefault(_identity(change.row), [])
            if change.op == "+":
                same.append(change.row)
            else:
                same.pop()
        return [row for same in rows.values() for row in same]


def _identity(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple("NaN" if isinstance(value, float) and math.isnan(value) else value for value in row.values())


def replay(
    sql: str,
    streams: Mapping[str, Sequence[Row]],
    relations: Mapping[str, Sequence[Row]] | None = None,
    strategy: ReplayStrategy = "auto",
    runtime: str = "local",
    unit: str = "ms",
    until: float | None = None,
    batch: int | Sequence[int] | None = None,
    delays: Mapping[str, float] | None = None,
    probe: float | None = None,
    nrrs: Mapping[str, Sequence[Row]] | None = None,
    *,
    schemas: Mapping[str, str] | None = None,
    slack: float | Mapping[str, float] = 0,
    shards: int = 2,
    join: JoinForm = "auto",
    tau: float | None = None,
    partitions: int | None = None,
    buckets: int | None = None,
    patience: float | None = None,
    keys: Mapping[str, Sequence[str]] | None = None,
    statistics: Mapping[str, Statistics] | None = None,
    purge: float | None = None,
) -> Result:
    """Run the query over the rows of the streams and return every change of its answer.

    `ts` of a row is its time in `unit`; rows of one micro-batch may come in any order, later ones only within `slack`.
    `batch` is the number of rows per micro-batch, or a list of such numbers; None takes all rows at once. The clock ends
    at `until`, or, without it, after the last expiry. `schemas` gives columns and types, as in DDL, where the rows alone
    do not tell. A relation is a list of rows, or, if its rows have `ts` and `_op`, of updates in the order of their times;
    those of `nrrs` are non-retroactive. `keys` names the key columns of relations that have such: there a `+` replaces.
    `join` is how inner joins of streams are run, `tau` the interval of lazy re-executions in `unit`: changes are released
    at its multiples. `partitions` is the number of partitions of calendar buffers, where the planner is not to set it.
    `buckets` is how many hash buckets the windows of a multi-way join have in all (None: one per key). `statistics` is what
    is known of streams and relations, by name: another run's `Result.statistics`, say, so that this one is planned by what
    was seen there. `purge` is how often joins take out rows that have ended, in `unit`, where they may do it lazily (0: at
    once, None: as the optimizer chooses).

    `released` is simulated, event by event and whatever `batch` says. `delays` makes operators slow, by name (`Filter`,
    `Aggregate`, a stream's name, or a name from `counts`); `probe` is the period of time probing (None: always);
    `patience` is how long piggybacking lets a time wait for a row to carry it.
    """
    if unit not in UNITS:
        raise OptionError(f"unknown unit {unit!r}; use one of {', '.join(UNITS)}")
    every, purged = (None if given is None else int(given * UNITS[unit]) for given in (tau, purge))
    options = Options(strategy, join, every, partitions, purged, buckets)
    if runtime == "spark" and delays:
        raise StrategyError("delays are simulated: use runtime='local'")
    if probe is not None and probe <= 0:
        raise StrategyError(f"probe is a period: it must be more than 0, not {probe}")
    scale = UNITS[unit]
    written = {name: parse_schema(text) for name, text in (schemas or {}).items()}
    feeds = {
        name: feed_of(
            name, rows, written.get(name), scale, slack if isinstance(slack, int | float) else slack.get(name, 0)
        )
        for name, rows in streams.items()
    }
    known = {name.lower(): given for name, given in (statistics or {}).items()}
    catalog = Catalog()
    for name, feed in feeds.items():
        catalog.add_stream(name, feed.schema, TIME, check_time=False, statistics=known.get(name.lower(), UNKNOWN))
    tables: dict[str, pa.Table] = {}
    for name, rows in {**(relations or {}), **(nrrs or {})}.items():
        schema, found = relation_of(name, rows, written.get(name), scale)
        if isinstance(found, Feed):
            feeds[name] = found
        else:
            tables[name] = found
        entry = catalog.add_relation(
            name,
            schema,
            key=(keys or {}).get(name),
            retroactive=name not in (nrrs or {}),
            changes=isinstance(found, Feed),
            statistics=known.get(name.lower(), UNKNOWN),
        )
        if entry.key is not None and isinstance(found, pa.Table):
            refuse_duplicates(name, found, entry.key)
    planned = plan_query(sql, catalog, shards=shards, options=options)
    end = FOREVER if until is None else int(until * scale) + 1
    last = end if until is None else released_by(options.tau, int(end) - 1) + 1
    batches = micro_batches(feeds, batch)
    simulated: Simulated | None = None
    if delays or probe is not None or patience is not None or planned.physical.strategy in _LATE:
        pace = Pace(
            {name: delay * scale for name, delay in (delays or {}).items()},
            probe=None if probe is None else int(probe * scale),
            patience=None if patience is None else int(patience * scale),
        )
        simulated = _simulate(planned, tables, batches, feeds, int(end), pace)
    if runtime == "spark":
        from sash.spark.replay import replay_on_spark

        changes, late, state_rows, counts = replay_on_spark(planned, feeds, tables, batches, int(last), shards)
        actual = Actual(counts, {}, 0)
    elif runtime == "local":
        changes, late, state_rows, actual = _run_locally(planned, tables, batches, int(last), shards)
        counts = dict(actual.counts)
    else:
        raise OptionError(f"unknown runtime {runtime!r}; use 'local' or 'spark'")
    held = max((feed.slack for feed in feeds.values()), default=0)
    released = changes.ts + held
    switches: dict[str, int] = {}
    if simulated is not None:
        counts, switches = (simulated.counts, simulated.switches) if runtime == "local" else (counts, {})
        if delays or planned.physical.strategy == "clock-triggered":
            order = np.argsort(simulated.changes.ts, kind="stable")
            changes, released = simulated.changes.take(order), simulated.released[order]
        else:
            released = _matched(changes, simulated)
    kept = np.flatnonzero(changes.ts < end)
    changes, released = changes.take(kept), released[kept]
    rows = to_dicts(planned.schema, changes.columns)
    listed = [
        Change(_in_unit(ts, scale), "+" if sign > 0 else "-", row, _released(at, options.tau, int(end), scale))
        for ts, sign, row, at in zip(changes.ts.tolist(), changes.sign.tolist(), rows, released.tolist(), strict=True)
    ]
    actual = replace(actual, counts=counts, seconds=_span(feeds.values()))
    return Result(listed, counts, late, state_rows, planned.schema, switches, planned, actual, _seen(feeds, tables))


def _seen(feeds: Mapping[str, Feed], tables: Mapping[str, pa.Table]) -> dict[str, Statistics]:
    """What a look at all rows tells of every stream and relation."""
    span = round(1e6 * (_span(feeds.values()) or 0))
    made = {
        name: seen(feed.schema, feed.columns[: len(feed.schema)], span, TIME if feed.signs is None else "")
        for name, feed in feeds.items()
    }
    for name, table in tables.items():
        schema = tuple(Field(field.name, field.type) for field in table.schema)
        columns = [column.combine_chunks() for column in table.columns]
        made[name] = replace(seen(schema, columns, 1, ""), rate=None, rows=float(table.num_rows))
    return made


def _span(feeds: Iterable[Feed]) -> float | None:
    """The seconds from the first row of all streams to the last."""
    times = np.concatenate([np.empty(0, np.int64), *(feed.times for feed in feeds)])
    return float(times.max() - times.min()) / 1e6 if len(times) else None


def _simulate(
    planned: Planned,
    relations: Mapping[str, pa.Table],
    batches: Sequence[MicroBatch],
    feeds: Mapping[str, Feed],
    end: int,
    pace: Pace,
) -> Simulated:
    """The same rows, event by event; those that came too late in their micro-batch are not among them."""
    given: dict[str, SimulatedFeed] = {}
    for name in (*planned.streams, *planned.changing):
        clock, parts = BEGINNING, [ChangeBatch.empty([column.type for column in feeds[name].columns])]
        for micro in batches:
            if name in micro.rows:
                rows = micro.rows[name]
                parts.append(rows.take(np.flatnonzero(rows.ts >= clock)))
                clock = max(clock, micro.clocks[name])
        given[name] = SimulatedFeed(concat(parts).sorted(), feeds[name].slack)
    tables = static_tables(planned.physical, relations)
    return Simulation(planned.physical, tables, given, pace).run(min(end, int(FOREVER)) - 1)


def _matched(changes: ChangeBatch, simulated: Simulated) -> np.ndarray[Any, np.dtype[np.int64]]:
    """When each change was released, found by its time, sign and row.

    Two shards may add and remove an equal row at one instant, which nets to nothing here: such a pair leaves with the
    next release.
    """
    times: dict[tuple[int, int, int, int], deque[int]] = {}
    for key, at in zip(_keys(simulated.changes), simulated.released.tolist(), strict=True):
        times.setdefault(key, deque()).append(at)
    releases = np.append(np.unique(simulated.released), FOREVER)
    following = releases[np.searchsorted(releases, changes.ts)].tolist()
    found = (times.get(key) for key in _keys(changes))
    return np.array(
        [queue.popleft() if queue else other for queue, other in zip(found, following, strict=True)], np.int64
    )


def _keys(changes: ChangeBatch) -> list[tuple[int, int, int, int]]:
    low, high = hash_rows(changes.columns, len(changes))
    return list(zip(changes.ts.tolist(), changes.sign.tolist(), low.tolist(), high.tolist(), strict=True))


def _released(at: int, tau: int | None, end: int, scale: int) -> int | float | None:
    """When a change that is there at an instant is released: at once, or at the next re-execution, if one comes."""
    if at >= FOREVER or (tau is not None and released_by(tau, at) >= end):
        return None
    return _in_unit(released_by(tau, at), scale)


def _in_unit(micros: int, scale: int) -> int | float:
    return micros // scale if micros % scale == 0 else micros / scale


def _run_locally(
    planned: Planned, relations: Mapping[str, pa.Table], batches: Sequence[MicroBatch], end: int, shards: int
) -> tuple[ChangeBatch, int, int, Actual]:
    run = LocalRun(planned.physical, static_tables(planned.physical, relations), shards)
    changes = [run.advance(micro.rows, micro.clocks) for micro in batches]
    kept = run.operator_rows
    changes.append(run.advance({}, dict.fromkeys((*planned.streams, *planned.changing), end)))
    changes.append(run.flush())
    stages = run.stage_bytes
    actual = Actual(run.counts, kept, sum(stages.values()), stages)
    return concat(changes).sorted(), run.late, run.state_rows, actual

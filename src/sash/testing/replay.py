"""Replay: run a query over rows with times and get its answer at any instant, for tests of queries.

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

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from sash.errors import OptionError, StrategyError
from sash.plan.catalog import Catalog
from sash.plan.options import JoinForm, Options, ReplayStrategy
from sash.plan.statistics import UNKNOWN, Statistics, seen
from sash.plan.types import Field
from sash.planning import Planned, plan_query
from sash.rows import Row, parse_schema, refuse_duplicates, to_dicts
from sash.runtime.analyze import Actual
from sash.runtime.legs import static_tables
from sash.runtime.local import LocalRun
from sash.runtime.shard import released_by
from sash.state.changes import ChangeBatch, concat
from sash.testing.inputs import TIME, MicroBatch, ReplayInput, micro_batches, relation_input, stream_input
from sash.testing.release import match_releases, simulate_releases
from sash.testing.result import Change, Result
from sash.testing.simulation import SimulationResult, SimulationSettings
from sash.time import FOREVER, HOUR, MICROSECOND, MILLISECOND, MINUTE, SECOND

UNITS = {"us": MICROSECOND, "ms": MILLISECOND, "s": SECOND, "m": MINUTE, "h": HOUR}

_DELAYED = ("input-triggered", "clock-triggered", "piggyback")
"""Strategies that may release a change after its time even without slow operators."""


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

    A row's `ts` is its time in `unit`: "us", "ms", "s", "m" or "h". `batch` is the number of rows per micro-batch, or a
    list of such numbers; by default all rows are one micro-batch. Rows of a micro-batch may come in any order, rows of
    different ones must be in order within `slack` (the watermark delay). The replay ends at `until`, or after the last
    expiration. `runtime` is "local" or "spark", with `shards` shards.

    A relation is a list of rows, or of updates if its rows have `ts` and `_op` ('+' or '-'). Relations in `nrrs` are
    non-retroactive. `keys` names the key columns of relations, where a '+' replaces the row of its key. `schemas` gives
    columns and types as DDL, for inputs whose rows do not determine them. `statistics` of streams and relations by name,
    such as those of another `Result`, guide the planner.

    `strategy`, `join`, `tau` (the interval of releases, in `unit`), `partitions` (of calendar buffers), `buckets` (of all
    windows of a multi-way join) and `purge` (the interval, in `unit`, at which joins remove expired rows; 0: at once) are
    the options of `Engine.sql`; None leaves the choice to the planner.

    A change's `released` time is simulated, row by row, and does not depend on `batch`. `delays` makes operators slow:
    the time that a row takes through each, by name (`Filter`, `Aggregate`, a stream's name, or a name in `counts`).
    `probe` is the period of time probing (None: continuous), and `patience` the longest time for which piggybacking holds
    back a time message until a row carries it.
    """
    if unit not in UNITS:
        raise OptionError(f"unknown unit {unit!r}; use one of {', '.join(UNITS)}")
    if runtime not in ("local", "spark"):
        raise OptionError(f"unknown runtime {runtime!r}; use 'local' or 'spark'")
    if runtime == "spark" and delays:
        raise StrategyError("delays are simulated: use runtime='local'")
    if probe is not None and probe <= 0:
        raise StrategyError(f"probe is a period and must be greater than 0, not {probe}")
    scale = UNITS[unit]
    interval, purge_interval = (None if given is None else int(given * scale) for given in (tau, purge))
    options = Options(strategy, join, interval, partitions, purge_interval, buckets)
    parsed = {name: parse_schema(text) for name, text in (schemas or {}).items()}
    known = {name.lower(): given for name, given in (statistics or {}).items()}
    catalog = Catalog()
    inputs: dict[str, ReplayInput] = {}
    tables: dict[str, pa.Table] = {}
    for name, rows in streams.items():
        held = slack if isinstance(slack, int | float) else slack.get(name, 0)
        inputs[name] = stream_input(name, rows, parsed.get(name), scale, held)
        given = known.get(name.lower(), UNKNOWN)
        catalog.add_stream(name, inputs[name].schema, TIME, check_time=False, statistics=given)
    for name, rows in {**(relations or {}), **(nrrs or {})}.items():
        schema, found = relation_input(name, rows, parsed.get(name), scale)
        entry = catalog.add_relation(
            name,
            schema,
            key=(keys or {}).get(name),
            retroactive=name not in (nrrs or {}),
            changes=isinstance(found, ReplayInput),
            statistics=known.get(name.lower(), UNKNOWN),
        )
        if isinstance(found, ReplayInput):
            inputs[name] = found
            continue
        tables[name] = found
        if entry.key is not None:
            refuse_duplicates(name, found, entry.key)
    planned = plan_query(sql, catalog, shards=shards, options=options)
    end = FOREVER if until is None else int(until * scale) + 1
    last = end if until is None else released_by(options.tau, end - 1) + 1
    batches = micro_batches(inputs, batch)
    simulated: SimulationResult | None = None
    if delays or probe is not None or patience is not None or planned.physical.strategy in _DELAYED:
        settings = SimulationSettings(
            {name: delay * scale for name, delay in (delays or {}).items()},
            probe=None if probe is None else int(probe * scale),
            patience=None if patience is None else int(patience * scale),
        )
        simulated = simulate_releases(planned, tables, batches, inputs, end, settings)
    if runtime == "spark":
        from sash.spark.replay import replay_on_spark

        changes, late, state_rows, counts = replay_on_spark(planned, inputs, tables, batches, last, shards)
        actual = Actual(counts, {}, 0)
    else:
        changes, late, state_rows, actual = _replay_locally(planned, tables, batches, last, shards)
        counts = dict(actual.counts)
    released = changes.ts + max((given.slack for given in inputs.values()), default=0)
    switches: dict[str, int] = {}
    if simulated is not None:
        if runtime == "local":
            counts, switches = simulated.counts, simulated.switches
        if delays or planned.physical.strategy == "clock-triggered":
            order = np.argsort(simulated.changes.ts, kind="stable")
            changes, released = simulated.changes.take(order), simulated.released[order]
        else:
            released = match_releases(changes, simulated)
    kept = np.flatnonzero(changes.ts < end)
    changes, released = changes.take(kept), released[kept]
    rows = to_dicts(planned.schema, changes.columns)
    listed = [
        Change(_in_unit(ts, scale), "+" if sign > 0 else "-", row, _release_time(at, options.tau, end, scale))
        for ts, sign, row, at in zip(changes.ts.tolist(), changes.sign.tolist(), rows, released.tolist(), strict=True)
    ]
    actual = replace(actual, counts=counts, seconds=_span(inputs.values()))
    observed = _observed(inputs, tables)
    return Result(listed, counts, late, state_rows, planned.schema, switches, planned, actual, observed)


def _observed(inputs: Mapping[str, ReplayInput], tables: Mapping[str, pa.Table]) -> dict[str, Statistics]:
    """The statistics of all rows of every stream and relation."""
    span = round(SECOND * (_span(inputs.values()) or 0))
    made = {
        name: seen(given.schema, given.columns[: len(given.schema)], span, TIME if given.signs is None else "")
        for name, given in inputs.items()
    }
    for name, table in tables.items():
        schema = tuple(Field(field.name, field.type) for field in table.schema)
        columns = [column.combine_chunks() for column in table.columns]
        made[name] = replace(seen(schema, columns, 1, ""), rate=None, rows=float(table.num_rows))
    return made


def _span(inputs: Iterable[ReplayInput]) -> float | None:
    """The seconds from the first row of all inputs to the last."""
    times = np.concatenate([np.empty(0, np.int64), *(given.times for given in inputs)])
    return float(times.max() - times.min()) / SECOND if len(times) else None


def _release_time(at: int, tau: int | None, end: int, scale: int) -> int | float | None:
    """The time at which a change that is ready at `at` is released: at once, or at the next multiple of tau."""
    if at >= FOREVER or (tau is not None and released_by(tau, at) >= end):
        return None
    return _in_unit(released_by(tau, at), scale)


def _in_unit(micros: int, scale: int) -> int | float:
    return micros // scale if micros % scale == 0 else micros / scale


def _replay_locally(
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

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

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from sash.arguments import check_count, check_mapping, check_word
from sash.errors import StrategyError
from sash.plan.options import MOST_SHARDS, PROBING, JoinForm, ReplayStrategy
from sash.plan.statistics import Statistics
from sash.planning import Planned, plan_query
from sash.runtime.analyze import Actual
from sash.runtime.legs import static_tables
from sash.runtime.local import LocalRun
from sash.state.changes import ChangeBatch, concat
from sash.testing.inputs import Inputs, MicroBatch, micro_batches, numbered
from sash.testing.release import simulate_releases
from sash.testing.replayed import DELAYED, NEVER, ReplayedChanges, last_release, make_result, query_options
from sash.testing.result import Result
from sash.testing.simulation import SimulationResult, SimulationSettings
from sash.testing.tables import Rows
from sash.testing.times import Instant, TimeUnit
from sash.time import FOREVER
from sash.user_library import Packer, add_given


def replay(
    sql: str,
    streams: Mapping[str, Rows],
    relations: Mapping[str, Rows] | None = None,
    strategy: ReplayStrategy = "auto",
    runtime: str = "local",
    unit: str = "ms",
    until: Instant | None = None,
    batch: int | Sequence[int] | None = None,
    delays: Mapping[str, float] | None = None,
    probe: float | None = None,
    nrrs: Mapping[str, Rows] | None = None,
    *,
    schemas: Mapping[str, str] | None = None,
    slack: float | Mapping[str, float] = 0,
    partition_by: Mapping[str, str] | None = None,
    shards: int = 2,
    join: JoinForm = "auto",
    tau: float | None = None,
    partitions: int | None = None,
    buckets: int | None = None,
    patience: float | None = None,
    keys: Mapping[str, Sequence[str]] | None = None,
    statistics: Mapping[str, Statistics] | None = None,
    purge: float | None = None,
    unbounded: str = "refuse",
    functions: Mapping[str, tuple[Any, ...]] | None = None,
    aggregates: Mapping[str, tuple[Any, ...]] | None = None,
    reorder: bool = True,
) -> Result:
    """Run the query over the rows of the streams and return every change of its answer.

    A stream is a list of dicts, or a table of pandas, Polars or Arrow. A row's `ts` is its time: a number in `unit` ("us",
    "ms", "s", "m" or "h"), or a datetime, which is in UTC if it is naive. Numbers stay numbers in SQL, unless `schemas`
    makes the column a TIMESTAMP; then SQL sees the instant. `batch` is the number of rows per micro-batch, or a list of
    such numbers; by default all rows are one micro-batch. Rows of a micro-batch may come in any order, rows of different
    ones must be in order within `slack` (the watermark delay, in `unit`, of all streams or by name); in streams of which
    `partition_by` names a column, rows arrive in the order of the list, and only those of one partition must be in order, as
    with that argument of `Engine.stream`. The replay ends at
    `until`, a time, or after the last expiration. `runtime` is "local" or "spark", with `shards` shards.

    A relation is given likewise, with its rows, or with updates that have `ts` and `_op` ('+' or '-'). Relations in `nrrs` are
    non-retroactive. `keys` names the key columns of relations, where a '+' replaces the row of its key. `schemas` gives
    columns and types as DDL, for inputs whose rows do not determine them. `statistics` of streams and relations by name,
    such as those of another `Result`, guide the planner. With `unbounded="allow"` queries may keep all rows of streams for
    ever, as with that argument of `Engine.stream`.

    `strategy`, `join`, `tau` (the interval of releases, in `unit`), `partitions` (of calendar buffers), `buckets` (of all
    windows of a multi-way join), `purge` (the interval, in `unit`, at which joins remove expired rows; 0: at once) and
    `reorder` (whether the orders of multi-way joins follow the rates) are the options of `Engine.sql`; None leaves the choice to the planner.

    `functions` and `aggregates` are those of `Engine.function` and `Engine.aggregate`: name -> (code, type), or (code, type,
    version).

    A change's `batch` is the micro-batch that released it on the runtime. Its `released` time is simulated, row by row, and
    does not depend on `batch`. `delays` makes operators slow in the simulation: the time that a row takes through each, by
    name (`Filter`, `Aggregate`, a stream's name, or a name in `counts`). `probe` is the period of time probing (None: once
    per batch, in the simulation continuous), and `patience` the longest time for which piggybacking holds back a time
    message until a row carries it.
    """
    units = TimeUnit(unit)
    check_word("runtime", runtime, ("local", "spark"))
    given = Inputs.of(streams, relations, nrrs)
    shards = check_count("shards", shards, most=MOST_SHARDS)
    probing, waiting = strategy in PROBING, strategy == "piggyback"
    timing = probe if probing else None, patience if waiting else None
    options = query_options(units, strategy, join, tau, partitions, buckets, purge, *timing, reorder)
    settings = _settings(units, delays, probe, patience)
    if runtime == "spark" and settings.delays:
        raise StrategyError("delays are simulated: use runtime='local'")
    catalog, inputs, tables = given.read(units, schemas, slack, keys, statistics, unbounded, partition_by)
    pack: Packer | None = None
    if runtime == "spark":
        from sash.spark.packing import pack
    add_given(catalog, functions, aggregates, pack)
    end = FOREVER if until is None else units.instant("until", until) + 1
    planned = plan_query(sql, catalog, shards=shards, options=options)
    last = last_release(options.tau, end)
    batches = micro_batches(inputs, batch)
    simulated: SimulationResult | None = None
    if settings != SimulationSettings() and options.strategy == "re-evaluation":
        raise StrategyError("re-evaluation cannot be simulated: leave out delays, probe and patience")
    if settings != SimulationSettings() or planned.physical.strategy in DELAYED:
        simulated = simulate_releases(planned, tables, batches, inputs, end, settings)
    if runtime == "spark":
        from sash.spark.replay import replay_on_spark

        changes, late, state_rows, counts = replay_on_spark(planned, inputs, tables, batches, last, shards)
        actual = Actual(counts, {}, 0)
    else:
        changes, late, state_rows, actual = _replay_locally(planned, tables, batches, last, shards)
        counts = dict(actual.counts)
    made = ReplayedChanges(changes, late, state_rows, replace(actual, counts=counts))
    return make_result(planned, made, simulated, settings, units, inputs, tables, end, local=runtime == "local")


def _settings(
    unit: TimeUnit, delays: Mapping[str, float] | None, probe: float | None, patience: float | None
) -> SimulationSettings:
    slow = check_mapping("delays", delays, StrategyError).items()
    return SimulationSettings(
        {name: unit.exact_length(f"the delay of {name}", delay, StrategyError) for name, delay in slow},
        probe=None if probe is None else unit.length("probe", probe, 1, StrategyError),
        patience=None if patience is None else unit.length("patience", patience, 0, StrategyError),
    )


def _replay_locally(
    planned: Planned, relations: Mapping[str, pa.Table], batches: Sequence[MicroBatch], end: int, shards: int
) -> tuple[ChangeBatch, int, int, Actual]:
    run = LocalRun(planned.physical, static_tables(planned.physical, relations), shards)
    changes = [numbered(run.advance(micro.rows, micro.clocks), number) for number, micro in enumerate(batches)]
    kept = run.operator_rows
    ending = dict.fromkeys((*planned.streams, *planned.changing), end)
    changes.append(numbered(run.advance({}, ending, ended=True), len(batches)))
    changes.append(numbered(run.flush(), NEVER))
    stages = run.stage_bytes
    actual = Actual(run.counts, kept, sum(stages.values()), stages)
    return concat(changes).sorted(), run.late, run.state_rows, actual

"""Replay of a job: run several queries together over the same rows, and get the answer of each at any instant.

>>> results = replay_job(
...     {
...         "pairs": "SELECT DISTINCT k, v FROM s [RANGE 5 SECONDS]",
...         "values": "SELECT k, COUNT(*) AS n FROM (SELECT DISTINCT k, v FROM s [RANGE 5 SECONDS]) AS p GROUP BY k",
...     },
...     streams={"s": [{"ts": 200, "k": "a", "v": 1}, {"ts": 800, "k": "a", "v": 2}]},
...     unit="ms", until=10_000,
... )
>>> results["values"].at(1_000)
[{'k': 'a', 'n': 2}]
>>> results["pairs"].at(5_200)
[{'k': 'a', 'v': 2}]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from sash.arguments import check_count, check_mapping, check_text, check_word
from sash.errors import CatalogError, OptionError
from sash.plan.options import MOST_SHARDS
from sash.plan.statistics import Statistics
from sash.planning import Planned, PlannedJob, plan_query, plan_together
from sash.runtime.analyze import Actual
from sash.runtime.legs import static_tables
from sash.runtime.local import LocalRun
from sash.state.changes import ChangeBatch, concat
from sash.testing.inputs import Inputs, MicroBatch, ReplayInput, micro_batches, numbered
from sash.testing.release import simulate_releases
from sash.testing.replayed import DELAYED, NEVER, ReplayedChanges, last_release, make_result, query_options
from sash.testing.result import Result
from sash.testing.simulation import SimulationSettings
from sash.testing.tables import Rows
from sash.testing.times import Instant, TimeUnit
from sash.time import FOREVER
from sash.user_library import Packer, add_given

Queries = Mapping[str, str] | Sequence[tuple[str, str] | tuple[str, str, Mapping[str, Any]]]
"""The queries of a job: texts by name, or names and texts with options."""

_OPTIONS = ("strategy", "join", "tau", "partitions", "buckets", "purge", "probe", "patience", "reorder")


def replay_job(
    queries: Queries,
    streams: Mapping[str, Rows],
    relations: Mapping[str, Rows] | None = None,
    runtime: str = "local",
    unit: str = "ms",
    until: Instant | None = None,
    batch: int | Sequence[int] | None = None,
    nrrs: Mapping[str, Rows] | None = None,
    *,
    schemas: Mapping[str, str] | None = None,
    slack: float | Mapping[str, float] = 0,
    partition_by: Mapping[str, str] | None = None,
    shards: int = 2,
    keys: Mapping[str, Sequence[str]] | None = None,
    statistics: Mapping[str, Statistics] | None = None,
    unbounded: str = "refuse",
    functions: Mapping[str, tuple[Any, ...]] | None = None,
    aggregates: Mapping[str, tuple[Any, ...]] | None = None,
) -> dict[str, Result]:
    """Run the queries together, as one job, and return the changes of each one's answer by its name.

    `queries` is a dict of texts by name, or a list of (name, text) and (name, text, options), where the options are those
    of `replay`: strategy, join, tau, partitions, buckets, purge, probe, patience and reorder. The queries share scans and
    operators where they can; each answer is the one that `replay` gives for the query alone. All other arguments are those of `replay`.

    The counts of a result are those of all operators of the job that the query needs, so an operator that two queries
    share is in the counts of both, and likewise for rows in state and for late rows.
    """
    units = TimeUnit(unit)
    check_word("runtime", runtime, ("local", "spark"))
    shards = check_count("shards", shards, most=MOST_SHARDS)
    catalog, inputs, tables = Inputs.of(streams, relations, nrrs).read(
        units, schemas, slack, keys, statistics, unbounded, partition_by
    )
    pack: Packer | None = None
    if runtime == "spark":
        from sash.spark.packing import pack
    add_given(catalog, functions, aggregates, pack)
    end = FOREVER if until is None else units.instant("until", until) + 1
    planned: dict[str, Planned] = {}
    for name, sql, given in _listed(queries):
        planned[name] = plan_query(sql, catalog, shards=shards, options=query_options(units, **given))
    job = plan_together(planned, shards)
    batches = micro_batches(inputs, batch)
    last = max((last_release(query.options.tau, end) for query in planned.values()), default=end)
    if runtime == "spark":
        made = _replay_on_spark(job, inputs, tables, batches, last, shards)
    else:
        made = _replay_locally(job, tables, batches, last, shards)
    results: dict[str, Result] = {}
    for name, query in planned.items():
        settings = SimulationSettings(probe=query.options.probe, patience=query.options.patience)
        simulated = None
        if settings != SimulationSettings() or query.physical.strategy in DELAYED:
            simulated = simulate_releases(query, tables, batches, inputs, end, settings)
        results[name] = make_result(
            query, made[name], simulated, settings, units, inputs, tables, end, local=runtime == "local"
        )
    return results


def _listed(queries: Queries) -> list[tuple[str, str, Mapping[str, Any]]]:
    """The name, text and options of every query."""
    if isinstance(queries, Mapping):
        return [(check_text("the name of a query", name), sql, {}) for name, sql in queries.items()]
    listed: list[tuple[str, str, Mapping[str, Any]]] = []
    for name, sql, *rest in queries:
        if any(name == known for known, _, _ in listed):
            raise CatalogError(f"two queries are named {name}: give each query of a job its own name")
        given = check_mapping(f"the options of {name}", rest[0] if rest else None)
        unknown = next((option for option in given if option not in _OPTIONS), None)
        if unknown is not None:
            raise OptionError(f"query {name} has an unknown option {unknown!r}: use {', '.join(_OPTIONS)}")
        listed.append((name, sql, given))
    return listed


def _replay_on_spark(
    job: PlannedJob,
    inputs: Mapping[str, ReplayInput],
    relations: Mapping[str, pa.Table],
    batches: Sequence[MicroBatch],
    end: int,
    shards: int,
) -> dict[str, ReplayedChanges]:
    from sash.spark.replay import replay_job_on_spark

    found = replay_job_on_spark(job, inputs, relations, batches, end, shards)
    return {
        name: ReplayedChanges(made.changes, made.late, made.state_rows, Actual(made.counts, {}, 0))
        for name, made in found.items()
    }


def _replay_locally(
    job: PlannedJob, relations: Mapping[str, pa.Table], batches: Sequence[MicroBatch], end: int, shards: int
) -> dict[str, ReplayedChanges]:
    run = LocalRun(job.physical, static_tables(job.physical, relations), shards)
    made: list[list[ChangeBatch]] = [run.advance_all(micro.rows, micro.clocks) for micro in batches]
    kept = run.operator_rows
    made.append(run.advance_all({}, dict.fromkeys((*job.streams, *job.changing), end), ended=True))
    made.append(run.flush_all())
    numbers = [*range(len(batches) + 1), NEVER]
    changes = [[numbered(part, number) for part in parts] for number, parts in zip(numbers, made, strict=True)]
    sizes, left = run.stage_bytes, run.stage_rows
    results: dict[str, ReplayedChanges] = {}
    for number, output in enumerate(job.physical.outputs):
        stages = job.physical.stages_of(output)
        names = {name for stage in stages for name in stage.operator_names}
        own = {stage.index: sizes[stage.index] for stage in stages}
        actual = Actual(
            {name: counts for name, counts in run.counts.items() if name in names},
            {name: rows for name, rows in kept.items() if name in names},
            sum(own.values()),
            own,
        )
        results[output.query] = ReplayedChanges(
            concat([part[number] for part in changes]).sorted(),
            sum(run.late_rows[stage.index] for stage in stages),
            sum(left[stage.index] for stage in stages),
            actual,
        )
    return results

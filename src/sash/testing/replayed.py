"""From the changes of a run to the result of a replay: when each was released, and the figures of the run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from sash.errors import StrategyError
from sash.plan.options import JoinForm, Options, ReplayStrategy
from sash.plan.statistics import Statistics, highest_rate, seen
from sash.plan.types import Field
from sash.planning import Planned
from sash.rows import to_dicts
from sash.runtime.analyze import Actual
from sash.runtime.shard import released_by
from sash.state.changes import ChangeBatch
from sash.testing.inputs import TIME, ReplayInput
from sash.testing.release import match_releases
from sash.testing.result import Change, Result
from sash.testing.simulation import SimulationResult, SimulationSettings
from sash.testing.times import TimeUnit
from sash.time import FOREVER, SECOND

DELAYED = ("input-triggered", "clock-triggered", "piggyback")
"""Strategies that may release a change after its time even without slow operators."""


NEVER = -1


@dataclass(frozen=True)
class ReplayedChanges:
    """The changes of a query in order of time, its late rows, the rows in state at the end, and the figures of the run.

    The last column of the changes is the number of the micro-batch that released each, `NEVER` for none.
    """

    changes: ChangeBatch
    late: int
    state_rows: int
    actual: Actual


def query_options(
    unit: TimeUnit,
    strategy: ReplayStrategy = "auto",
    join: JoinForm = "auto",
    tau: float | None = None,
    partitions: int | None = None,
    buckets: int | None = None,
    purge: float | None = None,
    probe: float | None = None,
    patience: float | None = None,
    reorder: bool = True,
) -> Options:
    """The options of a replayed query; times are in the replay's unit."""
    return Options(
        strategy,
        join,
        None if tau is None else unit.length("tau", tau, 1, StrategyError),
        partitions,
        None if purge is None else unit.length("purge", purge, 0, StrategyError),
        buckets,
        None if probe is None else unit.length("probe", probe, 1, StrategyError),
        None if patience is None else unit.length("patience", patience, 0, StrategyError),
        reorder,
    )


def last_release(tau: int | None, end: int) -> int:
    """The clock to which a run must go so that every change before `end` is released."""
    return end if end >= FOREVER else released_by(tau, end - 1) + 1


def make_result(
    planned: Planned,
    made: ReplayedChanges,
    simulated: SimulationResult | None,
    settings: SimulationSettings,
    units: TimeUnit,
    inputs: Mapping[str, ReplayInput],
    tables: Mapping[str, pa.Table],
    end: int,
    *,
    local: bool,
) -> Result:
    """The result of a query. Where releases were simulated, release times are those, and locally, with delays, the counts."""
    *columns, numbers = made.changes.columns
    changes, batches = made.changes.with_columns(columns), numbers.to_numpy()
    counts, options = dict(made.actual.counts), planned.options
    released = changes.ts + max((given.slack for given in inputs.values()), default=0)
    switches = {name: seen.switches for name, seen in counts.items() if planned.physical.strategy == "piggyback"}
    if simulated is not None:
        if local and settings.delays:
            counts, switches = simulated.counts, simulated.switches
        if settings.delays or planned.physical.strategy == "clock-triggered":
            order = np.argsort(simulated.changes.ts, kind="stable")
            changes, released = simulated.changes.take(order), simulated.released[order]
            batches = np.full(len(changes), NEVER)
        else:
            released = match_releases(changes, simulated)
    kept = np.flatnonzero(changes.ts < end)
    changes, released, batches = changes.take(kept), released[kept], batches[kept]
    rows = to_dicts(planned.schema, changes.columns)
    listed = [
        Change(
            units.number(ts),
            "+" if sign > 0 else "-",
            row,
            _release_time(at, options.tau, end, units),
            None if batch == NEVER else batch,
        )
        for ts, sign, row, at, batch in zip(
            changes.ts.tolist(), changes.sign.tolist(), rows, released.tolist(), batches.tolist(), strict=True
        )
    ]
    actual = replace(made.actual, counts=counts, seconds=_span(inputs.values()))
    observed = _observed(inputs, tables)
    return Result(
        listed,
        counts,
        made.late,
        made.state_rows,
        planned.schema,
        switches,
        planned,
        actual,
        observed,
        _shown(units, inputs),
    )


def _shown(unit: TimeUnit, inputs: Mapping[str, ReplayInput]) -> TimeUnit:
    """The unit, with datetimes if the times of all inputs with rows are such."""
    dated = [given.dated for given in inputs.values() if len(given.times)]
    return replace(unit, datetimes=bool(dated) and all(dated))


def _observed(inputs: Mapping[str, ReplayInput], tables: Mapping[str, pa.Table]) -> dict[str, Statistics]:
    """The statistics of all rows of every stream and relation."""
    span = round(SECOND * (_span(inputs.values()) or 0))
    made = {
        name: seen(given.schema, given.columns[: len(given.schema)], span, TIME if given.signs is None else "")
        for name, given in inputs.items()
    }
    for name, given in inputs.items():
        peak = None if given.signs is not None else highest_rate(given.times, span)
        made[name] = made[name] if peak is None else replace(made[name], peak=max(peak, made[name].rate or 0.0))
    for name, table in tables.items():
        schema = tuple(Field(field.name, field.type) for field in table.schema)
        columns = [column.combine_chunks() for column in table.columns]
        made[name] = replace(seen(schema, columns, 1, ""), rate=None, rows=float(table.num_rows))
    return made


def _span(inputs: Iterable[ReplayInput]) -> float | None:
    """The seconds from the first row of all inputs to the last."""
    times = np.concatenate([np.empty(0, np.int64), *(given.times for given in inputs)])
    return float(times.max() - times.min()) / SECOND if len(times) else None


def _release_time(at: int, tau: int | None, end: int, unit: TimeUnit) -> int | float | None:
    """The time at which a change that is ready at `at` is released: at once, or at the next multiple of tau."""
    if at >= FOREVER or (tau is not None and released_by(tau, at) >= end):
        return None
    return unit.number(released_by(tau, at))

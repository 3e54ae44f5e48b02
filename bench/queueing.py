"""Release times of a pipeline whose operators are servers with queues, computed stream by stream instead of event by event.

What an operator outputs does not depend on when it runs, so every operator runs once over all of its input. The time at
which it *can* run up to an instant follows from the rows on its edges and from the strategy, and the time at which its
output leaves from the recurrence of a single server: it starts when the work has come and the work before it is done. The
release times are those of `sash.testing.simulation`, which goes from event to event; a test compares the two.

Time-message and piggyback are not covered: what their edges do depends on the edge's history.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from sash.errors import StrategyError
from sash.operators.window import assign
from sash.physical.facts import must_expire
from sash.physical.nodes import Leaf, Operation, PhysicalPlan, StreamLeg, operations
from sash.plan.nodes import Node
from sash.runtime.build import build
from sash.runtime.counts import Counts
from sash.runtime.legs import LegRunner
from sash.state.changes import ChangeBatch
from sash.state.memory import HeapMemory, Ints
from sash.time import BEGINNING, FOREVER

Durations = np.ndarray[tuple[int], np.dtype[np.float64]]
Times = Callable[[Ints], Ints]
"""From instants to the times at which something holds for them and all instants before."""

CONTINUOUS = ("time-probing", "negative-tuple", "hybrid", "direct", "update-pattern-aware")
"""Strategies whose operators know at any moment how far their inputs are complete."""


@dataclass(frozen=True)
class Released:
    """The changes of the answer, the time at which each left (FOREVER: never), and the rows that each operator took in."""

    changes: ChangeBatch
    released: Ints
    counts: Mapping[str, Counts]


@dataclass(frozen=True)
class _Part:
    """A leg or an operator: its output in order of time, when each row reaches the reader, and what is known of the time.

    `complete` is when all output up to an instant has left the operator; `learnt` is when the operator has learnt of it.
    """

    rows: ChangeBatch
    due: Ints
    complete: Times
    learnt: Times


def release_times(
    plan: PhysicalPlan,
    tables: Mapping[Node, pa.Table],
    inputs: Mapping[str, ChangeBatch],
    until: int,
    service: Mapping[str, float],
    probe: int | None = None,
    since: int = 0,
) -> Released:
    """Compute the release times of all changes up to `until`, and count the rows from `since` on.

    `service` has the microseconds per row of operators (`0.1.Join`) and legs (`leg0`), and per row of output where an
    operator runs without a row of input, because rows expire (`0.1.Join expiring`); others take no time. With `probe`,
    operators probe their inputs at multiples of it, one level at a time; without it, they do so at any moment, for free.
    """
    if plan.strategy not in (*CONTINUOUS, "input-triggered"):
        raise StrategyError(f"release times of {plan.strategy} are not computed here; use one of {CONTINUOUS}")
    legs = [_leg(leg, tables, inputs, until, service.get(f"leg{number}", 0.0)) for number, leg in enumerate(plan.legs)]
    counts: dict[str, Counts] = {}
    roots: list[_Part] = []
    for stage in plan.stages:
        made: dict[int, _Part] = {}
        for index, node in enumerate(operations(stage.root)):
            name = f"{stage.index}.{index}.{node.name}"
            below = [made[id(child)] if id(child) in made else _below(child, legs, roots) for child in node.inputs]
            learns = _learns(plan.strategy, node, below, probe)
            times = service.get(name, 0.0), service.get(f"{name} expiring", service.get(name, 0.0))
            made[id(node)] = _operator(node, tables, below, learns, until, times)
            taken = np.concatenate([part.rows.sign[part.rows.ts >= since] for part in below])
            counts[name] = Counts(len(taken), int(np.count_nonzero(taken < 0)))
        roots.append(_below(stage.root, legs, roots) if isinstance(stage.root, Leaf) else made[id(stage.root)])
    root = roots[-1]
    return Released(root.rows, np.where(root.due <= until, root.due, FOREVER), counts)


def departures(now: Ints, taken: Durations) -> Ints:
    """When a server is done with jobs that come at the times `now`, in order, and take so many microseconds each."""
    done = np.cumsum(taken)
    free = done + np.maximum.accumulate(now - (done - taken)) if len(now) else done
    return np.maximum(now, np.rint(free).astype(np.int64))


def _leg(
    leg: object, tables: Mapping[Node, pa.Table], inputs: Mapping[str, ChangeBatch], until: int, service: float
) -> _Part:
    if not isinstance(leg, StreamLeg):
        raise StrategyError("only pipelines over streams and static tables are computed here")
    arrivals = inputs[leg.stream]
    arrivals = arrivals.slice(0, int(np.searchsorted(arrivals.ts, until, side="right")))
    rows = assign(leg.window, LegRunner(leg.node, tables).run(arrivals)).sorted()
    done = departures(arrivals.ts, np.full(len(arrivals), service))
    due = done[np.searchsorted(arrivals.ts, rows.ts, side="right") - 1]

    def complete(instants: Ints) -> Ints:
        return np.maximum(instants, _latest(arrivals.ts, done, instants))

    return _Part(rows, due, complete, complete)


def _below(child: object, legs: Sequence[_Part], roots: Sequence[_Part]) -> _Part:
    assert isinstance(child, Leaf)
    return legs[child.leg] if child.leg is not None else roots[child.stage or 0]


def _delivered(below: Sequence[_Part]) -> Times:
    """When all input up to an instant has reached the operator."""

    def delivered(instants: Ints) -> Ints:
        times = [np.maximum(_latest(part.rows.ts, part.due, instants), part.complete(instants)) for part in below]
        return _as_ints(np.maximum.reduce(times))

    return delivered


def _learns(strategy: str, node: Operation, below: Sequence[_Part], probe: int | None) -> Times:
    """When the operator learns that an instant is over: the first way on any edge."""
    if strategy in CONTINUOUS and probe is None:
        return _delivered(below)

    def learnt(instants: Ints) -> Ints:
        times = []
        for part, child in zip(below, node.inputs, strict=True):
            counts = part.rows.sign > 0 if child.expiry in ("fifo", "calendar") else np.ones(len(part.rows), bool)
            times.append(_first(part.rows.ts[counts], part.due[counts], instants))
            if strategy in CONTINUOUS and probe is not None:
                known = part.learnt(instants)
                if not isinstance(child, Leaf) or child.leg is None:
                    known = known + 1  # a probe reads what the operator below had learnt before that instant
                times.append(np.where(known < FOREVER, -(-known // probe) * probe, FOREVER))
        return _as_ints(np.minimum.reduce(times))

    return learnt


def _operator(
    node: Operation,
    tables: Mapping[Node, pa.Table],
    below: Sequence[_Part],
    learns: Times,
    until: int,
    service: tuple[float, float],
) -> _Part:
    inputs = [part.rows for part in below]
    output = build(node, HeapMemory(), tables).process(inputs, until + 1)
    delivered = _delivered(below)

    def runs(instants: Ints) -> Ints:
        return np.maximum(delivered(instants), learns(instants))

    instants = np.unique(np.concatenate([output.ts, *(rows.ts for rows in inputs)]))
    times, run = np.unique(runs(instants), return_inverse=True)
    size = len(times)
    taken = sum(
        (np.bincount(run[np.searchsorted(instants, rows.ts)], minlength=size) for rows in inputs), np.zeros(size, int)
    )
    mine = run[np.searchsorted(instants, output.ts)]
    work = np.where(taken > 0, taken * service[0], np.bincount(mine, minlength=size) * service[1])
    known = times < FOREVER
    due = np.full(size, FOREVER)
    due[known] = departures(times[known], work[known])
    return _Part(output, due[mine], runs if must_expire(node) else delivered, learns)


def _as_ints(times: Any) -> Ints:
    made: Ints = times
    return made


def _latest(ts: Ints, due: Ints, instants: Ints) -> Ints:
    """The time at which the last of the rows up to each instant is there."""
    latest = np.concatenate((np.array([BEGINNING]), np.maximum.accumulate(due) if len(due) else due))
    return latest[np.searchsorted(ts, instants, side="right")]


def _first(ts: Ints, due: Ints, instants: Ints) -> Ints:
    """The time at which the first row at or after each instant is there; FOREVER without such a row."""
    return np.concatenate((due, np.array([FOREVER])))[np.searchsorted(ts, instants, side="left")]

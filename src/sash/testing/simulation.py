"""Simulation: a plan run event by event, on one clock, with queues between its operators.

Everything that can change an answer happens at an instant that is known beforehand: the arrival of a row, or the end of
its life. The simulated system clock goes from one such instant to the next. At each, operators take from their queues
what has reached them, in the order of the pipeline; each runs as far as it has *heard* (`strategies/`) and as its inputs
are complete, and what it puts out reaches the next operator after its delay. So when a change leaves the last operator is
exact, repeatable, and does not depend on batches. The operators are those that run everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush

import numpy as np
import pyarrow as pa

from sash.errors import StrategyError
from sash.operators.window import assign
from sash.physical.nodes import (
    Leaf,
    Operation,
    PhysicalPlan,
    RelationLeg,
    Sample,
    StreamLeg,
    UpdateLeg,
    operations,
)
from sash.physical.strategies.base import TimeSettings
from sash.physical.strategies.piggyback import PiggybackedTime
from sash.physical.strategies.registry import strategy_of
from sash.plan.nodes import Node
from sash.runtime.counts import Counts
from sash.runtime.legs import LegRunner
from sash.runtime.pacing import patience
from sash.runtime.shard import relation_rows
from sash.state.changes import ChangeBatch, concat
from sash.state.memory import HeapMemory, Ints
from sash.testing.pipeline import Edge, Source, Step
from sash.time import BEGINNING, FOREVER

ALIASES = {"select": "filter", "group by": "aggregate", "minus": "setoperation", "except": "setoperation"}


@dataclass(frozen=True)
class Feed:
    """The rows of one stream, sorted by time, and how long they are held back."""

    rows: ChangeBatch
    slack: int = 0


@dataclass(frozen=True)
class Pace:
    """How slow operators are, in microseconds by name: `delays` is how long a row takes through one, whatever its load;
    `service` how long one is busy with a row, so that rows queue."""

    delays: Mapping[str, float] = field(default_factory=dict)
    service: Mapping[str, float] = field(default_factory=dict)
    probe: int | None = None
    patience: int | None = None


@dataclass(frozen=True)
class Simulated:
    """The changes in the order of their release, when each left (FOREVER: never), and what the operators did.

    `service` is how long this machine took for a row in each operator, in microseconds: what `Pace.service` is to be given
    if queues are to form as they would here.
    """

    changes: ChangeBatch
    released: Ints
    counts: dict[str, Counts]
    switches: dict[str, int]
    service: dict[str, float]


class Simulation:
    """A plan over its streams, ready to run."""

    def __init__(
        self, plan: PhysicalPlan, tables: Mapping[Node, pa.Table], feeds: Mapping[str, Feed], pace: Pace | None = None
    ) -> None:
        self._strategy = strategy_of(plan.strategy)
        self._pace = pace or Pace()
        self._sources: list[Source] = []
        self._steps: list[Step] = []
        self._names: dict[str, Source | Step] = {}
        self._check_names(plan)
        if any(isinstance(node, Sample) for stage in plan.stages for node in operations(stage.root)):
            raise StrategyError(
                "a sliding window that meets a non-retroactive relation cannot be simulated: leave out SLIDE, or use a "
                "strategy that needs no simulation, such as auto, without delays, probe and patience"
            )
        legs = [self._source(plan, number, tables, feeds) for number in range(len(plan.legs))]
        roots: list[Source | Step] = []
        for stage in plan.stages:
            made: dict[int, Source | Step] = {}
            for index, node in enumerate(operations(stage.root)):
                made[id(node)] = self._step(node, f"{stage.index}.{index}.{node.name}", tables, made, legs, roots)
            root = stage.root
            roots.append(legs[root.leg or 0] if isinstance(root, Leaf) else made[id(root)])
        self._root = roots[-1]
        self._dtypes = [column.dtype for column in plan.schema]

    def run(self, until: int) -> Simulated:
        """Everything up to `until`; then, marked as never released, what operators have not noticed by then."""
        messages = self._strategy.messages
        agenda = [time for time in self._instants() if time <= until]
        changes: list[ChangeBatch] = []
        released: list[Ints] = []
        servers: list[Source | Step] = [*self._sources, *self._steps]
        seen = BEGINNING
        while agenda:
            now = heappop(agenda)
            if now <= seen or now > until:
                continue
            seen = now
            for server in servers:
                output, due = server.advance(now, messages)
                self._plan(agenda, due, now)
                if isinstance(server, Step):
                    for edge in server.inputs:
                        self._plan(agenda, edge.ear.wake or now, now)
                if server is self._root and output is not None and len(output):
                    changes.append(output)
                    released.append(np.full(len(output), due if due <= until else FOREVER))
        if self._strategy.name != "clock-triggered":
            rest = self._rest(min(until, int(FOREVER) - 1))
            changes.append(rest)
            released.append(np.full(len(rest), FOREVER))
        return Simulated(
            concat([ChangeBatch.empty(self._dtypes), *changes]),
            np.concatenate([np.empty(0, np.int64), *released]).astype(np.int64),
            {name: _counted(server) for name, server in self._names.items()},
            self._switches(),
            {step.name: step.measured for step in self._steps},
        )

    def _rest(self, until: int) -> ChangeBatch:
        """What would have been said, had everyone heard of the time."""
        rest = [ChangeBatch.empty(self._dtypes)]
        for source in self._sources:
            output, _ = source.advance(until + source.slack, messages=False)
            if source is self._root:
                rest.append(output)
        for step in self._steps:
            made, _ = step.advance(int(FOREVER), messages=False, everything=True)
            if step is self._root and made is not None:
                rest.append(made)
        return concat(rest)

    def _switches(self) -> dict[str, int]:
        return {
            f"{step.name}.{index}": edge.ear.switches
            for step in self._steps
            for index, edge in enumerate(step.inputs)
            if isinstance(edge.ear, PiggybackedTime) and edge.stamped
        }

    @staticmethod
    def _plan(agenda: list[int], due: int, now: int) -> None:
        if due > now:
            heappush(agenda, due)

    def _instants(self) -> list[int]:
        """When something may happen: rows come and go, each held back by some stream's slack; and probes."""
        each = [source.instants for source in self._sources] or [np.zeros(1, np.int64)]
        times = np.unique(np.concatenate([*each, np.zeros(1, np.int64)]))
        slacks = {source.slack for source in self._sources} or {0}
        held = np.unique(np.concatenate([times + slack for slack in slacks]))
        period = self._pace.probe
        if period is not None:
            held = np.unique(np.concatenate((held, -(-held // period) * period)))
        return [int(time) for time in held if time < FOREVER]

    def _source(
        self, plan: PhysicalPlan, number: int, tables: Mapping[Node, pa.Table], feeds: Mapping[str, Feed]
    ) -> Source:
        leg = plan.legs[number]
        if isinstance(leg, RelationLeg):
            source = Source(relation_rows(tables, leg, (), 0, 1), 0, 0, 0, 0)
        elif isinstance(leg, UpdateLeg):
            updates = feeds[leg.stream].rows
            source = Source(updates, len(updates), 0, 0, 0)
        else:
            feed = feeds[leg.stream]
            rows = assign(leg.window, LegRunner(leg.node, tables).run(feed.rows)).sorted()
            names = _leg_names(leg)
            delay = sum(self._slowness(self._pace.delays, name) for name in names)
            service = sum(self._slowness(self._pace.service, name) for name in names)
            source = Source(rows, len(feed.rows), feed.slack, delay, service)
        self._sources.append(source)
        self._names[f"leg{number}"] = source
        return source

    def _step(
        self,
        node: Operation,
        name: str,
        tables: Mapping[Node, pa.Table],
        made: Mapping[int, Source | Step],
        legs: Sequence[Source],
        roots: Sequence[Source | Step],
    ) -> Step:
        delay, service = (
            self._slowness(given, name) or self._slowness(given, node.name)
            for given in (self._pace.delays, self._pace.service)
        )
        step = Step(node, name, tables, self._strategy.synchronised, delay, service)
        for child in node.inputs:
            below = made.get(id(child))
            if below is None:
                assert isinstance(child, Leaf)
                below = legs[child.leg] if child.leg is not None else roots[child.stage or 0]
            waits = patience(child.horizon) if self._pace.patience is None else self._pace.patience
            ear = self._strategy.time_source(HeapMemory(), TimeSettings(self._pace.probe, waits))
            edge = Edge(below, child, ear)
            below.edges.append(edge)
            step.inputs.append(edge)
        self._steps.append(step)
        self._names[name] = step
        return step

    @staticmethod
    def _slowness(given: Mapping[str, float], name: str) -> float:
        for key, slowness in given.items():
            if ALIASES.get(key.lower(), key.lower()) == name.lower():
                return slowness
        return 0

    def _check_names(self, plan: PhysicalPlan) -> None:
        known = {name.lower() for leg in plan.legs if isinstance(leg, StreamLeg) for name in _leg_names(leg)}
        for stage in plan.stages:
            for index, node in enumerate(operations(stage.root)):
                known |= {node.name.lower(), f"{stage.index}.{index}.{node.name}".lower()}
        for key in (*self._pace.delays, *self._pace.service):
            if ALIASES.get(key.lower(), key.lower()) not in known:
                raise StrategyError(
                    f"delays: there is no operator {key!r} in this plan; there are {', '.join(sorted(known))}"
                )


def _leg_names(leg: StreamLeg) -> list[str]:
    """The names by which the parts of a leg can be made slow: its stream's and its operators'."""
    names, node = [leg.stream], leg.node
    while node.children:
        names.append("Lookup" if type(node).__name__ == "Join" else type(node).__name__)
        node = node.children[0]
    return names


def _counted(server: Source | Step) -> Counts:
    if isinstance(server, Step):
        server.counts.messages = sum(edge.messages for edge in server.inputs)
    return server.counts

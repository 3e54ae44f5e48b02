"""Simulation: a plan run event by event, on one clock, with queues between its operators.

Everything that can change an answer happens at an instant that is known beforehand: the arrival of a row, or its
expiration. The simulated system clock goes from one such instant to the next. At each, operators take the delivered rows
from their queues, in the order of the pipeline. Each runs up to the time that it has received (`physical/strategies/`)
and that its inputs are complete to, and its output reaches the next operator after its delay. So the release time of a
change is exact, repeatable, and independent of batches. The operators are those of the other runtimes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush

import numpy as np
import pyarrow as pa

from sash.errors import StrategyError
from sash.operators.window import assign
from sash.physical.nodes import Leaf, Operation, PhysicalPlan, RelationLeg, Sample, StreamLeg, UpdateLeg, operations
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
from sash.testing.pipeline import InputQueue, LegServer, OperatorServer
from sash.time import BEGINNING, FOREVER

ALIASES = {"select": "filter", "group by": "aggregate", "minus": "setoperation", "except": "setoperation"}


@dataclass(frozen=True)
class SimulatedInput:
    """The rows of one stream, sorted by time, and its slack."""

    rows: ChangeBatch
    slack: int = 0


@dataclass(frozen=True)
class SimulationSettings:
    """Times of a simulation in microseconds: the delay of a row in operators by name, and those of the strategies."""

    delays: Mapping[str, float] = field(default_factory=dict)
    probe: int | None = None
    patience: int | None = None


@dataclass(frozen=True)
class SimulationResult:
    """The changes in the order of their release, their release times (FOREVER: never), and the operators' counts."""

    changes: ChangeBatch
    released: Ints
    counts: dict[str, Counts]
    switches: dict[str, int]


class Simulation:
    """A plan over its inputs, ready to run. `operators` are its operators, in the order of the pipeline."""

    def __init__(
        self,
        plan: PhysicalPlan,
        tables: Mapping[Node, pa.Table],
        inputs: Mapping[str, SimulatedInput],
        settings: SimulationSettings | None = None,
    ) -> None:
        self._strategy = strategy_of(plan.strategy)
        self._settings = settings or SimulationSettings()
        self._check_names(plan)
        if any(isinstance(node, Sample) for stage in plan.stages for node in operations(stage.root)):
            raise StrategyError(
                "a sliding window that meets a non-retroactive relation cannot be simulated: leave out SLIDE, or use a "
                "strategy that needs no simulation, such as auto, without delays, probe and patience"
            )
        self.operators: list[OperatorServer] = []
        self._legs = [self._leg(plan, number, tables, inputs) for number in range(len(plan.legs))]
        roots: list[LegServer | OperatorServer] = []
        for stage in plan.stages:
            made: dict[int, OperatorServer] = {}
            for index, node in enumerate(operations(stage.root)):
                made[id(node)] = self._operator(node, f"{stage.index}.{index}.{node.name}", tables, made, roots)
            root = stage.root
            roots.append(self._legs[root.leg or 0] if isinstance(root, Leaf) else made[id(root)])
        self._root = roots[-1]
        self._dtypes = [column.dtype for column in plan.schema]

    def run(self, until: int) -> SimulationResult:
        """Simulate up to `until`. Changes that operators have not noticed by then are marked as never released."""
        messages = self._strategy.messages
        agenda = [time for time in self._instants() if time <= until]
        changes: list[ChangeBatch] = []
        released: list[Ints] = []
        servers: list[LegServer | OperatorServer] = [*self._legs, *self.operators]
        last = BEGINNING
        while agenda:
            now = heappop(agenda)
            if now <= last or now > until:
                continue
            last = now
            for server in servers:
                output, due = server.advance(now, messages)
                self._schedule(agenda, due, now)
                if isinstance(server, OperatorServer):
                    for queue in server.inputs:
                        self._schedule(agenda, queue.time_source.wake or now, now)
                if server is self._root and output is not None and len(output):
                    changes.append(output)
                    released.append(np.full(len(output), due if due <= until else FOREVER))
        if self._strategy.name != "clock-triggered":
            rest = self._never_released(min(until, FOREVER - 1))
            changes.append(rest)
            released.append(np.full(len(rest), FOREVER))
        return SimulationResult(
            concat([ChangeBatch.empty(self._dtypes), *changes]),
            np.concatenate([np.empty(0, np.int64), *released]).astype(np.int64),
            self._counts(),
            self._switches(),
        )

    def _never_released(self, until: int) -> ChangeBatch:
        """The changes that would have been released if every operator had received the time."""
        rest = [ChangeBatch.empty(self._dtypes)]
        for leg in self._legs:
            output, _ = leg.advance(until + leg.slack, messages=False)
            if leg is self._root:
                rest.append(output)
        for operator in self.operators:
            made, _ = operator.advance(FOREVER, messages=False, everything=True)
            if operator is self._root and made is not None:
                rest.append(made)
        return concat(rest)

    def _counts(self) -> dict[str, Counts]:
        counts = {f"leg{number}": leg.counts for number, leg in enumerate(self._legs)}
        for operator in self.operators:
            operator.counts.messages = sum(queue.messages for queue in operator.inputs)
            counts[operator.name] = operator.counts
        return counts

    def _switches(self) -> dict[str, int]:
        return {
            f"{operator.name}.{index}": queue.time_source.switches
            for operator in self.operators
            for index, queue in enumerate(operator.inputs)
            if isinstance(queue.time_source, PiggybackedTime) and queue.stamped
        }

    @staticmethod
    def _schedule(agenda: list[int], due: int, now: int) -> None:
        if due > now:
            heappush(agenda, due)

    def _instants(self) -> list[int]:
        """The times of arrivals and expirations, each later by some stream's slack, and the probes after them."""
        each = [leg.instants for leg in self._legs] or [np.zeros(1, np.int64)]
        times = np.unique(np.concatenate([*each, np.zeros(1, np.int64)]))
        slacks = {leg.slack for leg in self._legs} or {0}
        held = np.unique(np.concatenate([times + slack for slack in slacks]))
        period = self._settings.probe
        if period is not None:
            held = np.unique(np.concatenate((held, -(-held // period) * period)))
        return [int(time) for time in held if time < FOREVER]

    def _leg(
        self, plan: PhysicalPlan, number: int, tables: Mapping[Node, pa.Table], inputs: Mapping[str, SimulatedInput]
    ) -> LegServer:
        leg = plan.legs[number]
        if isinstance(leg, RelationLeg):
            return LegServer(relation_rows(tables, leg, (), 0, 1), 0, 0, 0)
        given = inputs[leg.stream]
        if isinstance(leg, UpdateLeg):
            return LegServer(given.rows, len(given.rows), 0, 0)
        rows = assign(leg.window, LegRunner(leg.node, tables).run(given.rows)).sorted()
        delay = sum(self._delay(name) for name in _leg_names(leg))
        return LegServer(rows, len(given.rows), given.slack, delay)

    def _operator(
        self,
        node: Operation,
        name: str,
        tables: Mapping[Node, pa.Table],
        made: Mapping[int, OperatorServer],
        roots: Sequence[LegServer | OperatorServer],
    ) -> OperatorServer:
        delay = self._delay(name) or self._delay(node.name)
        operator = OperatorServer(node, name, tables, self._strategy.synchronised, delay)
        for child in node.inputs:
            below: LegServer | OperatorServer | None = made.get(id(child))
            if below is None:
                assert isinstance(child, Leaf)
                below = self._legs[child.leg] if child.leg is not None else roots[child.stage or 0]
            waits = patience(child.horizon) if self._settings.patience is None else self._settings.patience
            time_source = self._strategy.time_source(HeapMemory(), TimeSettings(self._settings.probe, waits))
            queue = InputQueue(below, child, time_source)
            below.outputs.append(queue)
            operator.inputs.append(queue)
        self.operators.append(operator)
        return operator

    def _delay(self, name: str) -> float:
        for key, delay in self._settings.delays.items():
            if ALIASES.get(key.lower(), key.lower()) == name.lower():
                return delay
        return 0

    def _check_names(self, plan: PhysicalPlan) -> None:
        known = {name.lower() for leg in plan.legs if isinstance(leg, StreamLeg) for name in _leg_names(leg)}
        for stage in plan.stages:
            for index, node in enumerate(operations(stage.root)):
                known |= {node.name.lower(), f"{stage.index}.{index}.{node.name}".lower()}
        for key in self._settings.delays:
            if ALIASES.get(key.lower(), key.lower()) not in known:
                raise StrategyError(
                    f"delays: there is no operator {key!r} in this plan; use one of {', '.join(sorted(known))}"
                )


def _leg_names(leg: StreamLeg) -> list[str]:
    """The names by which the parts of a leg can be delayed: that of its stream and those of its operators."""
    names, node = [leg.stream], leg.node
    while node.children:
        names.append("Lookup" if type(node).__name__ == "Join" else type(node).__name__)
        node = node.children[0]
    return names

"""Service times: how long an operator takes for one row alone, and their use in a simulation, so that rows queue."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import median
from time import thread_time

import pyarrow as pa

from sash.physical.nodes import PhysicalPlan, StreamLeg
from sash.plan.nodes import Node
from sash.runtime.legs import LegRunner
from sash.state.changes import ChangeBatch
from sash.testing.pipeline import OperatorServer
from sash.testing.simulation import SimulatedInput, Simulation
from sash.time import SECOND

_LEG_ROWS = 200


def measure_service_times(
    plan: PhysicalPlan, tables: Mapping[Node, pa.Table], inputs: Mapping[str, SimulatedInput], until: int
) -> dict[str, float]:
    """Run the plan event by event; returns the microseconds per row in each leg and operator, as medians over all calls.

    Processor time, and a median, because code is compiled in the first calls. Calls without input,
    in which rows expire, count by themselves (`0.1.Distinct expiring`), per row of output.
    """
    taken: defaultdict[str, list[float]] = defaultdict(list)
    simulation = Simulation(plan, tables, inputs)
    for server in simulation.operators:
        _measure(server, taken)
    simulation.run(until)
    for number, leg in enumerate(plan.legs):
        if not isinstance(leg, StreamLeg):
            continue
        rows, runner = inputs[leg.stream].rows, LegRunner(leg.node, tables)
        for start in range(min(len(rows), _LEG_ROWS)):
            row = rows.slice(start, start + 1)
            begun = thread_time()
            runner.run(row)
            taken[f"leg{number}"].append(thread_time() - begun)
    return {name: round(SECOND * median(seconds), 1) for name, seconds in taken.items()}


def _measure(server: OperatorServer, taken: dict[str, list[float]]) -> None:
    process = server.operator.process

    def timed(batches: Sequence[ChangeBatch], clock: int) -> ChangeBatch:
        begun = thread_time()
        output = process(batches, clock)
        seconds, rows = thread_time() - begun, sum(map(len, batches))
        if rows:
            taken[server.name].append(seconds / rows)
        elif len(output):
            taken[f"{server.name} expiring"].append(seconds / len(output))
        return output

    vars(server.operator)["process"] = timed


def set_service_times(simulation: Simulation, times: Mapping[str, float]) -> None:
    """Let operators take this many microseconds per row, by their names (`0.1.Join`) or kinds (`Join`)."""
    for server in simulation.operators:
        service = times.get(server.name, times.get(server.name.split(".")[-1], 0))
        vars(server)["departure"] = _Busy(server.delay, service)


class _Busy:
    """The departures of an operator that is busy for `service` microseconds with each row."""

    def __init__(self, delay: int, service: float) -> None:
        self._delay = delay
        self._service = service
        self._free = 0.0

    def __call__(self, work: int, now: int) -> int:
        self._free = max(self._free, now) + work * self._service
        return max(now, round(self._free)) + self._delay

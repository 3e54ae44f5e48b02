"""Service times in a simulation: an operator processes one row at a time, so that rows queue."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from time import perf_counter

from sash.state.changes import ChangeBatch
from sash.testing.pipeline import OperatorServer
from sash.testing.simulation import Simulation
from sash.time import SECOND


def measure_service_times(simulation: Simulation, until: int) -> dict[str, float]:
    """Run the simulation; returns the microseconds per row that this machine took in each operator."""
    seconds: defaultdict[str, float] = defaultdict(float)
    rows: defaultdict[str, int] = defaultdict(int)
    for server in simulation.operators:
        _measure(server, seconds, rows)
    simulation.run(until)
    return {name: SECOND * taken / max(1, rows[name]) for name, taken in seconds.items()}


def _measure(server: OperatorServer, seconds: dict[str, float], rows: dict[str, int]) -> None:
    process = server.operator.process

    def timed(batches: Sequence[ChangeBatch], clock: int) -> ChangeBatch:
        begun = perf_counter()
        output = process(batches, clock)
        work = sum(map(len, batches)) or len(output)
        if work:
            seconds[server.name] += perf_counter() - begun
            rows[server.name] += work
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

"""Release times computed at once are those of the simulation that goes from event to event."""

from __future__ import annotations

import numpy as np
import pytest

from bench.paper1.measure import QUERIES, STRATEGIES
from bench.pipelines import Workload
from bench.queueing import departures
from sash.errors import StrategyError
from sash.testing.simulation import SimulationSettings

SERVICE = {
    "Join": 900.0,
    "Aggregate": 300.0,
    "Expire": 200.0,
    "Distinct": 700.0,
    "SetOperation": 1100.0,
    "Lookup": 150.0,
}


def named(workload: Workload, strategy: str) -> dict[str, float]:
    """The service times by the names of the plan's operators."""
    return {name: SERVICE.get(name.split(".")[-1], 50.0) for name in workload.compute(strategy, {}).counts}


@pytest.mark.parametrize("query", QUERIES)
def test_differential_release_times(query: str) -> None:
    workload = Workload(query, rate=20, window=2, length=7)
    for strategy in STRATEGIES:
        service = named(workload, strategy)
        one, other = workload.simulate(strategy, service), workload.compute(strategy, service)
        assert len(one.delays) > 10
        assert np.sort(one.delays).tolist() == np.sort(other.delays).tolist(), strategy
        if strategy != "input-triggered":
            assert (other.unreleased, other.work) == (one.unreleased, one.work)


def test_differential_deep_pipelines_with_queues() -> None:
    workload = Workload("q2", rate=20, window=1, length=3, streams=3)
    for strategy in STRATEGIES:
        service = {name: 20 * us for name, us in named(workload, strategy).items()}  # more work than time: queues grow
        one, other = workload.simulate(strategy, service), workload.compute(strategy, service)
        assert np.sort(one.delays).tolist() == np.sort(other.delays).tolist(), strategy


def test_a_server_is_busy_with_one_job_at_a_time() -> None:
    now = np.array([0, 1, 2, 100])
    assert departures(now, np.array([10.0, 20.0, 10.0, 10.0])).tolist() == [10, 30, 40, 110]
    assert departures(now, np.zeros(4)).tolist() == now.tolist()


def test_expirations_may_take_another_time_than_rows() -> None:
    workload = Workload("q4", rate=20, window=2, length=6)
    rows, ends = "0.0.Aggregate", "0.0.Aggregate expiring"
    assert workload.compute("time-probing", {rows: 1000.0}).average > 0.0009
    with_ends = workload.compute("time-probing", {rows: 0.0, ends: 1000.0})
    assert 0 < with_ends.average < workload.compute("time-probing", {rows: 1000.0, ends: 1000.0}).average
    assert workload.compute("negative-tuple", {ends: 1000.0}).longest == 0, "no operator expires rows but Expire"


def test_a_row_in_service_at_the_scan_holds_back_the_time() -> None:
    """The leg takes 5 ms per row, also for rows that its filter drops."""
    workload = Workload("q1", rate=50, window=2, length=6)
    free, slow = (workload.compute("time-probing", {"leg0": service}) for service in (0.0, 5000.0))
    assert free.longest == 0
    assert slow.delays.min() >= 0
    assert slow.average > 0.002
    assert slow.longest > 0.005, "rows queue"


def test_probes_are_at_most_a_period_late_by_level() -> None:
    workload = Workload("q4", rate=20, window=2, length=6)  # an aggregate and a projection over the scan
    free, probed = (workload.compute("time-probing", {}, probe) for probe in (None, 100_000))
    assert free.longest == 0
    assert 0.02 < probed.average < 0.1
    assert probed.longest <= 0.1
    late = workload.compute("input-triggered", {})
    assert workload.compute("time-probing", {}, 10**12).delays.tolist() == late.delays.tolist()


def test_differential_probes_at_a_period() -> None:
    workload = Workload("q3", rate=20, window=2, length=5)
    settings = SimulationSettings(probe=50_000)
    one = workload.simulate("time-probing", settings=settings)
    other = workload.compute("time-probing", {}, 50_000)
    assert len(one.delays) == len(other.delays)
    assert one.average <= other.average + 0.05, (
        "an operator reads what the one below has learnt before, or at, the instant"
    )


def test_strategies_with_messages_are_refused() -> None:
    with pytest.raises(StrategyError, match="piggyback"):
        Workload("q1", 10, 2, 4).compute("piggyback", {})

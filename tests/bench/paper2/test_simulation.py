"""The simulation of paper 2's experiments: small runs with results computed by hand, and properties from section 5."""

from __future__ import annotations

import pytest

from bench.paper2.simulation import Measures, PeriodicLoad, SnapshotLoad, WindowWorkload, simulate
from sash.testing.histories import Recorder, classify
from sash.window_store.scheduling.levels import LEVELS, level


def run(name: str, workload: WindowWorkload) -> Measures:
    return simulate(workload, level(name), retain=workload.n if name == "window-serializable" else 0)


def small(**options: object) -> WindowWorkload:
    """Four sub-windows, each read in one second, updates every ten."""
    settings = {"n": 4, "t": 10.0, "until": 40.0, "reads": [1.0] * 20, **options}
    return WindowWorkload(**settings)  # type: ignore[arg-type]


def test_a_query_between_updates_runs_the_same_at_every_level() -> None:
    for name in LEVELS:
        measures = run(name, small(periodic=[PeriodicLoad(4)]))
        assert [execution.committed for execution in measures.executions] == [4.0, 14.0, 24.0, 34.0]
        assert [execution.freshness for execution in measures.executions] == [4.0] * 4
        assert measures.inter_execution == 10.0
        assert measures.throughput == 0.1
        assert measures.aborted_share == 0.0


@pytest.mark.parametrize(
    ("name", "committed", "freshness", "aborts"),
    [
        ("serial", 12.0, 12.0, 0),  # the update waits from 10 to 12
        ("window-serializable", 12.0, 12.0, 0),
        ("latest-window-serializable", 14.0, 4.0, 1),  # it had read sub-window 0
        ("ttu", 12.0, 2.0, 0),
    ],
)
def test_a_query_that_an_update_interrupts(name: str, committed: float, freshness: float, aborts: int) -> None:
    measures = run(name, small(snapshots=[SnapshotLoad(8.0, 4)], until=15.0))
    (execution,) = measures.executions
    assert (execution.committed, execution.freshness, execution.aborts) == (committed, freshness, aborts)
    assert measures.aborts == aborts


@pytest.mark.parametrize(("name", "response"), [("serial", 6.0), ("window-serializable", 4.0), ("ttu", 4.0)])
def test_a_snapshot_query_suspends_a_periodic_one_except_under_serial(name: str, response: float) -> None:
    assert (
        run(name, small(periodic=[PeriodicLoad(4)], snapshots=[SnapshotLoad(2.0, 4)], until=10.0)).response == response
    )


def test_every_few_updates() -> None:
    measures = run("ttu", small(periodic=[PeriodicLoad(4, every=2)]))
    assert [execution.as_of for execution in measures.executions] == [3, 5]


def test_updates_take_their_time() -> None:
    measures = run("ttu", small(periodic=[PeriodicLoad(4)], update=0.5, until=20.0))
    assert [execution.committed for execution in measures.executions] == [4.0, 14.5]


@pytest.mark.parametrize("name", LEVELS)
def test_what_is_simulated_keeps_its_level(name: str) -> None:
    recorder = Recorder()
    workload = WindowWorkload(
        6,
        5.0,
        200.0,
        [0.7] * 60,
        [PeriodicLoad(6), PeriodicLoad(4, every=2)],
        [SnapshotLoad(at, 3) for at in range(1, 190, 7)],
    )
    measures = simulate(workload, LEVELS[name], retain=6 if name == "window-serializable" else 0, recorder=recorder)
    assert LEVELS[name].reaches in classify(recorder.history, 6, recorder.lengths)
    assert any(execution.met for execution in measures.executions) == (name != "serial")

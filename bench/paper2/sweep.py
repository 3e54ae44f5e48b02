"""Figures 8 to 14 of paper 2 in simulation: windows of 10 to 100 sub-windows, at every level of isolation."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bench.figures import Measured
from bench.paper2.simulation import Measures, PeriodicLoad, SnapshotLoad, simulate
from bench.paper2.workload import workload
from sash.window_store.scheduling.levels import LEVELS, Isolation, Serial

#: seconds between updates, and the number of periodic queries there
SETTINGS = ((1.0, 40), (5.0, 100))
MIXED = SETTINGS[1]
ABORTING = ("latest-window-serializable", "ttu")
LONGEST = 100
SCANS = (0.6, 0.8, 0.9, 1.0, 1.1, 1.2, 1.4, 1.8)
"""Durations of a full scan, in units of t."""


class SerialByPriority(Serial):
    """Serial execution that runs the waiting query of the highest priority next. Nothing is suspended."""

    name = "serial, by priority"
    suspends = True


Runs = dict[tuple[str, float, int], list[Measures]]
Measure = Callable[[Measures], float]


def sweep(
    sizes: Sequence[int],
    settings: Sequence[tuple[float, int]],
    levels: Sequence[Isolation],
    repeats: int,
    *,
    snapshots: bool,
    progress: Callable[[str], None],
) -> Runs:
    """All runs of a workload, by level, t and n. Every level runs the same workloads."""
    runs: Runs = {}
    for t, queries in settings:
        for n in sizes:
            progress(f"simulating t = {t:g} s, n = {n}{', with snapshot queries' if snapshots else ''}")
            for seed in range(repeats):
                load = workload(n, t, queries, seed, snapshots=snapshots)
                for level in levels:
                    retain = 0 if level.follows else n
                    runs.setdefault((level.name, t, n), []).append(simulate(load, level, retain=retain))
    return runs


def sensitivity(repeats: int, progress: Callable[[str], None]) -> Measured:
    """Aborts at t = 1 s and n = 100, by the duration of a full scan relative to the time between two updates."""
    t, queries = SETTINGS[0]
    progress(f"simulating scans around t, n = {LONGEST}")
    runs: dict[str, list[tuple[float, list[float]]]] = {}
    for length in SCANS:
        loads = [workload(LONGEST, t, queries, seed, scan=length * t / LONGEST) for seed in range(repeats)]
        for name in ABORTING:
            shares = [100 * simulate(load, LEVELS[name]).aborted_share for load in loads]
            runs.setdefault(name, []).append((length, shares))
    return Measured("paper2-scans", "Aborted queries by the time of a full scan", "scan / t", "%", runs)


def figures(sizes: Sequence[int], repeats: int, progress: Callable[[str], None]) -> list[Measured]:
    """The figures, with the averages of every run."""
    levels = list(LEVELS.values())
    periodic = sweep(sizes, SETTINGS, levels, repeats, snapshots=False, progress=progress)
    mixed = sweep(sizes, (MIXED,), [*levels, SerialByPriority()], repeats, snapshots=True, progress=progress)
    names = [level.name for level in levels]
    by_t = [t for t, _ in SETTINGS]
    mixed_t = [MIXED[0]]

    def figure(
        number: int, title: str, unit: str, runs: Runs, shown: Sequence[str], ts: Sequence[float], measure: Measure
    ) -> Measured:
        made = {
            f"{name}, t = {t:g} s" if len(ts) > 1 else name: [
                (n, [measure(run) for run in runs[name, t, n]]) for n in sizes
            ]
            for t in ts
            for name in shown
        }
        return Measured(f"paper2-fig{number}", title, "sub-windows", unit, made)

    return [
        figure(8, "Aborted queries", "%", periodic, ABORTING, by_t, lambda run: 100 * run.aborted_share),
        figure(9, "Freshness", "seconds", periodic, names, by_t, lambda run: run.freshness(PeriodicLoad)),
        figure(10, "Time between executions", "seconds", periodic, names, by_t, lambda run: run.inter_execution),
        figure(11, "Throughput", "queries/s", periodic, names, by_t, lambda run: run.throughput),
        figure(12, "Response time of snapshot queries", "seconds", mixed,
               [*names, SerialByPriority.name], mixed_t, lambda run: run.response),
        figure(13, "Freshness of snapshot queries", "seconds", mixed, names, mixed_t,
               lambda run: run.freshness(SnapshotLoad)),
        figure(14, "Freshness of periodic queries beside snapshot queries", "seconds", mixed, names, mixed_t,
               lambda run: run.freshness(PeriodicLoad)),
        sensitivity(repeats, progress),
    ]  # fmt: skip

"""The claims of paper 2's experiments, each with its measured numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Series = dict[str, list[list[float]]]

SLACK = 0.02  # share of the time between two updates by which an average age may vary at random


def claims(results: dict[str, Any]) -> list[tuple[str, bool]]:
    """The claims as sentences, and whether they hold in these results."""
    series: dict[str, Series] = {figure["name"]: figure["series"] for figure in results["figures"]}
    return [
        *_simulated(series),
        *_measured(results["real time"]),
        *_mixed(results["real time with snapshot queries"]),
        *_on_spark(results["on Spark"]),
    ]


def _simulated(series: dict[str, Series]) -> Iterator[tuple[str, bool]]:
    aborted = series["paper2-fig8"]
    most = max(y for name, points in aborted.items() if name.startswith("ttu") for _, y in points)
    yield f"simulated: ttu aborts {most:.3g} % of the queries at most, everywhere (none)", most == 0
    n, share = aborted["latest-window-serializable, t = 1 s"][-1]
    text = f"simulated: without the order, {share:.3g} % are aborted at t = 1 s, n = {n:g} (over half)"
    yield text, share > 50
    for figure, what in (("9", "periodic"), ("13", "snapshot"), ("14", "periodic beside snapshot")):
        worst = max(_excess(series[f"paper2-fig{figure}"]))
        text = (
            f"simulated: ttu's answers to {what} queries are {-worst:.2g} t fresher on average than serial's and "
            f"window-serializable's, at least (0, less {SLACK:g} for chance)"
        )
        yield text, worst <= SLACK
    slowest = min(
        ttu / serial
        for t in (1, 5)
        for (_, ttu), (_, serial) in zip(
            *(series["paper2-fig11"][f"{name}, t = {t} s"] for name in ("ttu", "serial")), strict=True
        )
    )
    yield f"simulated: ttu's throughput is {slowest:.1%} of serial's at least (96 %)", slowest >= 0.96
    response = series["paper2-fig12"]
    ratios = [ttu / serial for (_, ttu), (_, serial) in zip(response["ttu"], response["serial"], strict=True)]
    text = f"simulated: ttu answers snapshot queries in {max(ratios):.1%} of serial's time at most (a third)"
    yield text, max(ratios) <= 1 / 3


def _excess(series: Series) -> Iterator[float]:
    """How much older, in units of t, the answers of ttu are than those of the levels without restarts."""
    for name, points in series.items():
        level, _, setting = name.partition(", t = ")
        if level in {"serial", "window-serializable"}:
            t = float(setting.removesuffix(" s")) if setting else 5.0
            ours = series["ttu" + name.removeprefix(level)]
            yield from ((ttu - other) / t for (_, ttu), (_, other) in zip(ours, points, strict=True))


def _measured(runs: list[dict[str, Any]]) -> Iterator[tuple[str, bool]]:
    for run in runs:
        where = f"real time, n = {run['n']}: "
        levels = run["levels"]
        ttu = levels["ttu"]
        most = ttu["aborted at most"]
        yield f"{where}ttu aborts {most:.3g} of the queries in the worst run (none)", most == 0
        share = ttu["throughput of serial"]
        yield f"{where}ttu's throughput is {share:.1%} of serial's (96 %)", share >= 0.96
        for other in ("serial", "window-serializable"):
            age, others = ttu["freshness"] / run["t"], levels[other]["freshness"] / run["t"]
            yield f"{where}ttu's answers are {age:.2f} t old, {other}'s {others:.2f} t", age <= others + SLACK
            key = "freshness across an update"
            age, others = ttu[key] / run["t"], levels[other][key] / run["t"]
            yield f"{where}if an update came between, ttu's are {age:.2f} t old, {other}'s {others:.2f} t", age < others
        if run["n"] == 100:
            aborted = levels["latest-window-serializable"]["aborted"]
            yield f"{where}without the order, {aborted:.1%} are aborted (over half)", aborted > 0.5


def _mixed(runs: list[dict[str, Any]]) -> Iterator[tuple[str, bool]]:
    for run in runs:
        ratio = run["levels"]["ttu"]["response"] / run["levels"]["serial"]["response"]
        text = f"real time, n = {run['n']}: ttu answers snapshot queries in {ratio:.1%} of serial's time (a third)"
        yield text, ratio <= 1 / 3


def _on_spark(runs: list[dict[str, Any]]) -> Iterator[tuple[str, bool]]:
    for run in runs:
        ttu, serial = (run["levels"][name]["response"] for name in ("ttu", "serial"))
        text = (
            f"on Spark, {run['rate']:,} events/s, {run['reads']} reads: a snapshot beside 20 periodic queries takes "
            f"{ttu:.3g} s under ttu, {serial:.3g} s under serial (a third)"
        )
        yield text, ttu <= serial / 3

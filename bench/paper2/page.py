"""Writes docs/experiments/paper2.md from measured results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.claim import Claim, lines
from bench.paper2.live import COUNT, PERIODIC
from bench.paper2.workload import COSTS, FIXED, GROUP, SCAN, SNAPSHOT, SNAPSHOTS_PER_UPDATE, UPDATES
from bench.spread import shown

PAGE = Path("docs") / "experiments" / "paper2.md"

INTRODUCTION = f"""# Paper 2: queries while the window slides

Golab, Bijay and Özsu, *On concurrency control in sliding window queries over data streams* (2005), section 5.
`python -m bench paper2 --save` runs the measurements and writes this page.

A window of n sub-windows is updated every t. Groups of {GROUP} periodic queries (top-k lists and percentiles over the
bandwidth of 1,000 addresses) repeatedly scan all of it at low priority: 40 queries at t = 1 s, 100 at t = 5 s.
The number of packets in a sub-window varies by up to a factor of ten. Figures 12 to 14 add snapshot queries of high
priority, {SNAPSHOTS_PER_UPDATE} per t at random times. One read runs at a time. The levels are `serial`,
`window-serializable`, `latest-window-serializable` (Algorithm 1) and `ttu` (Algorithm 2).

## In simulation

Time is simulated; the scheduler that serves real windows makes the decisions. Each point is the median of {{repeats}} runs
of {UPDATES} updates with different seeds, with their range in brackets; a run's measure is its average over all queries (the
paper's runs are as long as the window). The costs are assumptions: a group
takes {SCAN * 1000:g} ms for a sub-window of one second, {FIXED:.0%} of it independent of the number of packets, so that a
full scan takes {SCAN * 100:g} t at t = 1 s and n = 100. The cost varies between groups by factors of {COSTS[0]:g} to
{COSTS[1]:g}. Snapshot queries, over a random length, cost {SNAPSHOT:g} times as much per sub-window. Scheduling is free
in simulation; the runs in real time include its cost.
"""

_AFTERWARDS = (
    "Two checks were changed after results were seen: more than half of the queries are aborted by the median of the runs, "
    "not in every run, and snapshots on Spark are compared by their age, not by their freshness."
)

READING = """## How to read it

- *Freshness* is the time from the due time of the last update that an answer reflects to the answer (less is better).
  The paper counts from the update itself. `serial` delays updates, and would look better than it is if the delay did not
  count.
- `serial` runs queries in order of arrival, regardless of priority. Figure 12 also has a `serial` that runs the query of
  the highest priority next, but still suspends nothing.
- An aborted query restarts behind the queries of its priority. The share of aborts is relative to all attempts that
  ended.
- `window-serializable` has the old copies that it needs; the other levels have none (`retain=0`).
- The aborts of Algorithm 1 depend on the duration of a full scan relative to t, most strongly where the two are about
  equal: a query that restarts directly after an update commits before the next one if its scan takes less than t, and
  rarely if it takes longer. At t = 1 s, n = 100 it aborts, by the duration of a scan: {scans}. Its curves are therefore
  not smooth near n = 100, and its runs in real time vary the most. `ttu` is not affected: it aborts {ttu} there.
"""


def write(results: dict[str, Any]) -> Path:
    """Write the page."""
    parts = [INTRODUCTION.format(repeats=results["repeats"])]
    parts += [
        f"![{figure['title']}](figures/{figure['name']}.svg)\n\n{_series(figure)}" for figure in results["figures"]
    ]
    for title, key in (
        ("## In real time", "real time"),
        ("## In real time, with snapshot queries", "real time with snapshot queries"),
    ):
        if results.get(key):
            parts += [f"{title}\n", *(_run(run) for run in results[key])]
    if results.get("on Spark"):
        parts += ["## On Spark, with a running stream\n", *(_live(run) for run in results["on Spark"])]
    parts += [
        f"## Claims\n\n{lines([Claim(**claim) for claim in results['claims']], _AFTERWARDS)}\n",
        _reading(results),
    ]
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text("\n".join(parts), encoding="utf-8")
    return PAGE


def _reading(results: dict[str, Any]) -> str:
    (found,) = (figure["series"] for figure in results["figures"] if figure["name"] == "paper2-scans")
    scans = ", ".join(f"{y:.3g} % at {x:g} t" for x, y in found["latest-window-serializable"])
    most = max(y for _, y in found["ttu"])
    return READING.format(scans=scans, ttu="nothing" if most == 0 else f"{most:.3g} % at most")


def _series(figure: dict[str, Any]) -> str:
    columns = figure["runs"]
    by = "n" if figure["x"] == "sub-windows" else figure["x"]
    made = [
        f"| {figure['title']} ({figure['y']}) by {by} | " + " | ".join(columns) + " |",
        "|---" * (len(columns) + 1) + "|",
    ]
    points = [dict(series) for series in columns.values()]
    made += [f"| {x:g} | " + " | ".join(shown(line[x]) for line in points) + " |" for x in points[0]]
    return "\n".join(made) + "\n"


def _run(run: dict[str, Any]) -> str:
    heading = (
        f"Measured: n = {run['n']}, t = {run['t']:g} s, {run['packets']:,} packets in a typical sub-window (so that a scan of "
        f"100 takes {SCAN * 100:g} t on the machine), {run['seconds']:g} s per run, {run['repeats']} runs of each level by "
        "turns: median and range; times in seconds.\n"
    )
    return _levels(heading, run)


def _live(run: dict[str, Any]) -> str:
    heading = (
        f"Measured: {run['rate']:,} events/s flow into a window of {COUNT} sub-windows of {run['every']} ms on a local session; "
        f"{PERIODIC} periodic queries scan all of it (WS, {run['reads']} reads) at priority 0, first for {run['seconds']:g} s "
        "alone (the measures of Figures 8 to 11), then beside snapshot queries (those of Figures 12 to 14): "
        f"{run['snapshots']} counts by key over all of it at priority 10, one after the other. Levels take turns, "
        f"{run['repeats']} each. A turn's measure is the median of its queries; in a cell, median and range of the turns. Times "
        "are in seconds. Freshness counts from the moment at which the update was applied, so that `serial`, which delays "
        "updates, looks better than it is; the age of a snapshot counts from the end of the last sub-window that it reflects.\n"
    )
    return _levels(heading, run)


def _levels(heading: str, run: dict[str, Any]) -> str:
    measures = list(run["levels"]["ttu"])
    made = [
        heading,
        "| level | " + " | ".join(measures) + " |",
        "|---" * (len(measures) + 1) + "|",
    ]
    made += [
        f"| {name} | " + " | ".join(shown(level[measure]) for measure in measures) + " |"
        for name, level in run["levels"].items()
    ]
    return "\n".join(made) + "\n"

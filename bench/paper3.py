"""Paper 3's measurements: rows through the pipeline and delay of negative tuples, time messages and piggybacking, by rate.

Simulated, with Q2 (a join, then DISTINCT) and Q3 (a join with a table, then COUNT(DISTINCT)) of paper 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.figures import Figure
from bench.pipelines import Workload
from bench.report import Figures
from sash.testing.simulation import SimulationSettings

STRATEGIES = ("input-triggered", "negative-tuple", "time-message", "piggyback")
RATES = (2, 10, 50, 200, 1000)
_FIRST_KIND = ("Filter", "Project", "Union", "Join", "Lookup", "Combine")
_PATIENCE = 100_000
_ROWS = 2_000
"""The most rows of a stream in a window: at higher rates windows and runs are shorter, to limit the simulation's time."""


def measure(window: int, length: int, rates: Sequence[float] = RATES) -> Figures:
    """Simulate every query, rate and strategy."""
    console = Console(stderr=True)
    found: Figures = {"settings": {"window_seconds": window, "length_seconds": length, "patience_ms": _PATIENCE / 1000}}
    for query in ("q2", "q3"):
        found[query] = {}
        for rate in rates:
            with console.status(f"{query} at {rate} tuples/s"):
                share = min(1.0, _ROWS / (rate * window))
                workload = Workload(query, rate, round(window * share), round(length * share))
                found[query][str(rate)] = {name: _figures(workload, name) for name in STRATEGIES}
    return found


def _figures(workload: Workload, strategy: str) -> dict[str, Any]:
    run = workload.simulate(strategy, service={}, settings=SimulationSettings(patience=_PATIENCE))
    stages = [(name.split(".")[-1], seen) for name, seen in run.counts.items() if "leg" not in name]
    below = [seen for _, seen in takewhile(lambda operator: operator[0] in _FIRST_KIND, stages)]
    return {
        "rows": run.work,
        "negatives": sum(seen.taken_negative for seen in run.counts.values()),
        "messages": sum(seen.messages for seen in run.counts.values()),
        "negatives_below_second_kind": sum(seen.taken_negative for seen in below),
        "average_ms": round(1000 * run.average, 3),
        "longest_ms": round(1000 * run.longest, 3),
        "never": run.unreleased,
        "switches": sum(run.switches.values()),
    }


def figures(found: Figures) -> list[Figure]:
    """The plots of rows, as a multiple of input-triggered's, and of delays."""
    drawn = []
    for query in ("q2", "q3"):
        by = found[query]
        excess = {
            name: [(float(rate), at[name]["rows"] / at["input-triggered"]["rows"]) for rate, at in by.items()]
            for name in STRATEGIES
        }
        delays = {name: [(float(rate), at[name]["average_ms"]) for rate, at in by.items()] for name in STRATEGIES}
        title = f"Rows and messages through the pipeline of {query.upper()}"
        drawn.append(Figure(f"paper3-rows-{query}", title, "tuples/s", "times input-triggered", excess, log_x=True))
        title = f"Output delay of {query.upper()}"
        drawn.append(Figure(f"paper3-delay-{query}", title, "tuples/s", "average delay, ms", delays, log_x=True))
    return drawn


def table(found: Figures) -> Table:
    """The figures as a table."""
    shown = Table(title="Rows and messages (times input-triggered); average delay in ms")
    shown.add_column("query, tuples/s")
    for name in STRATEGIES:
        shown.add_column(name, justify="right")
    for query in ("q2", "q3"):
        for rate, at in found[query].items():
            base = at["input-triggered"]["rows"]
            cells = [f"{at[n]['rows']:,} ({at[n]['rows'] / base:.2f}); {at[n]['average_ms']:,.1f}" for n in STRATEGIES]
            shown.add_row(f"{query}, {rate}", *cells)
    return shown


def page(found: Figures) -> str:
    """The text of `docs/experiments/paper3.md`: the run's figures beside the claims for the two optimisations."""
    settings = found["settings"]
    lines = [
        "# Paper 3: fewer negative tuples",
        "",
        (
            "*Incremental evaluation of sliding-window queries over data streams*; time messages and piggybacking as "
            "defined in [strategies](../strategies.md). Repeat with `python -m bench paper3 --save`."
        ),
        "",
        (
            f"Paper 1's Q2 and Q3 in simulation, a window of {settings['window_seconds']} s, {settings['length_seconds']} s "
            f"simulated, both shorter at rates that would bring more than {_ROWS:,} rows into a window; piggybacking holds back a "
            f"time for up to {settings['patience_ms']:g} ms until a row carries it."
        ),
        "",
        (
            "Rows and time messages into all operators of the stages (as a multiple of input-triggered's), and the average "
            "delay in ms:"
        ),
        "",
        "| query, tuples/s | " + " | ".join(STRATEGIES) + " |",
        "|---|" + "---:|" * len(STRATEGIES),
    ]
    for query in ("q2", "q3"):
        for rate, at in found[query].items():
            base = at["input-triggered"]["rows"]
            cells = [f"{at[n]['rows']:,} ({at[n]['rows'] / base:.2f}); {at[n]['average_ms']:,.1f}" for n in STRATEGIES]
            lines.append(f"| {query}, {rate} | " + " | ".join(cells) + " |")
    low, *_, top = found["q2"]
    worst = max(found[q][top]["piggyback"]["rows"] / found[q][top]["input-triggered"]["rows"] for q in ("q2", "q3"))
    delays = max(found[q][low]["piggyback"]["average_ms"] for q in ("q2", "q3"))
    first = sum(at["time-message"]["negatives_below_second_kind"] for q in ("q2", "q3") for at in found[q].values())
    lines += [
        "",
        *(
            f"![{kind} {query}](figures/paper3-{kind}-{query}.svg)"
            for query in ("q2", "q3")
            for kind in ("rows", "delay")
        ),
        "",
        (
            f"- *Piggybacking brings the excess within 10 % at high rates*: at {top} tuples/s it is "
            f"{100 * (worst - 1):.1f} % at most."
        ),
        f"- *Its delay is that of negative tuples at low rates*: at {low} tuples/s it is {delays:g} ms on average.",
        (
            "- *Time messages bring the negatives processed by selections, projections and joins to zero*: below the first "
            f"operator that needs them (DISTINCT, an aggregate) there are {first}."
        ),
        (
            "- Negative tuples bring more than twice the rows, because selections and joins with tables run in the stage, above "
            "Expire. For the other strategies they run in Spark's engine, below the stage, and are not counted."
        ),
    ]
    return "\n".join(lines) + "\n"

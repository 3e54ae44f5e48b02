"""Strategies on Spark: for paper 1's queries, what flows, when changes are released, and the throughput.

Releases are those of the micro-batches of a replay on Spark, with all strategies of a query in one job, over sales with
exponential inter-arrival times. The delay of a change is event time: from its instant to the end of the batch that released it.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean
from typing import Any

import numpy as np
import pyarrow as pa
from rich.console import Console, Group
from rich.table import Table

from bench.pipelines import Workload
from bench.report import Figures
from bench.throughput import measure_strategies
from sash.testing import Result, replay_job
from sash.time import MILLISECOND, SECOND

QUERIES = ("q1", "q2", "q3", "q4", "q5")
STRATEGIES: dict[str, dict[str, Any]] = {
    "input-triggered": {},
    "time-probing": {},
    "time-probing, 1 s": {"strategy": "time-probing", "probe": SECOND},
    "negative-tuple": {},
    "hybrid": {},
    "time-message": {},
    "piggyback, 0.5 s": {"strategy": "piggyback", "patience": SECOND // 2},
    "update-pattern-aware": {},
}
"""The strategies with their options, times in microseconds."""

_INTRODUCTION = """\
# Experiments: strategies on Spark

`python -m bench strategies --save` writes this page. Paper 1's queries Q1 to Q5 (Table 1) run under every \
[strategy](../strategies.md) on Spark, in micro-batches, over made-up sales with exponential inter-arrival times: a window of \
{window_s} s, and batches of {batch_s} s of event time for {length_s} s.

- *rows* are those that all operators take in, *negatives* the retractions among them; *messages* and *time probes* are those \
that operators receive and make.
- *batches late* is the average number of batches between the one whose watermark passes a change and the one that releases \
it; *never* are the changes that no batch releases.
- *delay* is from a change's instant to the end of the batch that releases it, in event time: more than half a batch on \
average even when nothing is late. Processing times are not in it.
- One run per point: counts and batches do not vary with the machine. Changes count after the first window.
"""
_THROUGHPUT = """\
Events per second with full windows of a minute and batches of {rows_per_batch:,} rows: four batches of one run each, so that \
the spread is not known; whether other work ran beside it was not recorded. Changes go to Spark's noop sink. `auto` is \
update-pattern-aware for these queries."""

BASELINES = ("re-evaluation", "input-triggered", "negative-tuple", "update-pattern-aware")
SMALL_RATE, SMALL_BATCH = 10, 1_000
"""The rate in sales per second and stream, and the rows of a batch, at which re-evaluation is measured: at each of its
instants it reads the whole window of a minute, so that it could not keep up with more."""

_RECOMPUTED = """\
`re-evaluation` (paper 3) computes the answer anew at every instant at which a row comes or ends. Events per second at \
{rate} sales per second and stream, windows of a minute, batches of {rows:,} rows: three batches of one run each, with the \
fixed time of a Spark batch, which bounds the others at such small batches."""

WINDOW, LENGTH, BATCH = 10, 30, 1.5
"""The window, the length of a run and that of a batch in seconds."""

_NAMES = ("ts", "store_id", "item_id", "price")
_COLUMNS = (
    "rows",
    "negatives",
    "messages",
    "time_probes",
    "switches",
    "batches_late",
    "delay_ms",
    "longest_ms",
    "never",
)


def measure(
    queries: Sequence[str], rates: Sequence[float], rows_per_batch: int, experiments: str, known: Figures
) -> Figures:
    """Measure releases at each rate, and the throughput of every query and strategy; the rest is taken from `known`."""
    console = Console(stderr=True)
    found: Figures = {
        "settings": {"window_s": WINDOW, "length_s": LENGTH, "batch_s": BATCH, "rows_per_batch": rows_per_batch},
        "releases": dict(known.get("releases", {})),
        "throughput": dict(known.get("throughput", {})),
        "recomputed": dict(known.get("recomputed", {})),
    }
    for query in queries if experiments in ("all", "releases") else ():
        for rate in rates:
            with console.status(f"{query} at {rate:g} sales/s"):
                found["releases"].setdefault(query, {})[f"{rate:g}"] = _releases(Workload(query, rate, WINDOW, LENGTH))
    for query in queries if experiments in ("all", "throughput") else ():
        with console.status(f"{query}: throughput"):
            names = [_strategy(name) for name in STRATEGIES if "1 s" not in name]
            found["throughput"][query] = measure_strategies(query, names, rows_per_batch)
    for query in queries if experiments in ("all", "re-evaluation") else ():
        with console.status(f"{query}: re-evaluation"):
            found["recomputed"][query] = measure_strategies(query, BASELINES, SMALL_BATCH, 3, SMALL_RATE)
    return found


def _strategy(name: str) -> str:
    return str(STRATEGIES[name].get("strategy", name))


def _releases(workload: Workload) -> dict[str, Any]:
    streams = {name: pa.table(list(rows.columns), names=_NAMES) for name, rows in workload.sales.items()}
    times = np.sort(np.concatenate([table.column("ts").to_numpy() for table in streams.values()]))
    size = max(1, round(workload.rate * len(streams) * BATCH))
    ends = [int(times[min(start + size, len(times)) - 1]) for start in range(0, len(times), size)]
    until = int(times[-1])
    results = replay_job(
        [(name, workload.sql, {"strategy": name, **given}) for name, given in STRATEGIES.items()],
        streams,
        {name: table for name, table in workload.relations.items() if name in workload.sql},
        runtime="spark",
        unit="us",
        until=until,
        batch=size,
    )
    prompt = {_key(change): change.batch for change in results["update-pattern-aware"].changes}
    return {name: _figures(result, prompt, [*ends, until]) for name, result in results.items()}


def _figures(result: Result, prompt: dict[Any, int | None], ends: Sequence[int]) -> dict[str, Any]:
    """The counts of all operators, and how much later than its watermark a change is released, once the window is full."""
    counts = result.counts.values()
    full = [change for change in result.changes if change.ts >= WINDOW * SECOND and change.batch is not None]
    delays = [(ends[change.batch or 0] - change.ts) / MILLISECOND for change in full]
    late = [(change.batch or 0) - (prompt[_key(change)] or 0) for change in full if _key(change) in prompt]
    expected = sum(key[0] >= WINDOW * SECOND for key in prompt)
    return {
        "rows": sum(seen.taken for seen in counts),
        "negatives": sum(seen.taken_negative for seen in counts),
        "messages": sum(seen.messages for seen in counts),
        "time_probes": sum(seen.time_probes for seen in counts),
        "switches": sum(seen.switches for seen in counts),
        "batches_late": round(mean(late or [0]), 3),
        "delay_ms": round(mean(delays or [0])),
        "longest_ms": round(max(delays, default=0)),
        "never": expected - len(full),
    }


def _key(change: Any) -> tuple[Any, ...]:
    return change.ts, change.op, *change.row.values()


def excess(releases: dict[str, Any]) -> float:
    """The rows and messages of piggybacking beyond the rows of input-triggered execution, as a share of these."""
    carried, triggered = releases["piggyback, 0.5 s"], releases["input-triggered"]
    return float((carried["rows"] + carried["messages"]) / triggered["rows"] - 1)


def table(found: Figures) -> Group:
    """The figures as tables."""
    shown = []
    for query, rates in found["releases"].items():
        for rate, releases in rates.items():
            listed = Table(title=f"{query} at {rate} sales/s and stream")
            for column in ("strategy", *_COLUMNS):
                listed.add_column(column.replace("_", " "), justify="left" if column == "strategy" else "right")
            for name, figures in releases.items():
                listed.add_row(name, *(f"{figures[column]:,}" for column in _COLUMNS))
            shown.append(listed)
    return Group(*shown)


def page(found: Figures) -> str:
    """The page of the experiment."""
    given = found["settings"]
    lines = [_INTRODUCTION.format(**given)]
    heads = [column.replace("_", " ") for column in _COLUMNS]
    for query, rates in found["releases"].items():
        for rate, releases in rates.items():
            lines += [f"## {query.upper()} at {rate} sales per second and stream", ""]
            lines += [f"| strategy | {' | '.join(heads)} |", "|---|" + "---:|" * len(heads)]
            for name, figures in releases.items():
                lines.append(f"| {name} | {' | '.join(f'{figures[column]:,}' for column in _COLUMNS)} |")
            lines.append("")
    lines += ["## Piggybacking's excess", "", "Rows and messages beyond the rows of input-triggered execution.", ""]
    names = list(next(iter(found["releases"].values())))
    lines += [f"| query | {' | '.join(f'{name} sales/s' for name in names)} |", "|---|" + "---:|" * len(names)]
    for query, rates in found["releases"].items():
        lines.append(f"| {query.upper()} | {' | '.join(f'{excess(rates[name]):.1%}' for name in names)} |")
    if found["throughput"]:
        strategies = list(next(iter(found["throughput"].values())))
        lines += ["", "## Throughput", "", _THROUGHPUT.format(**given), ""]
        lines += [f"| query | {' | '.join(strategies)} |", "|---|" + "---:|" * len(strategies)]
        for query, speeds in found["throughput"].items():
            lines.append(f"| {query.upper()} | {' | '.join(f'{speeds[name]:,}' for name in strategies)} |")
    if found.get("recomputed"):
        lines += ["", "## Re-evaluation", "", _RECOMPUTED.format(rate=SMALL_RATE, rows=SMALL_BATCH), ""]
        lines += [f"| query | {' | '.join(BASELINES)} |", "|---|" + "---:|" * len(BASELINES)]
        for query, speeds in found["recomputed"].items():
            lines.append(f"| {query.upper()} | {' | '.join(f'{speeds[name]:,}' for name in BASELINES)} |")
    return "\n".join(lines) + "\n"

"""Strategies in micro-batches: what flows in paper 1's queries, which batch releases a change, and the throughput on Spark.

Sales have exponential inter-arrival times. The delay of a change is event time: from its instant to the end of the batch that
released it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console, Group
from rich.table import Table

from bench.claim import Claim, lines
from bench.pipelines import Workload
from bench.report import Figures
from bench.spread import fewer, middle, of, shown
from bench.strategy_releases import compare_with_spark, measure_releases
from bench.throughput import measure_strategies
from sash.time import SECOND

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

RECOMPUTED = "re-evaluation"
"""Measured at low rates alone: at every instant it reads the whole window."""

_INTRODUCTION = """\
# Experiments: strategies on Spark

`python -m bench strategies --save` writes this page. Paper 1's queries Q1 to Q5 (Table 1) run under every \
[strategy](../strategies.md), in micro-batches, over made-up sales with exponential inter-arrival times: a window of {window_s} s, \
and batches of {batch_s} s of event time. Every row of a table is of {seeds} runs with different seeds and, over all of them, of \
at least {fewest:,} changes (for input-triggered: or all that it released) from the moment when the window is full. A cell has \
the median of the runs and, in brackets, their range.

- *rows* are those that all operators take in but Expire, which belongs to the scan; selections, projections and joins with \
tables that run at the scan are among them. *negatives* are the retractions that operators of the stages take in, *messages* and \
*time probes* those that they receive and make, *switches* those between messages and piggybacking. All are per 1,000 sales.
- *batches late* is the average number of batches between the one whose watermark passes a change and the one that releases \
it; *never* are the changes of all runs that no batch releases.
- *delay* is from a change's instant to the end of the batch that releases it, in event time: more than half a batch on \
average even when nothing is late. Processing times are not in it.
"""
_ON_SPARK = """\
All of this depends on the rows and the micro-batches alone, not on the machine. The runs above are made by the shards in one \
process; on Spark the same shards run in its stages. To show that the two do the same, runs of {length_s} s with the first seed \
were made on both, all strategies of a query in one job. Changes are the same if they have equal times, signs and rows and \
were released by the same batch; counts are the rows, messages, probes and switches of every operator.
"""
_THROUGHPUT = """\
Events per second on Spark with full windows of a minute and batches of {rows_per_batch:,} rows: {turns} of four \
batches. Changes go to Spark's noop sink. `auto` is update-pattern-aware for these queries."""

BASELINES = ("re-evaluation", "input-triggered", "negative-tuple", "update-pattern-aware")
SMALL_RATE, SMALL_BATCH = 10, 1_000
"""The rate in sales per second and stream, and the rows of a batch, at which re-evaluation is measured: at each of its
instants it reads the whole window of a minute, so that it could not keep up with more."""

_RECOMPUTED = """\
`re-evaluation` (paper 3) computes the answer anew at every instant at which a row comes or ends. Events per second on Spark at \
{rate} sales per second and stream, windows of a minute, batches of {rows:,} rows: {turns} of three \
batches, with the fixed time of a Spark batch, which bounds the others at such small batches."""

WINDOW, LENGTH, BATCH = 10, 30, 1.5
"""The window, the length of a run and that of a batch in seconds."""

_COLUMNS = (
    "rows",
    "negatives",
    "messages",
    "time_probes",
    "switches",
    "batches_late",
    "delay_ms",
    "longest_ms",
)
PARTS = ("releases", "on_spark", "throughput", "recomputed")
EXPERIMENTS = ("releases", "spark", "throughput", "re-evaluation")


def measure(
    queries: Sequence[str],
    rates: Sequence[float],
    rows_per_batch: int,
    experiments: str,
    known: Figures,
    changes: int = 2_000,
    seeds: int = 5,
) -> Figures:
    """Measure releases at each rate, and the throughput of every query and strategy; the rest is taken from `known`."""
    console = Console(stderr=True)
    wanted = EXPERIMENTS if experiments == "all" else tuple(experiments.split(","))
    settings = {
        "window_s": WINDOW,
        "length_s": LENGTH,
        "batch_s": BATCH,
        "rows_per_batch": rows_per_batch,
        "seeds": seeds,
    }
    found: Figures = {"settings": settings, **{part: dict(known.get(part, {})) for part in PARTS}}
    for query in queries:
        for rate in rates:
            workload = Workload(query, rate, WINDOW, LENGTH)
            with console.status(f"{query} at {rate:g} sales/s"):
                if "releases" in wanted:
                    strategies = {**STRATEGIES, **({RECOMPUTED: {}} if rate <= SMALL_RATE else {})}
                    made = measure_releases(workload, BATCH, strategies, changes, seeds)
                    found["releases"].setdefault(query, {})[f"{rate:g}"] = made
                if "spark" in wanted:
                    same = compare_with_spark(workload, BATCH, STRATEGIES)
                    found["on_spark"].setdefault(query, {})[f"{rate:g}"] = same
        with console.status(f"{query}: throughput"):
            names = [str(given.get("strategy", name)) for name, given in STRATEGIES.items() if "1 s" not in name]
            if "throughput" in wanted:
                found["throughput"][query] = measure_strategies(query, names, rows_per_batch, turns=seeds)
            if "re-evaluation" in wanted:
                found["recomputed"][query] = measure_strategies(
                    query, BASELINES, SMALL_BATCH, 3, SMALL_RATE, turns=seeds
                )
    return {**found, "claims": [vars(claim) for claim in claims(found)]}


def excess(releases: dict[str, Any]) -> list[float]:
    """The rows and messages of piggybacking beyond the rows of input-triggered execution, as a share of these, by run."""
    carried, triggered = releases["piggyback, 0.5 s"], releases["input-triggered"]
    parts = zip(carried["rows"], carried["messages"], triggered["rows"], strict=True)
    return [(rows + messages) / base - 1 for rows, messages, base in parts]


def claims(found: Figures) -> list[Claim]:
    """What the releases show, each judged by every query, rate and run."""
    points = [by for rates in found["releases"].values() for by in rates.values()]
    if not points:
        return []
    prompt = ("update-pattern-aware", "negative-tuple", "hybrid", "time-message", "time-probing")
    latest = max(value for by in points for name in prompt for value in by[name]["batches_late"])
    late, on_time = ([by[name]["delay_ms"] for by in points] for name in ("input-triggered", "time-message"))
    behind = fewer(on_time, late)
    gaps = {
        query: [middle(by["input-triggered"]["batches_late"]) for by in rates.values()]
        for query, rates in found["releases"].items()
    }
    shares = {query: [excess(by) for by in rates.values()] for query, rates in found["releases"].items()}
    high = [value for runs in shares.values() for value in runs[-1]]
    made = [
        Claim(
            f"{', '.join(prompt)} release a change in the batch whose watermark passes it",
            f"At most {latest:g} batches later on average, over all queries, rates and runs.",
            latest == 0,
        ),
        Claim(
            "Input-triggered is later than these",
            f"It has the longer average delay in {of(behind)} runs.",
            behind[0] == behind[1],
        ),
        Claim(
            "Input-triggered is less late at the high rate than at the low one",
            "; ".join(f"{query.upper()} {', '.join(f'{gap:.3g}' for gap in found)}" for query, found in gaps.items())
            + " batches late.",
            all(found[-1] < found[0] for found in gaps.values()),
        ),
        Claim(
            "Piggybacking's excess is within 10 % of input-triggered at the high rate",
            f"{100 * max(high):.2g} % in the worst run of all queries.",
            max(high) <= 0.1,
        ),
        Claim(
            "Piggybacking's excess is smaller at the high rate than at the low one",
            "; ".join(
                f"{query.upper()} {', '.join(f'{100 * middle(runs):.2g} %' for runs in found)}"
                for query, found in shares.items()
            )
            + ".",
            all(max(found[-1]) < min(found[0]) for found in shares.values()),
        ),
    ]
    if same := [one for rates in found["on_spark"].values() for one in rates.values()]:
        sums = {part: sum(one[part] for one in same) for part in same[0]}
        made.append(
            Claim(
                "Spark releases every change in the same batch as one process, and its operators count the same",
                f"{sums['same_changes']:,} of {sums['changes']:,} changes, and {sums['same_counts']:,} of {sums['counts']:,} counts.",
                sums["same_changes"] == sums["changes"] and sums["same_counts"] == sums["counts"],
            )
        )
    return made


def table(found: Figures) -> Group:
    """The figures as tables."""
    tables = []
    for query, rates in found["releases"].items():
        for rate, releases in rates.items():
            listed = Table(title=f"{query} at {rate} sales/s and stream")
            for column in ("strategy", *_COLUMNS, "never"):
                listed.add_column(column.replace("_", " "), justify="left" if column == "strategy" else "right")
            for name, figures in releases.items():
                listed.add_row(name, *_cells(figures))
            tables.append(listed)
    return Group(*tables)


def _cells(figures: dict[str, list[float]]) -> list[str]:
    """Medians and ranges, those without a range as one number; of changes that are never released, their number."""
    made = []
    for column in _COLUMNS:
        runs = figures[column]
        made.append(f"{runs[0]:g}" if min(runs) == max(runs) else shown(runs))
    return [*made, f"{sum(figures['never']):,.0f}"]


def page(found: Figures) -> str:
    """The page of the experiment."""
    released = found["releases"]
    fewest = min(
        sum(figures["changes"])
        for rates in released.values()
        for by in rates.values()
        for name, figures in by.items()
        if name != "input-triggered"
    )
    given = {**found["settings"], "fewest": int(fewest)}
    parts = [_INTRODUCTION.format(**given)]
    heads = [column.replace("_", " ") for column in (*_COLUMNS, "never")]
    for query, rates in released.items():
        for rate, by in rates.items():
            parts += [f"## {query.upper()} at {rate} sales per second and stream", ""]
            parts += [f"| strategy | {' | '.join(heads)} |", "|---|" + "---:|" * len(heads)]
            parts += [f"| {name} | {' | '.join(_cells(figures))} |" for name, figures in by.items()]
            parts.append("")
    parts += [
        "## Piggybacking's excess",
        "",
        "Rows and messages beyond the rows of input-triggered execution, in percent.",
        "",
    ]
    names = list(next(iter(released.values())))
    parts += [f"| query | {' | '.join(f'{name} sales/s' for name in names)} |", "|---|" + "---:|" * len(names)]
    for query, rates in released.items():
        cells = (shown([100 * share for share in excess(rates[name])]) for name in names)
        parts.append(f"| {query.upper()} | {' | '.join(cells)} |")
    if found["on_spark"]:
        parts += ["", "## The same on Spark", "", _ON_SPARK.format(**given)]
        parts += [
            "| query, sales/s | changes | the same on Spark | counts | the same on Spark |",
            "|---|---:|---:|---:|---:|",
        ]
        for query, rates in found["on_spark"].items():
            for rate, one in rates.items():
                figures = (one[part] for part in ("changes", "same_changes", "counts", "same_counts"))
                parts.append(f"| {query.upper()}, {rate} | {' | '.join(f'{count:,}' for count in figures)} |")
    if found["throughput"]:
        parts += [
            "",
            "## Throughput",
            "",
            _THROUGHPUT.format(**given, turns=_turns(found["throughput"])),
            "",
            *_speeds(found["throughput"]),
        ]
    if found["recomputed"]:
        text = _RECOMPUTED.format(rate=SMALL_RATE, rows=SMALL_BATCH, turns=_turns(found["recomputed"]))
        parts += ["", "## Re-evaluation", "", text, "", *_speeds(found["recomputed"])]
    parts += ["", "## Claims", "", lines([Claim(**claim) for claim in found["claims"]])]
    return "\n".join(parts) + "\n"


def _turns(by_query: dict[str, dict[str, list[float]]]) -> str:
    """How often every strategy was measured."""
    counts = {len(runs) for speeds in by_query.values() for runs in speeds.values()}
    if counts == {1}:
        return "one run each, so that the spread is not known,"
    return f"median and range of {' or '.join(map(str, sorted(counts)))} turns, in which every strategy runs once,"


def _speeds(by_query: dict[str, dict[str, list[float]]]) -> list[str]:
    names = list(next(iter(by_query.values())))
    rows = [
        f"| {query.upper()} | {' | '.join(_speed(speeds[name]) for name in names)} |"
        for query, speeds in by_query.items()
    ]
    return [f"| query | {' | '.join(names)} |", "|---|" + "---:|" * len(names), *rows]


def _speed(runs: list[float]) -> str:
    return shown(runs) if len(runs) > 1 else f"{runs[0]:,}"

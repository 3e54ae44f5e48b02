"""The page and the plots of paper 1's experiments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bench.claim import Claim, lines
from bench.figures import Figure
from bench.paper1.measure import QUERIES, STRATEGIES, THROUGHPUT_RATE, THROUGHPUT_WINDOW
from bench.report import Figures
from bench.spark_delays import HEARTBEAT_MS, TRIGGER_MS, WINDOW
from bench.spread import middle, shown

SAME = "as negative-tuple"
_NOTE = (
    "How rows are counted was changed after results were seen: at first those of the selections, projections and joins with "
    "tables that run at the scan under all strategies but negative tuples were left out, so that negative tuples seemed to have at "
    "least 4 times the rows."
)


def figures(found: Figures) -> list[Figure]:
    """The plots: medians of the seeds."""
    drawn = [
        Figure(
            "paper1-fig8",
            f"Output delay at {found['settings']['rate']:g} tuples/s",
            "query",
            "average delay, ms",
            {
                name: [
                    (number, middle(found["fig8"][query][name]["average_ms"]))
                    for number, query in enumerate(QUERIES, 1)
                    if name in found["fig8"][query]
                ]
                for name in STRATEGIES
            },
            log_y=True,
        )
    ]
    drawn += [
        _sweep(f"fig9-{query}", f"Output delay of {query.upper()}", "tuples/s", found["fig9"][query])
        for query in ("q3", "q4")
    ]
    for part, measure in (("", "average_ms"), ("b", "longest_ms")):
        title = "Output delay of Q2 by number of joined streams"
        drawn.append(_sweep(f"fig10{part}", title, "streams", found["fig10"], measure))
        drawn.append(
            _sweep(f"fig11{part}", "Output delay of Q1 by selectivity", "selectivity", found["fig11"], measure)
        )
    throughput = {
        name: [(int(query[1:]), middle(rates[name])) for query, rates in found["fig12"].items() if name in rates]
        for name in STRATEGIES
    }
    return [*drawn, Figure("paper1-fig12", "Throughput", "query", "changes per second", throughput, log_y=True)]


def _sweep(name: str, title: str, x_label: str, points: dict[str, Any], measure: str = "average_ms") -> Figure:
    series = {
        strategy: [(float(x), middle(at[strategy][measure])) for x, at in points.items()]
        for strategy in STRATEGIES
        if all(strategy in at for at in points.values())
    }
    word = "average" if measure == "average_ms" else "maximum"
    return Figure(f"paper1-{name}", title, x_label, f"{word} delay, ms", series, log_y=True)


def page(found: Figures) -> str:
    """The text of `docs/experiments/paper1.md`: the run's figures beside the paper's claims."""
    settings = found["settings"]
    least = min(at[name]["changes"] for at in _all_points(found) for name in at)
    parts = [
        "# Paper 1: propagation of expirations, and output delay\n",
        "Hammad, Aref, Franklin, Mokbel, Elmagarmid 2003, section 6. Repeat with `python -m bench paper1 --save`.\n",
        (
            f"Queries of Table 1 over streams of {settings['rate']:g} tuples/s with exponential gaps, in a window of "
            f"{settings['window_seconds']} s. Every point has {settings['seeds']} seeds and, over all of them, at least "
            f"{least:,} changes per strategy, from the moment when the window is full. A cell has the median of the seeds and, "
            "in brackets, their range. The delay of a change is the time at which it left the last operator, minus its own time.\n"
        ),
        _ASSUMPTIONS,
        "## Output delay by query (Fig 8)\n",
        _table("query", found["fig8"], "average_ms"),
        "Average delay in milliseconds. The longest:\n",
        _table("query", found["fig8"], "longest_ms"),
        (
            "The service times behind them: microseconds per row of each leg and operator, medians of the seeds; after a slash, per "
            "row of output when rows expire without an arrival.\n"
        ),
        _services(found["fig8"]),
        "## By rate (Fig 9), by depth (Fig 10), by selectivity (Fig 11)\n",
        *(f"![{name}](figures/paper1-{name}.svg)\n" for name in ("fig9-q3", "fig9-q4")),
        *(_titled(f"{q.upper()}, average delay in ms by rate", "tuples/s", found["fig9"][q]) for q in ("q3", "q4")),
        *(f"![{name}](figures/paper1-{name}.svg)\n" for name in ("fig10", "fig10b")),
        _titled("Q2, average delay in ms", "streams", found["fig10"]),
        _titled("Q2, longest delay in ms", "streams", found["fig10"], "longest_ms"),
        *(f"![{name}](figures/paper1-{name}.svg)\n" for name in ("fig11", "fig11b")),
        _titled("Q1, average delay in ms", "selectivity", found["fig11"]),
        _titled("Q1, longest delay in ms", "selectivity", found["fig11"], "longest_ms"),
        _probing(found["probing"]),
        "## Throughput (Fig 12)\n",
        "![fig12](figures/paper1-fig12.svg)\n",
        (
            f"Measured: changes per second of processor time of the local runtime, for {THROUGHPUT_RATE:,} tuples/s of event time in "
            f"micro-batches of one second, in a window of {THROUGHPUT_WINDOW} s.\n"
        ),
        _rates(found["fig12"]),
        _rows(found["rows"]),
        "## Claims of the paper\n",
        lines([Claim(**claim) for claim in found["claims"]], _NOTE) + "\n",
        (
            "In the paper the time of negative tuples grows without bound as more is output. Here they cost a constant factor: "
            "each retraction finds its row by hash, for any size of the window.\n"
        ),
    ]
    if "spark" in found:
        parts.append(_spark(found["spark"], settings["rate"]))
    return "\n".join(parts)


_ASSUMPTIONS = """What is assumed:

- Each operator is a server that takes one row at a time, with a queue in front of it. Its service time is the median processor time of
  one row alone in the operator of this runtime, measured on this machine for every seed: mostly the overhead of a call. In
  operation a call takes a micro-batch, so these delays are those of a pipeline of single rows, as in the paper, and not of
  Sash on Spark.
- The leg below a stage (selection, projection, joins with tables) is one server. Under negative tuples its operators run
  above Expire, as servers of their own, as in the paper's plans. There Expire is in the scan, and is the scan's server; in
  hybrid it is one more server. Servers do not share a processor.
- Time probing is continuous and free: an operator knows at any moment how far its inputs are. The paper's operators probe
  periodically; the section on probing has the delay by the period.
- Changes that input-triggered never released, because the run ended, are left out, in its favour.
- Pipelines are the paper's: binary joins, and DISTINCT where it is written.
"""


def _all_points(found: Figures) -> list[dict[str, Any]]:
    sweeps = [*found["fig9"].values(), found["fig10"], found["fig11"]]
    return [*found["fig8"].values(), *(at for sweep in sweeps for at in sweep.values())]


def _row(first: str, cells: Sequence[str]) -> str:
    return f"| {first} | " + " | ".join(cells) + " |"


def _head(first: str, names: Sequence[str] = STRATEGIES) -> list[str]:
    return [_row(first, names), "|---|" + "---:|" * len(names)]


def _table(first: str, points: dict[str, Any], measure: str) -> str:
    rows = [
        _row(x, [shown(at[name][measure]) if name in at else SAME for name in STRATEGIES]) for x, at in points.items()
    ]
    return "\n".join([*_head(first), *rows]) + "\n"


def _services(by_query: dict[str, Any]) -> str:
    made = ["| query | strategy | microseconds |", "|---|---|---|"]
    for query, by in by_query.items():
        for name, at in by.items():
            times = at["service_us"]
            each = [
                f"{part.split('.')[-1]} {us:.0f}"
                + (f"/{times[f'{part} expiring']:.0f}" if f"{part} expiring" in times else "")
                for part, us in times.items()
                if not part.endswith(" expiring")
            ]
            made.append(f"| {query} | {name} | {', '.join(each)} |")
    return "\n".join(made) + "\n"


def _titled(title: str, first: str, points: dict[str, Any], measure: str = "average_ms") -> str:
    return f"{title}:\n\n{_table(first, points, measure)}"


def _probing(found: dict[str, Any]) -> str:
    periods = list(next(iter(found.values())))
    head = _head("query", [f"{period} ms" for period in periods])
    rows = [_row(query, [shown(by[period]["average_ms"]) for period in periods]) for query, by in found.items()]
    return "\n".join(
        [
            "## Time probing at a period\n",
            (
                "An operator learns the time from rows, and at multiples of the period from the operator below, as that had "
                "learnt it before; probes are free. Average delay in milliseconds, by the period:\n"
            ),
            *head,
            *rows,
            "",
        ]
    )


def _rows(found: dict[str, Any]) -> str:
    """Rows as multiples of input-triggered's."""

    def cell(by: dict[str, Any], name: str) -> str:
        if name not in by:
            return SAME
        parts = (
            shown([one / two for one, two in zip(by[name][measure], by["input-triggered"][measure], strict=True)])
            for measure in ("rows", "first_kind")
        )
        return "; ".join(parts)

    rows = [_row(query, [cell(by, name) for name in STRATEGIES]) for query, by in found.items()]
    return "\n".join(
        [
            "## Rows through the pipelines\n",
            (
                "Counted, with the rates and windows of Fig 8: rows into all operators but Expire, which belongs to the scan; then "
                "those into selections and joins below the first operator that must process expirations, each as a multiple of "
                "input-triggered's, once the window is full.\n"
            ),
            *_head("query"),
            *rows,
            "",
        ]
    )


def _rates(found: dict[str, Any]) -> str:
    rows = [
        _row(query, [shown(rates[name]) if name in rates else SAME for name in STRATEGIES])
        for query, rates in found.items()
    ]
    return "\n".join([*_head("query"), *rows]) + "\n"


def _ranges(found: dict[str, Any]) -> str:
    """For which queries all parts of input-triggered are later than all parts of the other strategies."""
    sentences = []
    for query, by in found.items():
        earliest = min(by["input-triggered"]["average_ms"])
        latest = max(max(by[name]["average_ms"]) for name in by if name != "input-triggered")
        sentences.append(
            f"For {query} its range lies above all others."
            if earliest > latest
            else f"For {query} its range overlaps theirs, so this run does not show it."
        )
    return " ".join(sentences)


def _spark(found: dict[str, Any], rate: float) -> str:
    counts = [figures["changes"] for by in found.values() for figures in by.values()]
    rows = [
        _row(
            query,
            [
                f"{shown(by[n]['average_ms'])}; {shown(by[n]['batch_ms'])}; {by[n]['changes']:,}" if n in by else SAME
                for n in STRATEGIES
            ],
        )
        for query, by in found.items()
    ]
    return "\n".join(
        [
            "## On Spark\n",
            (
                f"Measured by the wall clock: streams of {rate:g} sales/s from Spark's rate source, a window of {WINDOW} s, a "
                f"heartbeat every {HEARTBEAT_MS} ms, a batch every {TRIGGER_MS} ms or as soon as the last has ended. In a "
                "cell: the average delay of a change in milliseconds when it leaves the last stage, as median and range of "
                "consecutive parts of one run; the mean time of a batch; and the number of changes. A run has only "
                f"{min(counts)} to {max(counts)} changes, so these delays illustrate the batch interval and test no claim. The "
                "rate source emits rows once per second, so they are half a second old on average when they arrive.\n"
            ),
            *_head("query"),
            *rows,
            "",
            (
                "On Spark a change leaves with its batch, so the correct strategies wait for the batch and its interval, and "
                f"input-triggered waits in addition for the next row that reaches the operator. {_ranges(found)}\n"
            ),
        ]
    )

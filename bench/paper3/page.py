"""The page and the plots of paper 3's measurements."""

from __future__ import annotations

from typing import Any

from bench.claim import Claim, lines
from bench.figures import Figure
from bench.paper3.claims import excess
from bench.paper3.measure import BASELINES, QUERIES, STRATEGIES
from bench.report import Figures
from bench.spread import middle, shown


def figures(found: Figures) -> list[Figure]:
    """The plots of rows, as a multiple of input-triggered's, and of delays: medians of the seeds."""
    drawn = []
    for query in QUERIES:
        by = found[query]
        rows = {name: [(float(rate), middle(excess(at, name))) for rate, at in by.items()] for name in STRATEGIES}
        delays = {
            name: [(float(rate), middle(at[name]["average_ms"])) for rate, at in by.items()] for name in STRATEGIES
        }
        title = f"Rows and messages through the pipeline of {query.upper()}"
        drawn.append(Figure(f"paper3-rows-{query}", title, "tuples/s", "times input-triggered", rows, log_x=True))
        title = f"Output delay of {query.upper()}"
        drawn.append(Figure(f"paper3-delay-{query}", title, "tuples/s", "average delay, ms", delays, log_x=True))
    return drawn


def page(found: Figures) -> str:
    """The text of `docs/experiments/paper3.md`."""
    settings = found["settings"]
    parts = [
        "# Paper 3: fewer negative tuples\n",
        (
            "*Incremental evaluation of sliding-window queries over data streams*; time messages and piggybacking as "
            "defined in [strategies](../strategies.md). Repeat with `python -m bench paper3 --save`.\n"
        ),
        (
            f"Paper 1's Q2 and Q3 in simulation: a window of {settings['window_seconds']} s, shorter at rates that would bring more "
            f"than {settings['rows']:,} rows of a stream into it, over three windows. Each point has {settings['seeds']} seeds; a "
            "cell has their median and, in brackets, their range. What is assumed:\n"
        ),
        (
            "- Operators take no time, and there are no queues: these are counts of rows, and the delays that come from "
            "waiting for the time, not from work. Negative tuples and time messages have no delay then.\n"
            "- Rows and messages are those into all operators of the stages. What runs in a leg, below the first stage, is not "
            "counted.\n"
            f"- Piggybacking holds back a time for up to {settings['patience_ms']:g} ms until a row carries it.\n"
            "- Input-triggered's delay is averaged over at least 10,000 changes of all seeds. Piggybacking's is averaged over "
            "the changes of the counted runs, whose number is in parentheses: where it is small, most delays are 0.\n"
        ),
        "Rows and messages, as a multiple of input-triggered's; then the average delay in ms:\n",
        "| query, tuples/s | " + " | ".join(STRATEGIES) + " |",
        "|---|" + "---:|" * len(STRATEGIES),
    ]
    for query in QUERIES:
        for rate, at in found[query].items():
            cells = [f"{shown(excess(at, name))}; {shown(at[name]['average_ms'])}" for name in STRATEGIES]
            parts.append(f"| {query}, {rate} | " + " | ".join(cells) + f" ({at['piggyback']['changes']:,}) |")
    parts += [
        "",
        *(f"![{kind} {query}](figures/paper3-{kind}-{query}.svg)" for query in QUERIES for kind in ("rows", "delay")),
        "",
    ]
    if "baseline" in found:
        parts += _baseline(found["baseline"])
    parts += ["## Claims\n", lines([Claim(**claim) for claim in found["claims"]]), ""]
    return "\n".join(parts)


def _baseline(by_query: dict[str, Any]) -> list[str]:
    made = [
        "## Re-evaluation as the baseline\n",
        (
            "Measured in the local runtime, in micro-batches of one second: `re-evaluation` computes the answer anew, at every "
            "instant at which a row arrives or ends, from all rows of the windows. Rows into all operators per arriving row, "
            "and milliseconds of processor time per arriving row, by the rows of a stream in its window:\n"
        ),
        "| query, rows per window | " + " | ".join(BASELINES) + " |",
        "|---|" + "---:|" * len(BASELINES),
    ]
    for query, by in by_query.items():
        for rows, at in by.items():
            cells = [f"{shown(at[name]['rows'])}; {shown(at[name]['ms'])} ms" for name in BASELINES]
            made.append(f"| {query}, {rows} | " + " | ".join(cells) + " |")
    return [*made, ""]

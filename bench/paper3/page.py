"""The page and the plots of paper 3's measurements."""

from __future__ import annotations

from typing import Any

from bench.claim import Claim, lines
from bench.figures import Figure
from bench.paper3.claims import excess
from bench.paper3.measure import BASELINES, QUERIES, STRATEGIES
from bench.report import Figures
from bench.spread import middle, shown

_NOTE = (
    "How rows are counted was changed after results were seen: at first those of the selections and joins with tables that run at "
    "the scan under all strategies but negative tuples were left out, so that negative tuples seemed to have 3.5 to 13 times the "
    "rows."
)


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
            f"than {settings['rows']:,} rows of a stream into it. Each point has {settings['seeds']} seeds and, over all of them, at "
            f"least {_fewest(found):,} changes per strategy, from the moment when the window is full. A cell has the median of the "
            "seeds and, in brackets, their range. What is assumed:\n"
        ),
        (
            "- Operators take no time, and there are no queues: these are counts of rows, and the delays that come from "
            "waiting for the time, not from work. Negative tuples and time messages have no delay then.\n"
            "- Rows and messages are those into all operators but Expire, which belongs to the scan; selections, projections and "
            "joins with tables that run at the scan are among them.\n"
            f"- Piggybacking holds back a time for up to {settings['patience_ms']:g} ms until a row carries it.\n"
            "- Changes that input-triggered never released, because the run ended, are left out, in its favour.\n"
        ),
        "Rows and messages, as a multiple of input-triggered's; then the average delay in ms:\n",
        "| query, tuples/s | " + " | ".join(STRATEGIES) + " |",
        "|---|" + "---:|" * len(STRATEGIES),
    ]
    for query in QUERIES:
        for rate, at in found[query].items():
            cells = [f"{shown(excess(at, name))}; {shown(at[name]['average_ms'])}" for name in STRATEGIES]
            parts.append(f"| {query}, {rate} | " + " | ".join(cells) + " |")
    parts += [
        "",
        *(f"![{kind} {query}](figures/paper3-{kind}-{query}.svg)" for query in QUERIES for kind in ("rows", "delay")),
        "",
    ]
    if "baseline" in found:
        parts += _baseline(found["baseline"])
    parts += ["## Claims\n", lines([Claim(**claim) for claim in found["claims"]], _NOTE), ""]
    return "\n".join(parts)


def _fewest(found: Figures) -> int:
    """The least number of changes whose delay is averaged in a cell."""
    return min(int(at[name]["changes"]) for query in QUERIES for at in found[query].values() for name in STRATEGIES)


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

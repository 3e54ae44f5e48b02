"""Writes docs/experiments/paper5.md from the results of a run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.claim import Claim, lines
from bench.paper5.breakdown import LEGS, REST
from bench.paper5.claims import UPA, by_window, chosen_times
from bench.paper5.command import LONGEST
from bench.paper5.ends_report import answers_section, ends_section, sent_section
from bench.paper5.measure import BATCH, LEAST
from bench.paper5.queries import CASES, STRATEGIES, PaperQuery
from bench.paper5.trace import DESTINATIONS, FTP, SOURCES, TELNET
from bench.spread import ratios, shown

PAGE = Path("docs") / "experiments" / "paper5.md"

INTRODUCTION = f"""# Paper 5: update-pattern-aware execution

Golab and Özsu, *Update-pattern-aware modeling and processing of continuous queries* (2005), section 6.
`python -m bench paper5 --save` measures everything here and writes this page.

Each query runs under `negative-tuple`, `direct` and `update-pattern-aware` in one process and one shard, on the same
micro-batches of {BATCH:,} rows per link (a window's rows if it has fewer, but at least {LEAST:,}). The three take turns of
four batches. Times are processor time per 1,000 rows of input once the windows are full, over {{rows:,}} rows per link, as
the median of {{repeats}} traces with different seeds and, in brackets, their range; a recorded trace is run {{repeats}} times.
Bytes are those of the operators' arrays as allocated (by doubling), the most of all runs. All changes of the answer are
computed, including expirations. Nothing here but the bytes of the checkpoint is measured on Spark.

The generated trace has one row per link and millisecond, {SOURCES:,} sources, {DESTINATIONS} destinations of each on a
link, {FTP:.0%} ftp and {TELNET:.0%} telnet; ftp's and telnet's sources on two links overlap in a tenth. The recorded
traces are split into three links by destination. If a trace has no ftp or telnet, two other protocols (or ports) are the
selective and the unselective one. The recorded traces are short, so each is repeated until a link has {{longest:,}} rows;
otherwise the overhead of calling the operators would dominate.

All three strategies use the same operators, compiled loops and efficient buffers. `direct` keeps its rows in a calendar
partitioned by the planner, whereas the paper's scans a list; `negative-tuple` finds the expiring row by its hash.
"""

_AFTERWARDS = (
    "These were set after results were seen: about n times is 0.9 n or more, a choice is good if it takes at most 1.1 times the "
    "time of the better way, and lazy expiration has to be faster in four fifths of the runs."
)

READING = """## Differences from the paper, and their reasons

- **Query 1.** In the paper `direct` scans its whole result for expired rows, so that its loss grows with the result
  (Figures 9 and 10). Here its result and its windows are in calendars, which visit only the expired rows. The remaining
  gain of update-pattern awareness is that windows are FIFO rings, which need no links and no sorting, and that the join
  stores no results: their expiration times follow from the inputs, so when a row expires, the join probes once more and
  retracts its results. With few results, most of the work is filtering and storing the input, which is the same for all
  strategies (see the breakdown of the time); `negative-tuple` does all of it twice, selections included.
- **Query 2.** delta-star keeps one entry per value and visits a value again only when its current row has expired;
  `direct` and `negative-tuple` process the expiration of every input row. The gain grows with the rows per value. It is
  bounded by the work that all three share: hashing each row, looking up its value, and the overhead around operators.
- **Query 3.** In the paper a premature expiration scans a list, so that negative tuples win on large windows. Here every
  strategy keeps the results of a negation as counts by value. A premature expiration costs the same as any other, no
  choice is needed, and expiration by the clock is cheaper than a retraction for each row. If a join keeps the results of a
  negation row by row, there is a choice, as in the paper: see above.
- **Query 4** is Query 2 twice, and a join of few rows. delta-star sends the join changes of values, not of the rows that
  represent them.
- **Query 5.** The faster form depends on the window: the join's results grow with the square of the rows, so that negation
  above the join suits small windows and selective joins, as in the paper. Rates and numbers of distinct values do not
  predict this on recorded traces, where a few hosts and ports have most of the rows and a join gives up to a hundred times
  the results of uniform values. So the optimizer uses frequent values, and measured costs of an insertion, a retraction
  and a probe. Below the join, the negation's rows carry expiration times or are retracted, by the adaptive choice (see
  above).
"""


def write(results: dict[str, Any], page: Path = PAGE) -> Path:
    """Write the page, with the sections that were measured."""
    parts = [
        INTRODUCTION.format(rows=results["rows"], repeats=results["repeats"], longest=min(results["rows"], LONGEST))
    ]
    mine = [result for result in results["results"] if result["trace"] == "generated"]
    for case in CASES:
        found = [result for result in mine if result["query"] == case.name]
        if found:
            parts.append(_query(case, found))
    for key, section in (
        ("partitions", _partitions),
        ("lazy", _lazy),
        ("sizes", _sizes),
        ("breakdown", _breakdown),
        ("choices", _choices),
        ("ends", ends_section),
        ("answers", answers_section),
        ("sent", sent_section),
    ):
        if results.get(key):
            parts.append(section(results[key]))
    recorded = dict.fromkeys(result["trace"] for result in results["results"] if result["trace"] != "generated")
    if recorded or results.get("skipped"):
        parts.append("## Recorded traces\n")
    parts += [
        f"`{trace}`\n\n{_times([r for r in results['results'] if r['trace'] == trace], every=True)}"
        for trace in recorded
    ]
    parts += [f"Not measured: {reason}.\n" for reason in results.get("skipped", ())]
    if state := results.get("group_by"):
        parts.append(
            f"## State of the 60 s group-by benchmark\n\n`{state['sql']}` keeps {state['state_bytes']:,} bytes for "
            f"{state['window_rows']:,} rows in its window, ten rows to a group: {state['bytes_per_row']:g} bytes per row.\n"
        )
    if results.get("checkpoint"):
        parts.append(_checkpoint(results["checkpoint"]))
    parts += [f"## Claims\n\n{lines([Claim(**claim) for claim in results['claims']], _AFTERWARDS)}\n", READING]
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text("\n".join(parts), encoding="utf-8")
    return page


def _query(case: PaperQuery, results: Sequence[dict[str, Any]]) -> str:
    made = [f"## {case.title} ({case.figure})\n", f"![{case.title}](figures/paper5-{case.name}-time.svg)\n"]
    made.append(_times(results))
    if "DISTINCT" in case.sql:
        made.append(f"![{case.title}, state](figures/paper5-{case.name}-state.svg)\n")
    largest = max(results, key=lambda result: result["window_rows"])["window_rows"]
    last = {result["strategy"]: result for result in results if result["window_rows"] == largest}
    gains = [
        f"{shown(ratios(last[name]['runs'], last[UPA]['runs']))} times as fast as `{name}`"
        for name in STRATEGIES
        if name != UPA
    ]
    sentence = f"At {largest:,} rows per window `{UPA}` is {' and '.join(gains)}"
    if case.gain is not None:
        sentence += f"; the paper reports about {case.gain[0]:g} and {case.gain[1]:g} times, or more"
    premature = last[UPA].get("premature")
    if premature is not None:
        sentence += f"; {premature:.0%} of the expirations are premature"
    return "\n".join([*made, sentence + ".\n"])


def _times(results: Sequence[dict[str, Any]], *, every: bool = False) -> str:
    heading = ["query", "rows per window"] if every else ["rows per window"]
    columns = [
        *heading,
        *(f"{name}, ms" for name in STRATEGIES),
        *(f"{name}, bytes" for name in STRATEGIES),
        "answer rows",
    ]
    made = ["| " + " | ".join(columns) + " |", "|---" * len(columns) + "|"]
    for query, window in dict.fromkeys((result["query"], result["window_us"]) for result in results):
        same = {r["strategy"]: r for r in results if (r["query"], r["window_us"]) == (query, window)}
        cells = [query] if every else []
        cells.append(f"{same[UPA]['window_rows']:,}")
        cells += [shown(same[name]["runs"]) for name in STRATEGIES]
        cells += [f"{same[name]['state_bytes']:,}" for name in STRATEGIES]
        made.append("| " + " | ".join([*cells, f"{same[UPA]['answer_rows']:,}"]) + " |")
    return "\n".join(made) + "\n"


def _choices(choices: Sequence[dict[str, Any]]) -> str:
    made = [
        "## Query 5: the optimizer's choice\n",
        (
            "The streams' rates, distinct counts and frequent values are computed from the trace. Both forms run\n"
            "update-pattern-aware, side by side. The last column is, run by run, the time of the chosen form relative to\n"
            "the faster one.\n"
        ),
        "| trace | rows per window | chosen | below, ms | above, ms | chosen / faster |",
        "|---|---|---|---|---|---|",
    ]
    for choice in choices:
        times = choice["ms_per_1000"]
        taken = ", ".join(dict.fromkeys(choice["chosen"]))
        made.append(
            f"| {choice['trace']} | {choice['window_rows']:,} | {taken} | {shown(times['q5-below'])} | "
            f"{shown(times['q5-above'])} | {shown(chosen_times(choice))} |"
        )
    return "\n".join(made) + "\n"


def _partitions(results: Sequence[dict[str, Any]]) -> str:
    names = list(dict.fromkeys(result["strategy"] for result in results))
    text = (
        "Query 1 with the unselective protocol, with 10 and with 50 partitions in every calendar, and with the number that\n"
        "the planner chooses. In the paper update-pattern-aware execution keeps the result in a partitioned buffer; here the\n"
        "join keeps no results, so partitions matter to `direct`, which does. Milliseconds per 1,000 rows:\n"
    )
    rows = _by_window(results, "q1-telnet", names)
    return "\n".join(["## Partitions (Fig 10)\n", "![Partitions](figures/paper5-partitions.svg)\n", text, *rows, ""])


def _lazy(results: Sequence[dict[str, Any]]) -> str:
    text = (
        "Queries with joins, update-pattern-aware: expired rows removed at once, and at an interval of 5 % of the window (in\n"
        "the paper the setting of all runs, and only a shorter one is slower). Milliseconds per 1,000 rows:\n"
    )
    made = ["## Lazy expiration (6.1)\n", text]
    for query in dict.fromkeys(result["query"] for result in results):
        made += [f"`{query}`\n", *_by_window(results, query, ["at once", "lazy"]), ""]
    return "\n".join(made)


def _by_window(results: Sequence[dict[str, Any]], query: str, names: Sequence[str]) -> list[str]:
    made = ["| rows per window | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    for row in by_window(results, query):
        first = row[names[0]]
        made.append(f"| {first['window_rows']:,} | " + " | ".join(shown(row[name]["runs"]) for name in names) + " |")
    return made


def _sizes(sizes: Sequence[dict[str, Any]]) -> str:
    """The comparison by the size of micro-batches."""
    window = sizes[0]["results"][0]["window_rows"]
    made = [
        "## By the size of micro-batches\n",
        (
            f"Queries without negation at {window:,} rows per window: milliseconds per 1,000 rows, and the speed-up of\n"
            f"`{UPA}` over `direct`. In larger batches more rows share the overhead of calling operators.\n"
        ),
        "| query | rows per batch | " + " | ".join(STRATEGIES) + " | times direct |",
        "|---|---|" + "---|" * (len(STRATEGIES) + 1),
    ]
    for query in dict.fromkeys(result["query"] for result in sizes[0]["results"]):
        for size in sizes:
            found = {result["strategy"]: result["runs"] for result in size["results"] if result["query"] == query}
            cells = " | ".join(shown(found[name]) for name in STRATEGIES)
            gain = shown(ratios(found["direct"], found[UPA]))
            made.append(f"| {query} | {size['batch_rows']:,} | {cells} | {gain} |")
    return "\n".join(made) + "\n"


def _breakdown(parts: Sequence[dict[str, Any]]) -> str:
    """The time of each part, by query and strategy."""
    names = list(dict.fromkeys(name for one in parts for taken in one["us_per_row"].values() for name in taken))
    names.sort(key=lambda name: (name == REST, name != LEGS, name))
    made = [
        "## Breakdown of the time\n",
        (
            f"Queries without negation at {parts[0]['window_rows']:,} rows per window: microseconds per row of input, in a\n"
            f"separate run for each strategy. `{LEGS}` are the legs directly above the links; `{REST}` is the work of a shard\n"
            "around its operators: it sorts rows, assigns expiration times, and holds rows until the clock passes them.\n"
        ),
        "| query | strategy | " + " | ".join(names) + " | in all |",
        "|---|---|" + "---|" * (len(names) + 1),
    ]
    for one in parts:
        for strategy, taken in one["us_per_row"].items():
            cells = [f"{taken[name]:.3f}" if name in taken else "" for name in names]
            made.append(f"| {one['query']} | {strategy} | {' | '.join(cells)} | {sum(taken.values()):.3f} |")
    return "\n".join(made) + "\n"


def _checkpoint(written: Sequence[dict[str, Any]]) -> str:
    made = [
        "## Bytes written to the checkpoint per batch\n",
        (
            f"The same query on Spark, in batches of {written[0]['batch_rows']:,} rows, once the window is full: bytes of the state\n"
            "store's changes that commit with a batch, as median, minimum and maximum of the last batches. They are\n"
            "proportional to the batch, because only the log of its rows is stored; operators' arrays are a cache.\n"
        ),
        "| rows per window | bytes per batch | least | most | bytes per row of the batch | bytes of working state |",
        "|---|---|---|---|---|---|",
    ]
    made += [
        f"| {one['window_rows']:,} | {one['bytes_per_batch']:,} | {one['least']:,} | {one['most']:,} | "
        f"{one['bytes_per_row']:g} | {one['state_bytes']:,} |"
        for one in written
    ]
    return "\n".join(made) + "\n"

"""Writes docs/experiments/paper4.md from the results of a run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.claim import Claim, lines
from bench.paper4.experiments import BUCKETS, PER_KEY
from bench.paper4.measured_report import measured_sections
from bench.spread import ratios, shown

PAGE = Path("docs") / "experiments" / "paper4.md"

INTRODUCTION = """# Paper 4: sliding window multi-joins

Golab and Özsu, *Processing Sliding Window Multi-Joins in Continuous Queries over Data Streams* (2003).
`python -m bench paper4 --save` measures everything here and writes this page.

Streams are made as in the paper (6.1): one row after the other, from a stream drawn by its rate, with a uniform key. A unit
of time has as many rows as all rates together, so that a window of T units holds rate x T rows. Windows are full before the
measurement starts. Every point has {repeats} runs over different rows; a cell has their median and, in brackets, their range.
Rates are per second of processor time, on Spark per second of the wall clock. *Rows looked at* are those that the operator
visits in every loop but the outermost, as in the paper's cost model; they do not depend on the machine.
"""

_AFTERWARDS = (
    "One claim was reworded after results were seen: in Fig 2 the rows that the multi-way join saves grow with every window, "
    "while their ratio, by which it was judged at first, does not."
)

READING = """## How the planner uses hash sizes and expensive predicates

- **Hash sizes** (5.3, 6.5). Sash's own tables have a list for every key, so a probe visits only rows that match. The cost
  model treats this as a table with as many buckets as its window has values, by the attribute that a loop is entered with
  where streams are joined on several. With a limit (`buckets=` of `engine.sql` and `replay`) the planner distributes that
  many buckets over the windows, each further one to the window whose scans it shortens most. The order is chosen for those
  sizes; it may change at run time, the sizes do not.
- **Expensive predicates** (5.4). The two sides of a comparison, including the functions they call, are computed once per
  row, on arrival, before all loops. In the loops it is a comparison of two numbers, always at the same cost (about that of
  skipping ten rows of a packed bucket), which the cost model counts where both rows are bound. Comparisons of one loop are
  ordered by selectivity. If results grow from loop to loop the cheapest order tests early, as in the paper; if they shrink,
  late. Conditions that cannot be split by input (`a.name < b.name`, `CASE` over two streams, `LIKE` of a concatenation) are
  tested on the results as soon as all of their inputs are joined, numbers before text before patterns, each on what is left.
"""


def write(found: dict[str, Any], page: Path = PAGE) -> Path:
    """Write the page, with the sections that were measured."""
    parts = [INTRODUCTION.format(repeats=found["repeats"])]
    if "table8" in found:
        parts.append(_table_8(found["table8"]))
    if "local" in found or "spark" in found:
        parts.append(_engine(found.get("local", ()), found.get("spark", ()), found.get("spark_batches", 0)))
    parts += [
        f"## {figure['title']}\n\n![{figure['title']}](figures/{figure['name']}.svg)\n\n{_points(figure)}"
        for figure in found.get("figures", ())
    ]
    parts += measured_sections(found)
    parts += [f"## Claims\n\n{lines([Claim(**claim) for claim in found['claims']], _AFTERWARDS)}\n", READING]
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text("\n".join(parts), encoding="utf-8")
    return page


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _table_8(rows: Sequence[dict[str, Any]]) -> str:
    columns = (
        "form",
        "best plan, rows/s",
        "worst plan",
        "ratio",
        "looked at per row, best",
        "worst",
        "paper: best",
        "worst",
        "ratio",
    )
    made = [
        "## Table 8: best and worst plans\n",
        (
            f"The operator alone, results counted, on Table 5's streams with {BUCKETS} buckets per hash table. Best and worst are\n"
            "of all 24 orders by cost; the best is the one that the heuristic finds (1, 2, 3, 4).\n"
        ),
        _row(columns),
        "|---|" + "---:|" * (len(columns) - 1),
    ]
    for row in rows:
        name = "eager hash, a list per key (Sash's default)" if row["form"] == PER_KEY else row["form"]
        cells = [name, shown(row["best_per_s"])]
        if "worst_per_s" in row:
            cells += [shown(row["worst_per_s"]), shown(ratios(row["best_per_s"], row["worst_per_s"]))]
            cells += [shown(row["best_probes"]), shown(row["worst_probes"])]
            best, worst = row["paper_best_per_s"], row["paper_worst_per_s"]
            cells += [f"{best:,}", f"{worst:,}", f"{best / worst:.1f}"]
        else:
            cells += ["", "", shown(row["best_probes"]), "", "", "", ""]
        made.append(_row(cells))
    return "\n".join(made) + "\n"


def _engine(local: Sequence[dict[str, Any]], spark: Sequence[dict[str, Any]], batches: int) -> str:
    on_spark = {row["form"]: row for row in spark}
    changes = f"{local[0]['changes_per_row']:g}" if local else "28"
    made = [
        "### The whole engine\n",
        (
            "The same query as SQL, order and buckets pinned as above, with results as rows and every change output: about\n"
            f"{changes} changes for every input row. Most of the time goes there, so plans differ less than in the operator alone. On\n"
            f"Spark a cell has the median and range of {batches} batches of one run; the time of a batch includes Spark's overhead.\n"
        ),
        _row(("form", "one process: best, rows/s", "worst", "Spark: best, rows/s", "worst")),
        "|---|" + "---:|" * 4,
    ]
    for row in local or spark:
        other = on_spark.get(row["form"], {})
        cells = [
            shown(of[key]) if key in of else ""
            for of in ((row if local else {}), other)
            for key in ("best_per_s", "worst_per_s")
        ]
        made.append(_row((row["form"], *cells)))
    return "\n".join(made) + "\n"


def _points(figure: dict[str, Any]) -> str:
    columns = figure["runs"]
    by = [dict(points) for points in columns.values()]
    xs = sorted({x for line in by for x in line})
    made = [_row((f"{figure['y']}, by {figure['x']}", *columns)), "|---|" + "---:|" * len(columns)]
    for x in xs:
        cells = [(shown(line[x]) if len(line[x]) > 1 else f"{line[x][0]:,.0f}") if x in line else "" for line in by]
        made.append(_row((f"{x:g}", *cells)))
    return "\n".join(made) + "\n"

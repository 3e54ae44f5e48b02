"""`python -m bench paper5`: measures the queries over every trace and window, and the optimizer's choices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console, Group
from rich.table import Table

from bench.figures import Figure
from bench.paper5.breakdown import breakdown
from bench.paper5.checkpoint import checkpoint_bytes
from bench.paper5.claims import claims
from bench.paper5.ends import measure_ends
from bench.paper5.measure import BATCH, LEAST, batch_of, chosen_form, measure, measure_forms
from bench.paper5.queries import CASES, STRATEGIES, PaperQuery
from bench.paper5.state import group_by_state
from bench.paper5.trace import Trace, generated, recorded
from bench.report import Figures
from sash.errors import SashError

DATA = Path("..") / "shared" / "data"
SHARES = (200, 60, 20, 6, 2)
"""The windows over a recorded trace, as fractions of its length."""
LONGEST = 100_000
"""A recorded trace is repeated until a link has this many rows, so that the start-up does not dominate."""
FORM_REPEATS = 3
"""The runs of each form of Query 5; the best counts."""
SIZES = (LEAST, BATCH, 50_000)
"""Sizes of micro-batches for the comparison by size."""


def measure_all(
    names: str,
    windows: Sequence[int],
    rows: int,
    repeats: int,
    data: Path,
    state_rows: int,
    checkpoint: bool = True,
    seed: int = 5,
) -> Figures:
    """Run all measurements of the command."""
    wanted = [case for case in CASES if names == "all" or case.name in names.split(",")]
    unknown = [] if names == "all" else [name for name in names.split(",") if name not in {case.name for case in CASES}]
    if unknown:
        raise SashError(f"unknown query {unknown[0]!r}; use one of {', '.join(case.name for case in CASES)}")
    traces, missing = recorded(data)
    with Console(stderr=True).status("paper 5") as status:
        results, choices = [], []
        for window in windows:
            made = generated(window + rows, seed)
            results += _over(wanted, made, [1_000 * window], repeats, batch_of(window), status.update)
            choices += _choices(wanted, made, [1_000 * window], batch_of(window), status.update)
        for trace in traces:
            lengths = [max(1, trace.span // share) for share in SHARES]
            long = trace.repeated(min(rows, LONGEST))
            batch = max(20, min(LEAST, long.rows // 40))
            results += _over(wanted, long, lengths, 1, batch, status.update)
            choices += _choices(wanted, long, lengths, batch, status.update)
        made = generated(windows[-1] + rows, seed)
        free = [case for case in wanted if case.free]
        sizes = [
            {"batch_rows": batch, "results": _over(free, made, [1_000 * windows[-1]], repeats, batch, status.update)}
            for batch in SIZES
            if batch <= rows // 4
        ]
        status.update("breakdown of the time")
        parts = _parts(free, made, windows[-1])
        status.update("calendar or negative tuples above a negation")
        ends = measure_ends(max(windows) // 2, min(rows, 100_000))
        status.update("the state of the group-by benchmark")
        state = group_by_state(state_rows)
        status.update("the checkpoint of the group-by benchmark")
        written = checkpoint_bytes() if checkpoint else []
    figures: Figures = {"rows": rows, "repeats": repeats, "results": results, "skipped": missing, "group_by": state}
    figures["ends"] = ends
    figures["sizes"] = sizes
    figures["breakdown"] = parts
    figures["checkpoint"] = written
    figures["choices"] = choices
    figures["claims"] = [{"claim": text, "held": held} for text, held in claims(figures)]
    figures["figures"] = [figure.as_json() for figure in plots(figures)]
    return figures


def _over(
    cases: Sequence[PaperQuery],
    trace: Trace,
    windows: Sequence[int],
    repeats: int,
    batch: int,
    report: Callable[[str], None],
) -> list[dict[str, Any]]:
    made = []
    for window in windows:
        for case in cases:
            report(f"{trace.name}: {case.title}, {window / 1e6:g} s")
            runs = [measure(case, trace, window, batch=batch) for _ in range(repeats)]
            for same in zip(*runs, strict=True):
                times = [run["ms_per_1000"] for run in same]
                made.append({**same[0], "ms_per_1000": median(times), "least": min(times), "most": max(times)})
    return made


def _parts(cases: Sequence[PaperQuery], trace: Trace, window: int) -> list[dict[str, Any]]:
    """The breakdown of the time of queries without negation, at the largest window."""
    return [
        {"query": case.name, "window_rows": window, "us_per_row": breakdown(case, trace, 1_000 * window)}
        for case in cases
    ]


def _choices(
    cases: Sequence[PaperQuery], trace: Trace, windows: Sequence[int], batch: int, report: Callable[[str], None]
) -> list[dict[str, Any]]:
    """The form of Query 5 that the optimizer chooses for each written form, beside the times of both."""
    forms = [case for case in cases if case.fixed]
    if len(forms) < 2:
        return []
    made = []
    for window in windows:
        report(f"{trace.name}: the forms of Query 5, {window / 1e6:g} s")
        chosen = [chosen_form(trace, window, case) for case in forms]
        times = measure_forms(forms, trace, window, FORM_REPEATS, batch)
        ratio = max(times[form] for form in chosen) / min(times.values())
        made.append(
            {
                "trace": trace.name,
                "window_us": window,
                "window_rows": round(window * trace.rows / max(trace.span, 1)),
                "chosen": chosen,
                "ms_per_1000": times,
                "ratio": round(ratio, 3),
                "good": ratio <= 1.1,
            }
        )
    return made


def plots(figures: Figures) -> list[Figure]:
    """The paper's figures on the generated trace: times by window for every query, bytes for those with DISTINCT."""
    drawn = []
    mine = [result for result in figures["results"] if result["trace"] == "generated"]
    for case in CASES:
        results = [result for result in mine if result["query"] == case.name]
        kinds = [("time", "ms_per_1000", "ms per 1,000 tuples")]
        if "DISTINCT" in case.sql:
            kinds.append(("state", "state_bytes", "bytes"))
        for kind, key, unit in kinds if results else ():
            series = {
                strategy: [(r["window_rows"], r[key]) for r in results if r["strategy"] == strategy]
                for strategy in STRATEGIES
            }
            name, title = f"paper5-{case.name}-{kind}", f"{case.title} ({case.figure})"
            drawn.append(Figure(name, title, "rows per window", unit, series, log_x=True, log_y=kind == "state"))
    return drawn


def table(figures: Figures) -> Group:
    """The results as tables."""
    shown = Table(title="Paper 5: time per 1,000 tuples (ms) and state (bytes)")
    for column in ("trace", "query", "rows per window", *STRATEGIES, *(f"{name}, bytes" for name in STRATEGIES)):
        shown.add_column(column, justify="left" if column in ("trace", "query") else "right")
    for row in rows_of(figures["results"]):
        times = [f"{row['times'][name]:.3f}" for name in STRATEGIES]
        sizes = [f"{row['bytes'][name]:,}" for name in STRATEGIES]
        shown.add_row(row["trace"], row["query"], f"{row['window_rows']:,}", *times, *sizes)
    claims_table = Table(title="Claims")
    claims_table.add_column("claim")
    claims_table.add_column("held")
    for claim in figures["claims"]:
        claims_table.add_row(claim["claim"], "yes" if claim["held"] else "no")
    ends = Table(title="Above a negation: ms per 1,000 rows")
    for column in ("negation", "premature", *figures["ends"][0]["ms_per_1000"], "final choice"):
        ends.add_column(column, justify="left" if column in ("negation", "final choice") else "right")
    for result in figures["ends"]:
        times = [f"{ms:.3f}" for ms in result["ms_per_1000"].values()]
        ends.add_row(result["negation"], f"{result['premature']:.0%}", *times, result["current_choices"])
    return Group(shown, ends, claims_table)


def rows_of(results: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row per trace, query and window, with the strategies side by side."""
    rows: dict[tuple[str, str, int], dict[str, Any]] = {}
    for result in results:
        key = (result["trace"], result["query"], result["window_us"])
        row = rows.setdefault(key, {"times": {}, "bytes": {}, "results": {}})
        row.update(trace=result["trace"], query=result["query"], window_rows=result["window_rows"])
        row["times"][result["strategy"]] = result["ms_per_1000"]
        row["bytes"][result["strategy"]] = result["state_bytes"]
        row["results"][result["strategy"]] = result
    return list(rows.values())

"""`python -m bench paper5`: measures the queries over every trace and window, and the optimizer's choices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console, Group
from rich.table import Table

from bench.figures import Figure
from bench.paper5.answers import measure_all_answers
from bench.paper5.breakdown import breakdown
from bench.paper5.checkpoint import checkpoint_bytes
from bench.paper5.claims import claims
from bench.paper5.ends import measure_ends
from bench.paper5.measure import BATCH, LEAST, batch_of, chosen_form, measure, measure_forms, merged
from bench.paper5.queries import CASES, STRATEGIES, PaperQuery
from bench.paper5.sent import measure_all_sent
from bench.paper5.state import group_by_state
from bench.paper5.trace import Trace, generated, recorded
from bench.paper5.variants import measure_lazy, measure_partitions
from bench.report import Figures
from sash.errors import SashError

DATA = Path("..") / "shared" / "data"
SHARES = (200, 20, 2)
"""The windows over a recorded trace, as fractions of its length."""
LONGEST = 20_000
"""A recorded trace is repeated until a link has this many rows, so that the start-up does not dominate."""
SIZES = (LEAST, BATCH, 50_000)
"""Sizes of micro-batches for the comparison by size."""
EXPERIMENTS = ("generated", "recorded", "variants", "sizes", "ends", "answers", "sent", "state")

Report = Callable[[str], None]


@dataclass(frozen=True)
class Plan:
    """What to measure: queries, rows per window of the generated trace, measured rows, seeds, and the recorded traces."""

    cases: Sequence[PaperQuery]
    windows: Sequence[int]
    rows: int
    seeds: int
    data: Path
    state_rows: int
    checkpoint: bool

    @property
    def free(self) -> list[PaperQuery]:
        """The queries without negation."""
        return [case for case in self.cases if case.free]


def measure_all(
    names: str,
    windows: Sequence[int],
    rows: int,
    seeds: int,
    data: Path,
    state_rows: int,
    checkpoint: bool = True,
    experiments: str = "all",
) -> Figures:
    """Run the experiments of the command."""
    plan = Plan(
        _named(names.split(","), CASES, "query") if names != "all" else CASES,
        windows, rows, seeds, data, state_rows, checkpoint,
    )  # fmt: skip
    wanted = EXPERIMENTS if experiments == "all" else tuple(experiments.split(","))
    if unknown := [name for name in wanted if name not in EXPERIMENTS]:
        raise SashError(f"unknown experiment {unknown[0]!r}; use one of {', '.join(EXPERIMENTS)}")
    figures: Figures = {"rows": rows, "repeats": seeds}
    runs = {
        "generated": _generated,
        "recorded": _recorded,
        "variants": _variants,
        "sizes": _sizes,
        "ends": _ends,
        "answers": _answers,
        "sent": _sent,
        "state": _state,
    }
    with Console(stderr=True).status("paper 5") as status:
        for name in wanted:
            figures |= runs[name](plan, status.update)
    return figures


def _named(names: Sequence[str], cases: Sequence[PaperQuery], what: str) -> list[PaperQuery]:
    known = {case.name: case for case in cases}
    if unknown := [name for name in names if name not in known]:
        raise SashError(f"unknown {what} {unknown[0]!r}; use one of {', '.join(known)}")
    return [known[name] for name in names]


def judged(figures: Figures) -> Figures:
    """The figures with all results in one list, their claims and their plots."""
    figures = {**figures, "results": [*figures.get("generated", ()), *figures.get("recorded", ())]}
    figures["choices"] = [*figures.get("generated_choices", ()), *figures.get("recorded_choices", ())]
    claimed = {**figures, "claims": [vars(claim) for claim in claims(figures)]}
    claimed["figures"] = [figure.as_json() for figure in plots(claimed)]
    return claimed


def _generated(plan: Plan, report: Report) -> Figures:
    results, choices = [], []
    for window in plan.windows:
        traces = [generated(window + plan.rows, seed) for seed in range(plan.seeds)]
        results += _over(plan.cases, traces, [1_000 * window], batch_of(window), report)
        choices += _choices(plan.cases, traces, [1_000 * window], batch_of(window), report)
    return {"generated": results, "generated_choices": choices}


def _recorded(plan: Plan, report: Report) -> Figures:
    """Recorded traces have no seeds: they are run that often."""
    results, choices = [], []
    traces, missing = recorded(plan.data)
    for trace in traces:
        lengths = [max(1, trace.span // share) for share in SHARES]
        long = [trace.repeated(min(plan.rows, LONGEST))] * plan.seeds
        batch = max(20, min(LEAST, long[0].rows // 40))
        results += _over(plan.cases, long, lengths, batch, report)
        choices += _choices(plan.cases, long, lengths, batch, report)
    return {"recorded": results, "recorded_choices": choices, "skipped": missing}


def _variants(plan: Plan, report: Report) -> Figures:
    few = plan.windows[-3:]
    return {
        "partitions": measure_partitions(few, plan.rows, plan.seeds, report),
        "lazy": measure_lazy(few, plan.rows, plan.seeds, report),
    }


def _sizes(plan: Plan, report: Report) -> Figures:
    """The comparison by the size of micro-batches, and the breakdown of the time, at the largest window."""
    window = plan.windows[-1]
    traces = [generated(window + plan.rows, seed) for seed in range(plan.seeds)]
    sizes = [
        {"batch_rows": batch, "results": _over(plan.free, traces, [1_000 * window], batch, report)}
        for batch in SIZES
        if batch <= plan.rows // 2
    ]
    report("breakdown of the time")
    parts = [
        {"query": case.name, "window_rows": window, "us_per_row": breakdown(case, traces[0], 1_000 * window)}
        for case in plan.free
    ]
    return {"sizes": sizes, "breakdown": parts}


def _ends(plan: Plan, report: Report) -> Figures:
    report("calendar or negative tuples above a negation")
    return {"ends": measure_ends(max(plan.windows) // 2, min(plan.rows, 100_000), seeds=plan.seeds)}


def _answers(plan: Plan, report: Report) -> Figures:
    report("calendar or negative tuples for the answer itself")
    return {"answers": measure_all_answers(max(plan.windows) // 2, min(plan.rows, 100_000), plan.seeds)}


def _sent(plan: Plan, report: Report) -> Figures:
    report("calendar or negative tuples between stages")
    return {"sent": measure_all_sent(max(plan.windows) // 4, min(plan.rows, 50_000), plan.seeds)}


def _state(plan: Plan, report: Report) -> Figures:
    report("the state and the checkpoint of the group-by benchmark")
    written = checkpoint_bytes() if plan.checkpoint else []
    return {"group_by": group_by_state(plan.state_rows), "checkpoint": written}


def _over(
    cases: Sequence[PaperQuery], traces: Sequence[Trace], windows: Sequence[int], batch: int, report: Report
) -> list[dict[str, Any]]:
    """Every query over every window: the medians over the traces of the seeds."""
    made = []
    for window in windows:
        for case in cases:
            report(f"{traces[0].name}: {case.title}, {window / 1e6:g} s")
            made += merged([measure(case, trace, window, batch=batch) for trace in traces])
    return made


def _choices(
    cases: Sequence[PaperQuery], traces: Sequence[Trace], windows: Sequence[int], batch: int, report: Report
) -> list[dict[str, Any]]:
    """The form of Query 5 that the optimizer chooses for each written form, beside the times of both in every run."""
    forms = [case for case in cases if case.fixed]
    if len(forms) < 2:
        return []
    made, trace = [], traces[0]
    for window in windows:
        report(f"{trace.name}: the forms of Query 5, {window / 1e6:g} s")
        made.append(
            {
                "trace": trace.name,
                "window_us": window,
                "window_rows": trace.rows_in(window),
                "chosen": [chosen_form(trace, window, case) for case in forms],
                "ms_per_1000": measure_forms(forms, traces, window, batch),
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
    parts = figures.get("partitions", [])
    if parts:
        names = dict.fromkeys(result["strategy"] for result in parts)
        series = {
            name: [(r["window_rows"], r["ms_per_1000"]) for r in parts if r["strategy"] == name] for name in names
        }
        title = "Query 1, unselective protocol: partitions (Fig 10)"
        drawn.append(
            Figure("paper5-partitions", title, "rows per window", "ms per 1,000 tuples", series, log_x=True, log_y=True)
        )
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
    for column in ("claim", "figures", "held"):
        claims_table.add_column(column)
    for claim in figures["claims"]:
        claims_table.add_row(claim["text"], claim["found"], "yes" if claim["held"] else "no")
    return Group(shown, claims_table)


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

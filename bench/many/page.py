"""The page of the benchmark of many queries: the method, and the figures of a run."""

from __future__ import annotations

from typing import Any

from bench.many.command import cell
from bench.many.streams import ACCOUNTS, COUNTRIES, DEVICES, MERCHANTS, PAGES
from bench.many.workload import MIXED, WINDOWS, JobQuery, mixed
from bench.report import Figures

_COLUMNS = {
    "batch, ms": "batch_ms",
    "longest": "longest_batch_ms",
    "processor s/s": "cpu_seconds_per_s",
    "lag, ms": "lag_ms",
    "worst lag": "worst_lag_ms",
    "rows out": "rows_out",
    "alone, ms": "alone_batch_ms",
    "separate, ms": "separate_batch_ms",
}


def page(figures: Figures | None) -> str:
    """The page with the figures of a run; without figures, the method alone."""
    return "\n".join([*_method(), *(_results(figures) if figures else [])]) + "\n"


def _method() -> list[str]:
    listed = mixed(MIXED)
    filters = {each for query in listed for each in query.filters}
    return [
        "# Many queries over the same streams",
        "",
        "Repeat with `python -m bench queries --save`.",
        "",
        (
            f"Two streams, payments and clicks, come from Spark's rate source. Their {ACCOUNTS:,} accounts, {MERCHANTS} "
            f"merchants, {PAGES} pages, {COUNTRIES} countries and {DEVICES} devices are skewed: the share of the first n of N "
            "is the square root of n / N. Every query writes the net changes of each batch to a changelog of its own. The "
            "queries run"
        ),
        "",
        "- as *one job*,",
        "- as *separate* queries at the same time, each a Spark query with a source of its own,",
        "- *alone*, one after the other: the median of the first ones of the list.",
        "",
        (
            f"The {MIXED} *mixed* queries are drawn with a fixed seed; no two are equal. They have {len(WINDOWS)} lengths of "
            f"windows from {min(WINDOWS)} to {max(WINDOWS)} s and {len(filters)} filters. {_joins(listed, 'table')} join a "
            f"stream with a table, {_joins(listed, 'streams')} join both streams. The others are aggregates by merchant, page, "
            "country, device, account or over all events, HAVING, DISTINCT, EXCEPT, top k, and selections. A job of ten has "
            "the first ten of the list, which has its shapes evenly distributed."
        ),
        "",
        (
            "The *alike* queries differ in a constant only. Half of them select one account (`WHERE account = 17`). The others "
            "have a threshold (`GROUP BY merchant HAVING SUM(amount) > 400000`), which about 1 % of the merchants pass."
        ),
        "",
        (
            "*Batch* is the median time of a batch from its trigger to its commit. *Processor* is the time of all processes: "
            "driver, Java and Python workers. *Lag* is the time by which the answer is behind the wall clock when a batch ends; "
            "up to a second of it is the source's, which emits rows once per second. *Rows out* are the changes written while "
            "measuring."
        ),
    ]


def _joins(listed: tuple[JobQuery, ...], kind: str) -> int:
    return sum(query.join == kind for query in listed)


def _results(figures: Figures) -> list[str]:
    settings, jobs = figures["settings"], figures["jobs"]
    lines = [
        "",
        "## Figures",
        "",
        (
            f"{settings['rate']:,} events per second and stream, a batch every {settings['trigger']:g} s, measured for "
            f"{settings['seconds']:g} s after {settings['warmup']:g} s."
        ),
        "",
        "| queries | " + " | ".join(_COLUMNS) + " |",
        "|---|" + "---:|" * len(_COLUMNS),
        *(
            f"| {_label(job)} | " + " | ".join(cell(job.get(field)) for field in _COLUMNS.values()) + " |"
            for job in jobs
        ),
        "",
    ]
    return lines + [f"- {line}" for job in jobs for line in _claims(job, settings["trigger"])]


def _label(job: dict[str, Any]) -> str:
    return f"{job['queries']:,} {job['kind']}"


def _claims(job: dict[str, Any], trigger: float) -> list[str]:
    """What the figures of a job say: relative to one query alone and to separate queries, the lag in triggers."""
    made, label = [], _label(job)
    batch, alone, separate = job["batch_ms"], job["alone_batch_ms"], job.get("separate")
    if batch is not None and alone is not None:
        made.append(f"{label}: a batch of the job takes {batch / alone:.2f} times as long as one query alone.")
    if job["worst_lag_ms"] is not None:
        made.append(f"{label}: never more than {job['worst_lag_ms'] / 1000 / trigger:.1f} triggers behind.")
    if separate:
        bound = "at least " if separate["unfinished"] else ""
        made.append(
            f"{label}: as separate queries, a batch takes {bound}{separate['batch_ms']:,.0f} ms, with "
            f"{separate['cpu_seconds_per_s']:.2f} processor seconds per second, and the worst lag is "
            f"{cell(separate['worst_lag_ms'])} ms."
        )
    if "added" in job:
        restarted = "with" if job["added"]["restarted"] else "without"
        made.append(
            f"{label}: one more query took effect after {job['added']['batches']} batches, {job['added']['seconds']:g} s, "
            f"{restarted} a restart."
        )
    return made

"""Many queries over the same two streams: as one job, as separate queries at the same time, and each alone.

Each measurement has a process of its own, and so its own Java, so that none inherits the memory, the compiled code or the
leftovers of another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from math import ceil
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.many.running import Measured, add_one, measure, one_job, separate_queries
from bench.many.streams import register
from bench.many.workload import MIXED, JobQuery, alike, mixed
from bench.report import Figures
from bench.runs import in_own_process, scratch
from sash.cli.session import quiet_engine
from sash.engine import Engine
from sash.errors import SashError

WAYS = ("job", "separate", "alone")
_AFTER_WINDOW = 10
"""The seconds for which a query runs alone after its window has filled, before it is measured."""


@dataclass(frozen=True)
class Settings:
    """How long queries run, how often, and over how many events: seconds, and events per second and stream.

    At most `most_separate` queries run as separate ones at the same time, and the first `alone_queries` of a job run alone,
    for `alone_seconds` each.
    """

    seconds: float
    warmup: float
    trigger: float
    rate: int
    alone_seconds: float
    alone_queries: int
    most_separate: int


@dataclass(frozen=True)
class Group:
    """The queries of a job, and whether they are mixed or alike."""

    kind: str
    queries: tuple[JobQuery, ...]

    @property
    def label(self) -> str:
        return f"{len(self.queries):,} {self.kind}"


def measure_all(sizes: str, alike_count: int, ways: str, settings: Settings) -> Figures:
    """Measure every group in the ways that were chosen; figures of ways that were not, or for too many queries, are None."""
    groups, chosen = chosen_groups(sizes, alike_count, settings.rate), _chosen_ways(ways)
    console = Console(stderr=True)
    jobs: list[dict[str, Any]] = []
    for group in groups:
        figures: dict[str, Any] = {"queries": len(group.queries), "kind": group.kind}
        if "job" in chosen:
            with console.status(f"{group.label}: one job"):
                figures |= in_own_process(_as_job, group, settings)
        if "separate" in chosen and len(group.queries) <= settings.most_separate:
            with console.status(f"{group.label}: separate queries"):
                figures |= _separate_figures(group, settings)
        jobs.append(figures)
    times: dict[str, Measured] = {}
    if "alone" in chosen:
        with console.status("alone"):
            times = in_own_process(_alone, groups, settings)
    return {
        "settings": asdict(settings),
        "jobs": [
            with_all_fields(figures, _of_group(group, times)) for group, figures in zip(groups, jobs, strict=True)
        ],
    }


def chosen_groups(sizes: str, alike_count: int, rate: int) -> tuple[Group, ...]:
    """The groups of mixed queries of these sizes, comma-separated, and the one of alike queries unless it is empty."""
    counts = [int(size) for size in sizes.split(",") if size.strip()]
    for count in counts:
        if not 0 < count <= MIXED:
            raise SashError(f"there are {MIXED} mixed queries, so a job cannot have {count}; change --queries")
    same = (Group("alike", alike(alike_count, rate)),) if alike_count else ()
    return (*(Group("mixed", mixed(count)) for count in counts), *same)


def _chosen_ways(ways: str) -> tuple[str, ...]:
    chosen = tuple(way.strip().lower() for way in ways.split(","))
    for way in chosen:
        if way not in WAYS:
            raise SashError(f"unknown way {way!r}; use one of {', '.join(WAYS)}")
    return chosen


@contextmanager
def _engine(settings: Settings) -> Iterator[tuple[Engine, Path]]:
    """An engine with both streams, on a session of its own, and a folder for checkpoints and changelogs."""
    reports = max(100, ceil(2 * (settings.seconds + settings.alone_seconds) / settings.trigger))
    conf = {"spark.sql.streaming.numRecentProgressUpdates": str(reports)}
    with scratch() as home, quiet_engine(conf=conf) as engine:
        register(engine, settings.rate)
        yield engine, home


def _separate_figures(group: Group, settings: Settings) -> dict[str, Any]:
    """The figures of separate queries, or the error by which they fail: so many may not fit into memory."""
    try:
        return {"separate": in_own_process(_separately, group, settings).as_json()}
    except (SashError, BrokenProcessPool) as problem:
        return {"separate_error": str(problem)}


def _as_job(group: Group, settings: Settings) -> dict[str, Any]:
    with (
        _engine(settings) as (engine, home),
        one_job(engine, group.queries, settings.trigger, home) as (running, started),
    ):
        figures = measure(started, settings.warmup, settings.seconds).as_json()
        if group.kind == "alike":
            figures["added"] = add_one(running, home, settings.trigger)
    return figures


def _separately(group: Group, settings: Settings) -> Measured:
    with (
        _engine(settings) as (engine, home),
        separate_queries(engine, group.queries, settings.trigger, home) as started,
    ):
        return measure(started, settings.warmup, settings.seconds)


def _alone(groups: Sequence[Group], settings: Settings) -> dict[str, Measured]:
    """Run the first queries of each group one after the other, each once, after its window has filled.

    The first one runs for the whole warm-up, because Java compiles the code that all queries share.
    """
    found: dict[str, Measured] = {}
    wanted = {query.name: query for group in groups for query in group.queries[: settings.alone_queries]}
    with _engine(settings) as (engine, home):
        for name, query in wanted.items():
            filled = min(settings.warmup, max(query.windows) + _AFTER_WINDOW) if found else settings.warmup
            with separate_queries(engine, [query], settings.trigger, home) as started:
                found[name] = measure(started, filled, settings.alone_seconds)
    return found


def _of_group(group: Group, times: dict[str, Measured]) -> list[Measured]:
    return [times[query.name] for query in group.queries if query.name in times]


def with_all_fields(figures: dict[str, Any], alone: Sequence[Measured]) -> dict[str, Any]:
    """The figures of one job with every field, None where nothing was measured."""
    fields = ("batch_ms", "cpu_seconds_per_s", "lag_ms", "worst_lag_ms", "rows_out")
    separate = figures.get("separate")
    made = {
        "alone_batch_ms": round(median(each.batch_ms for each in alone), 1) if alone else None,
        "alone_cpu_seconds_per_s": round(median(each.cpu_seconds_per_s for each in alone), 3) if alone else None,
        "alone_queries": len(alone),
        "separate_batch_ms": separate["batch_ms"] if separate else None,
    }
    return {"queries": figures["queries"], "kind": figures["kind"], **dict.fromkeys(fields), **figures, **made}


def table(figures: Figures) -> Table:
    """The figures as a table."""
    shown = Table(title="Many queries: median batch, processor seconds per second, lag")
    for column in (
        "queries",
        "job, ms",
        "job, cpu",
        "lag, ms",
        "worst",
        "rows out",
        "alone, ms",
        "separate, ms",
        "cpu",
        "lag",
    ):
        shown.add_column(column, justify="left" if column == "queries" else "right")
    for job in figures["jobs"]:
        separate = job.get("separate") or {}
        cells = (
            *(job[name] for name in ("batch_ms", "cpu_seconds_per_s", "lag_ms", "worst_lag_ms", "rows_out")),
            *(job["alone_batch_ms"], job["separate_batch_ms"]),
            *(separate.get(name) for name in ("cpu_seconds_per_s", "lag_ms")),
        )
        shown.add_row(f"{job['queries']:,} {job['kind']}", *map(cell, cells))
    return shown


def cell(value: float | None) -> str:
    """A figure as text: whole numbers from ten on.

    >>> [cell(value) for value in (None, 1.2345, 1234.5)]
    ['', '1.23', '1,234']
    """
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 10 else f"{value:.2f}"

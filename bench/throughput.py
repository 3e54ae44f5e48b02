"""Throughput: events per second of paper 1's queries in steady state, beside Spark's limit on the same files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from bench.baseline import run_baseline
from bench.data import Sales, write_stream
from bench.memory import PeakMemory
from bench.processor import ProcessorTime
from bench.queries import QUERIES, WINDOW_SECONDS, WorkloadQuery
from bench.report import Figures
from bench.runs import Timing, run_limit, run_sash, scratch
from sash.cli.session import quiet_engine
from sash.errors import SashError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def measure(names: str, rows_per_batch: int, batches: int, warm_up: int, *, baseline: bool) -> Figures:
    """Run every query over its files, the limit first; batches count after the warm-up, with a full window.

    The first limit runs twice and counts once, because Java compiles the code that all queries share during the first run.
    """
    chosen = _chosen(names)
    console = Console(stderr=True)
    results = []
    with quiet_engine() as engine, scratch() as home:
        for query in chosen:
            per_stream = rows_per_batch // len(query.streams)
            skipped = max(warm_up, ceil(query.sales.rate * WINDOW_SECONDS / per_stream))
            with console.status(f"{query.name}: writing files"):
                streams = _files(home, query, per_stream, skipped + batches)
            if query is chosen[0]:
                with console.status("starting up"):
                    run_limit(engine.spark, query.limit, streams, _favourites(engine.spark, query))
            with console.status(f"{query.name}: measuring"):
                results.append(_measure(engine.spark, query, streams, per_stream, skipped, baseline=baseline))
    return {"queries": results}


def measure_strategies(
    name: str,
    strategies: Sequence[str],
    rows_per_batch: int,
    batches: int = 4,
    rate: float | None = None,
    turns: int = 5,
) -> dict[str, list[int]]:
    """Events per second of one query under each strategy, with a full window, in every turn, after a run that is not counted.

    In a turn each strategy runs once, and each is first in some turn, so that other work slows all of them alike. `rate` is
    another number of sales per second and stream than the query's own.
    """
    (query,) = _chosen(name)
    if rate is not None:
        query = replace(query, sales=replace(query.sales, rate=rate))
    per_stream = rows_per_batch // len(query.streams)
    skipped = ceil(query.sales.rate * WINDOW_SECONDS / per_stream)
    found: dict[str, list[int]] = {strategy: [] for strategy in strategies}
    with quiet_engine() as engine, scratch() as home:
        streams, relations = _files(home, query, per_stream, skipped + batches), _favourites(engine.spark, query)
        run_sash(engine.spark, query.sql, streams, relations, query.disable)
        for turn in range(turns):
            first = turn % len(strategies)
            for strategy in [*strategies[first:], *strategies[:first]]:
                timing = run_sash(engine.spark, query.sql, streams, relations, (), strategy)
                found[strategy].append(round(_events_per_second(timing, per_stream * len(streams), skipped)))
    return found


def _chosen(names: str) -> tuple[WorkloadQuery, ...]:
    if names == "all":
        return QUERIES
    known = {query.name: query for query in QUERIES}
    wanted = [name.strip().lower() for name in names.split(",")]
    for name in wanted:
        if name not in known:
            raise SashError(f"unknown query {name!r}; use one of {', '.join(known)}")
    return tuple(known[name] for name in wanted)


def _files(home: Path, query: WorkloadQuery, rows: int, count: int) -> dict[str, Path]:
    """Write the files of each stream; queries share those with equal sales and numbers of files."""
    directories = {}
    for number, name in enumerate(query.streams):
        directory = home / f"{name}-{_label(query.sales)}-{rows}x{count}"
        if not directory.exists():
            write_stream(directory, query.sales, [rows] * count, seed=number)
        directories[name] = directory
    return directories


def _label(sales: Sales) -> str:
    return f"{sales.rate:g}{'-whole' if sales.whole_prices else ''}"


def _measure(
    spark: SparkSession,
    query: WorkloadQuery,
    streams: dict[str, Path],
    per_stream: int,
    skipped: int,
    *,
    baseline: bool,
) -> dict[str, Any]:
    relations = _favourites(spark, query)
    rows = per_stream * len(streams)
    limit = run_limit(spark, query.limit, streams, relations)
    with PeakMemory() as memory, ProcessorTime() as processor:
        sash = run_sash(spark, query.sql, streams, relations, query.disable)
    speed, fastest = _events_per_second(sash, rows, skipped), _events_per_second(limit, rows, skipped)
    result = {
        "query": query.name,
        "events_per_s": round(speed),
        "limit_events_per_s": round(fastest),
        "ratio": round(speed / fastest, 3),
        "batch_rows": rows,
        "peak_rss_bytes": memory.peak,
        "processor_s_per_million": round(_processor_seconds(processor, sash, rows, skipped), 3),
    }
    if baseline:
        slow = run_baseline(spark, query, streams)
        reached = _events_per_second(slow, rows, skipped)
        result |= {"baseline_events_per_s": round(reached), "times_baseline": round(speed / reached, 1)}
    return result


def _favourites(spark: SparkSession, query: WorkloadQuery) -> dict[str, DataFrame]:
    """The relations that a query joins with, with the numbers of rows that give its selectivity."""
    made = {}
    for name, count, column in (
        ("favorite_items", query.items, "item_id"),
        ("favorite_stores", query.stores, "store_id"),
    ):
        if count:
            made[name] = spark.range(count).selectExpr(f"CAST(id AS INT) AS {column}")
    return made


def _events_per_second(timing: Timing, rows: int, skipped: int) -> float:
    steady = timing.steady(skipped)
    if not steady:
        raise SashError(f"only {len(timing.seconds)} batches ran, {skipped} of them to warm up: increase --batches")
    return rows * len(steady) / sum(steady)


def _processor_seconds(processor: ProcessorTime, timing: Timing, rows: int, skipped: int) -> float:
    """The processor seconds per million rows of the steady batches, over all processes."""
    return processor.seconds_since(timing.starts[skipped]) / (rows * len(timing.steady(skipped)) / 1e6)


def table(figures: Figures) -> Table:
    """The figures as a table."""
    shown = Table(title="Events per second, steady state")
    for column in (
        "query",
        "Sash",
        "limit",
        "ratio",
        "rows a batch",
        "processor s/million",
        "peak memory",
        "row by row",
    ):
        shown.add_column(column, justify="left" if column == "query" else "right")
    for result in figures["queries"]:
        slow = result.get("baseline_events_per_s")
        shown.add_row(
            result["query"],
            f"{result['events_per_s']:,}",
            f"{result['limit_events_per_s']:,}",
            f"{result['ratio']:.2f}",
            f"{result['batch_rows']:,}",
            f"{result['processor_s_per_million']:.2f}",
            f"{result['peak_rss_bytes'] / 2**30:.1f} GiB",
            "" if slow is None else f"{slow:,}",
        )
    return shown

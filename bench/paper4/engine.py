"""Throughput of the whole engine on Table 5's streams, from SQL to changes, in one process and on Spark."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from bench.paper4.experiments import BUCKETS, PAPER, form_and_tau
from bench.paper4.operator import plans
from bench.paper4.streams import TABLE_5
from bench.runs import scratch, timing
from sash.cli.catalog import declared_catalog
from sash.engine import Engine
from sash.physical.nodes import MultiJoin, Operation, Physical, PhysicalPlan
from sash.physical.passes.base import rebuild
from sash.plan.options import Options
from sash.planning import Planned, plan_query
from sash.runtime.local import LocalRun

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = "ts BIGINT, k BIGINT"
_NAMES = ("s1", "s2", "s3", "s4")
_FILLING = 2
"""Batches that are not measured, while the windows fill and code is loaded."""


def query() -> str:
    """The join of Table 5's streams; a tick is a microsecond."""
    windows = [f"{name} [RANGE {length} MICROSECONDS]" for name, length in zip(_NAMES, TABLE_5.lengths, strict=True)]
    equal = " AND ".join(f"{one}.k = {other}.k" for one, other in itertools.pairwise(_NAMES))
    return f"SELECT {', '.join(f'{name}.ts AS t{name[1:]}' for name in _NAMES)} FROM {', '.join(windows)} WHERE {equal}"


def planned(name: str, which: str, shards: int) -> Planned:
    """Plan the query in a form of Table 8, with the best or the worst join order."""
    form, tau = form_and_tau(name)
    order = plans(TABLE_5, tau)[0 if which == "best" else 1]
    options = Options(join=form, tau=None if tau is None else round(tau * TABLE_5.unit))
    made = plan_query(
        query(), declared_catalog([f"{stream}({SCHEMA})" for stream in _NAMES], []), shards=shards, options=options
    )
    return replace(made, physical=_pinned(made.physical, tuple(number - 1 for number in order)))


def _pinned(plan: PhysicalPlan, order: tuple[int, ...]) -> PhysicalPlan:
    def pin(_old: Operation, node: Operation) -> Physical:
        if isinstance(node, MultiJoin):
            return replace(node, plan=node.plan.pinned_to(order, (BUCKETS,) * len(order)))
        return node

    return replace(plan, stages=tuple(replace(stage, root=rebuild(stage.root, pin)) for stage in plan.stages))


def local_rates(rows: int, batches: int, repeats: int, report: Callable[[str], None]) -> list[dict[str, Any]]:
    """Measure rows per second in one process, with all changes of the answer, in runs over different rows."""
    results = []
    for name in PAPER:
        entry: dict[str, Any] = {"form": name}
        for which in ("best", "worst"):
            report(f"the engine in one process: {name}, {which} plan")
            _local_run(name, which, rows // 10, 1, 0)  # loads and compiles
            runs = [_local_run(name, which, rows, batches, seed) for seed in range(repeats)]
            entry[f"{which}_per_s"] = [rate for rate, _ in runs]
            entry["changes_per_row"] = runs[0][1]
        results.append(entry)
    return results


def _local_run(name: str, which: str, rows: int, batches: int, seed: int) -> tuple[float, float]:
    """Rows per second of processor time, and changes per row."""
    run = LocalRun(planned(name, which, 1).physical, {})
    taken, seconds, changes = 0, 0.0, 0
    for clock, given in TABLE_5.batches([TABLE_5.filling, *[rows] * batches], seed):
        begun = time.process_time()
        named = {
            stream: replace(part, columns=(pa.array(part.ts), *part.columns))
            for stream, part in zip(_NAMES, given, strict=True)
        }
        made = run.advance(named, dict.fromkeys(_NAMES, clock))
        if clock > TABLE_5.filling:
            seconds += time.process_time() - begun
            taken += rows
            changes += len(made)
    return round(taken / seconds), round(changes / taken, 1)


def spark_rates(spark: SparkSession, rows: int, batches: int, report: Callable[[str], None]) -> list[dict[str, Any]]:
    """Measure rows per second on Spark, with every change sent to the noop sink."""
    results = []
    with scratch() as directory:
        report("writing files for Spark")
        _write(directory, [max(rows, TABLE_5.filling), *[rows] * (_FILLING - 1 + batches)])
        for name in PAPER:
            entry: dict[str, Any] = {"form": name}
            for which in ("best", "worst"):
                report(f"the engine on Spark: {name}, {which} plan")
                entry[f"{which}_per_s"] = _on_spark(spark, directory, name, which, rows)
            results.append(entry)
    return results


def _on_spark(spark: SparkSession, directory: Path, name: str, which: str, rows: int) -> list[float]:
    """Rows per second of every measured batch."""
    engine = Engine(spark)
    for stream in _NAMES:
        source = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(directory / stream))
        engine.stream(stream, source)
    form, tau = form_and_tau(name)
    made = engine.sql(query(), join=form, tau=None if tau is None else f"{round(tau * TABLE_5.unit)} microseconds")
    running = replace(made, planned=planned(name, which, engine.shards)).start("noop", mode="changes")
    try:
        running.process_all()
        return [round(rows / seconds) for seconds in timing(running.query).steady(_FILLING)]
    finally:
        running.stop()


def _write(directory: Path, sizes: list[int]) -> None:
    """Write one file per batch and stream; Spark reads them in the order of their modification times."""
    for number, (_, given) in enumerate(TABLE_5.batches(sizes, seed=1)):
        for stream, part in zip(_NAMES, given, strict=True):
            path = directory / stream / f"{number:05d}.parquet"
            path.parent.mkdir(exist_ok=True)
            pq.write_table(pa.table({"ts": pa.array(part.ts), "k": part.columns[0]}), path)
            os.utime(path, (1_700_000_000 + number,) * 2)

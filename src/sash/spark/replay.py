"""Replay on Spark: the micro-batches are written as files that a streaming query reads one batch at a time.

Every stream has one file per micro-batch, possibly empty, and so has the control stream, which advances the clocks to the
end in a batch of its own. So all sources proceed in step, and the batches are the requested ones.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from sash.physical.nodes import PhysicalPlan, StreamLeg
from sash.plan.catalog import OP
from sash.plan.options import Trigger
from sash.plan.types import BIGINT, Field, storage
from sash.planning import Planned, PlannedJob
from sash.runtime.counts import Counts
from sash.spark.batch_metrics import PARTS, BatchMetrics, added, counts_of, operator_names, total
from sash.spark.dataflow import change_frame, job_frame
from sash.spark.errors import sash_errors
from sash.spark.output import OutputMode, read_metrics, read_output
from sash.spark.progress import Progress
from sash.spark.scatter import ENDED
from sash.spark.session import embedded_session, query_settings
from sash.spark.sinks.batch import Batch
from sash.spark.sinks.start import WriteFailure, compute_once, start_query
from sash.spark.sources.declared import FILES_OF_ANY_AGE, struct
from sash.spark.sources.inputs import QueryInputs, StreamSource
from sash.state.changes import ChangeBatch, concat
from sash.testing.inputs import MicroBatch, ReplayInput, numbered

_TIME, _OPS = "_clock", pa.array(["-", "+"])
_EPOCH = 1_000_000_000
_RECENT = "spark.sql.streaming.numRecentProgressUpdates"


class SparkReplay(NamedTuple):
    """What a query made: its changes in order, the late rows, the rows in state at the end, and the operators' counts.

    The last column of the changes is the number of the batch that released each. For a query of a job, late rows are those
    of the streams that it reads.
    """

    changes: ChangeBatch
    late: int
    state_rows: int
    counts: dict[str, Counts]


def replay_on_spark(
    planned: Planned,
    inputs: Mapping[str, ReplayInput],
    relations: Mapping[str, pa.Table],
    batches: Sequence[MicroBatch],
    end: int,
    shards: int,
) -> SparkReplay:
    """Run the query; returns what it made."""
    names = (*planned.streams, *planned.changing)
    files = _files_of(names, planned.changing, inputs, relations, batches, end)
    with files as (spark, given, checkpoint), query_settings(spark, shards, checkpoint):
        changes = change_frame(planned.physical, planned.schema, given, shards)
        return _run(changes, planned, checkpoint)


def replay_job_on_spark(
    job: PlannedJob,
    inputs: Mapping[str, ReplayInput],
    relations: Mapping[str, pa.Table],
    batches: Sequence[MicroBatch],
    end: int,
    shards: int,
) -> dict[str, SparkReplay]:
    """Run the queries of a job together; returns what each made."""
    names = (*job.streams, *job.changing)
    files = _files_of(names, job.changing, inputs, relations, batches, end)
    with files as (spark, given, checkpoint), query_settings(spark, shards, checkpoint):
        frame = job_frame(job.physical, given, shards, [OutputMode()] * len(job.physical.outputs))
        return _run_job(frame, job.physical, checkpoint)


@contextmanager
def _files_of(
    names: Sequence[str],
    changing: Sequence[str],
    inputs: Mapping[str, ReplayInput],
    relations: Mapping[str, pa.Table],
    batches: Sequence[MicroBatch],
    end: int,
) -> Iterator[tuple[SparkSession, QueryInputs, str]]:
    """Write the micro-batches as files; yields the session, the inputs that read the files, and a new checkpoint."""
    spark = embedded_session()
    home = Path(tempfile.mkdtemp(prefix="sash-replay-"))
    spark.conf.set(_RECENT, str(len(batches) + 100))
    try:
        streams = {
            name.lower(): _stream(spark, home / name, inputs[name], [micro.rows.get(name) for micro in batches])
            for name in names
        }
        (home / "control").mkdir()
        control = _files(spark, home / "control", f"stream string, ts long, {ENDED} boolean")
        for number, micro in enumerate(batches):
            clocks = [(name.lower(), micro.clocks[name]) for name in changing if name in micro.clocks]
            _write_control(home / "control", number, clocks)
        _write_control(home / "control", len(batches), [(name.lower(), end) for name in names], ended=True)
        tables = {name.lower(): spark.createDataFrame(table) for name, table in relations.items()}
        yield spark, QueryInputs(streams, tables, control, home=str(home)), str(home / "checkpoint")
    finally:
        spark.conf.unset(_RECENT)
        shutil.rmtree(home, ignore_errors=True)


def _run(changes: DataFrame, planned: Planned, checkpoint: str) -> SparkReplay:
    dtypes = [storage(field.dtype) for field in planned.schema]
    collected: dict[int, ChangeBatch] = {}

    def collect(batch: Batch, number: int) -> None:
        collected[number] = read_changes(batch.table, dtypes)

    query = start_query(changes, compute_once(collect, WriteFailure()), {}, Trigger("available_now"), checkpoint)
    progress = Progress(operator_names(planned.physical))
    try:
        with sash_errors():
            query.awaitTermination()
        progress.add(query.recentProgress)
    finally:
        query.stop()
    last, counts = progress.last(), {name: counts_of(seen) for name, seen in progress.operators().items()}
    ordered = [numbered(collected[number].sorted(), number) for number in sorted(collected)]
    changed = concat([ChangeBatch.empty([*dtypes, pa.int64()]), *ordered])
    return SparkReplay(changed, last["total_late"], last.get("state_rows", 0), counts)


def _run_job(frame: DataFrame, plan: PhysicalPlan, checkpoint: str) -> dict[str, SparkReplay]:
    collected: dict[int, tuple[dict[int, ChangeBatch], BatchMetrics]] = {}

    def collect(batch: DataFrame, number: int) -> None:
        table = batch.toArrow()
        collected[number] = read_output(table, plan), total(read_metrics(table))

    query = start_query(frame, collect, {}, Trigger("available_now"), checkpoint)
    try:
        with sash_errors():
            query.awaitTermination()
    finally:
        query.stop()
    batches = [
        ({output: numbered(changes, number) for output, changes in parts.items()}, metrics)
        for number, (parts, metrics) in sorted(collected.items())
    ]
    counted: dict[str, dict[str, int]] = {}
    late: Counter[str] = Counter()
    left: dict[str, int] = {}
    for _, metrics in batches:
        for name, seen in metrics.operators.items():
            counted[name] = added(counted.get(name, dict.fromkeys(PARTS, 0)), seen)
        late.update({stream: counts["late"] for stream, counts in metrics.streams.items() if "late" in counts})
        left |= {stage: figures["state_rows"] for stage, figures in metrics.stages.items()}
    made = {}
    for number, output in enumerate(plan.outputs):
        stages = plan.stages_of(output)
        names = {name for stage in stages for name in stage.operator_names}
        dtypes = [field.dtype for field in plan.stages[output.stage].root.schema]
        read = [plan.legs[given.leaf.leg] for s in stages for given in s.inputs if given.leaf.leg is not None]
        streams = {leg.stream for leg in read if isinstance(leg, StreamLeg)}
        made[output.query] = SparkReplay(
            concat(
                [ChangeBatch.empty([*dtypes, pa.int64()]), *(parts[number] for parts, _ in batches if number in parts)]
            ),
            sum(late[stream] for stream in streams),
            sum(left.get(str(stage.index), 0) for stage in stages),
            {name: counts_of(seen) for name, seen in counted.items() if name in names},
        )
    return made


def read_changes(table: pa.Table, dtypes: Sequence[pa.DataType]) -> ChangeBatch:
    """Convert a batch of the change stream, with `_ts` in microseconds, to changes."""
    op, ts, *columns = (column.combine_chunks() for column in table.columns)
    sign = np.where(op.to_numpy(zero_copy_only=False) == "+", 1, -1).astype(np.int8)
    moments = ts.cast(pa.int64()).to_numpy(zero_copy_only=False).copy()
    return ChangeBatch.explicit(
        moments, sign, [column.cast(dtype) for column, dtype in zip(columns, dtypes, strict=True)]
    )


def _stream(
    spark: SparkSession, directory: Path, given: ReplayInput, batches: Sequence[ChangeBatch | None]
) -> StreamSource:
    directory.mkdir(parents=True)
    names = [field.name for field in given.schema]
    for number, batch in enumerate(batches):
        rows = ChangeBatch.empty([storage(field.dtype) for field in given.schema]) if batch is None else batch
        columns = dict(zip([_TIME, *names], [pa.array(rows.ts), *rows.columns], strict=False))
        if given.signs is not None:
            columns[OP] = _OPS.take(pa.array((rows.sign > 0).astype("int8")))
        _write(pa.table(columns), directory, number)
    schema = struct((Field(_TIME, BIGINT), *(Field(f.name, storage(f.dtype)) for f in given.schema)))
    if given.signs is not None:
        schema = schema.add(OP, "string")
    partition = None if given.partition is None else f"`{names[given.partition]}`"
    return StreamSource(_files(spark, directory, schema), given.slack, time=_TIME, partition=partition)


def _write_control(directory: Path, number: int, clocks: Sequence[tuple[str, int]], *, ended: bool = False) -> None:
    """Write the clocks of streams in one batch to a file, and whether the streams end with it."""
    names, times = [name for name, _ in clocks], [time for _, time in clocks]
    given = {"stream": pa.array(names, pa.string()), "ts": pa.array(times, pa.int64())}
    _write(pa.table({**given, ENDED: pa.array([ended] * len(clocks), pa.bool_())}), directory, number)


def _files(spark: SparkSession, directory: Path, schema: Any) -> DataFrame:
    """The files of a directory, one per micro-batch, in the order of their numbers."""
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    return reader.options(**FILES_OF_ANY_AGE).parquet(str(directory))


def _write(table: pa.Table, directory: Path, number: int) -> None:
    """Write one file atomically. Spark reads files in the order of their modification times."""
    draft = directory / f".{number}.parquet"
    pq.write_table(table, draft)
    os.utime(draft, (_EPOCH + number, _EPOCH + number))
    draft.replace(directory / f"{number}.parquet")

"""Small jobs over files for tests of generations: run some batches, change the job, run more, fold what its sinks got."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from sash.change.diff import JobDiff
from sash.change.stored import Answer, JobPlan
from sash.plan.options import Options
from sash.planning import plan_query, plan_together
from sash.spark.dataflow import job_frame, job_sources, time_type
from sash.spark.generations import Change, Generations, JobShape, OnStep, last_batch
from sash.spark.job_manifest import NAME
from sash.spark.layout import layout_of
from sash.spark.messages import OUTPUT
from sash.spark.offsets import Sources
from sash.spark.outbox import Outbox
from sash.spark.output import OutputMode
from sash.spark.session import query_settings
from sash.spark.sinks.base import OutputSpec
from sash.spark.sinks.batch import Unpack
from sash.testing import replay
from tests.spark.files import Rows, write_batch

Answers = Counter[tuple[Any, ...]]


class SmallJob:
    """A job over streams `s` and `u`, whose files are in `folder`; the batches that its sinks got are in `got`."""

    def __init__(self, spark: SparkSession, folder: Path, job: Path) -> None:
        from sash.engine import Engine

        self.spark = spark
        self.job = job
        self.got: dict[str, dict[int, list[tuple[str, int, tuple[Any, ...]]]]] = {}
        self.engine = Engine(spark)
        reader = spark.readStream.schema("ts long, k string, v long").option("maxFileAge", "36500d")
        for name in ("s", "u"):
            (folder / name).mkdir(parents=True, exist_ok=True)
            files = reader.option("maxFilesPerTrigger", 1).parquet(str(folder / name))
            self.engine.stream(name, files)
        self.inputs = self.engine.sql("SELECT * FROM s").inputs

    def shape(self, queries: Mapping[str, str], shards: int, strategy: str = "auto") -> JobShape:
        options = Options(strategy).for_engine()  # type: ignore[arg-type]
        planned = {
            name: plan_query(sql, self.engine.catalog, shards=shards, options=options) for name, sql in queries.items()
        }
        physical = plan_together(planned, shards).physical
        layout = layout_of(physical, shards, share=True)
        answers = {
            name: Answer(one.sql, tuple(f"{field.name}:{field.dtype}" for field in one.schema), name)
            for name, one in planned.items()
        }
        time = time_type(physical, self.inputs)
        outputs = {name: OutputSpec(one.output, time, "changes", None, "job") for name, one in planned.items()}
        plan = JobPlan(physical, layout.channels, shards, answers)
        return JobShape(plan, layout, dict, Sources(job_sources(layout, self.inputs)), outputs)

    @property
    def generations(self) -> Generations:
        return Generations(self.spark, str(self.job))

    def run(self, shape: JobShape, *, fail_in_sink: bool = False, once: bool = False) -> None:
        """Run the job over the files that there are, one per batch; with `fail_in_sink`, the first batch stays uncommitted."""
        folder = self.generations.current
        if folder.read(NAME) is None:
            folder.write(NAME, json.dumps({"identity": "job"}))
        first = int(json.loads(folder.read(NAME) or "{}").get("first_batch", 0))

        def write(batch: DataFrame, number: int) -> None:
            messages = batch.where(f"channel = {OUTPUT}").select("output", "blob").toArrow()
            if fail_in_sink:
                raise RuntimeError("the sink failed")
            for position, output in enumerate(shape.layout.plan.outputs):
                spec = shape.outputs[output.query]
                outbox = Outbox(folder.inside("outbox"), output.query, spec, 1 << 30)
                outbox.deliver(lambda table, at, name=output.query: self._get(name, at, table))  # type: ignore[misc]
                blobs = [b for o, b in zip(*messages.columns, strict=True) if o.as_py() == position]
                table = Unpack(spec.schema, spec.time).table([blob.as_buffer() for blob in blobs])
                self._get(output.query, first + number, table)
            self.generations.clean()

        modes = [OutputMode() for _ in shape.layout.plan.outputs]
        with query_settings(self.spark, shape.plan.shards, folder.location):
            frame = job_frame(shape.layout.plan, self.inputs, shape.plan.shards, modes)
            writer = frame.writeStream.foreachBatch(write).option("checkpointLocation", folder.location)
            query = (writer.trigger(once=True) if once else writer.trigger(availableNow=True)).start()
        try:
            query.awaitTermination()
        except Exception:
            if not fail_in_sink:
                raise

    def change(self, old: JobShape, new: JobShape, on_step: OnStep = lambda _: None) -> JobDiff:
        if last_batch(self.generations.current)[1]:
            self.run(old, once=True)
        return Change(self.spark, self.generations, old, new, {}, 1 << 30, on_step).apply()

    def _get(self, query: str, number: int, table: Any) -> None:
        rows = [(row.pop("_op"), row.pop("_ts"), tuple(row.values())) for row in table.to_pylist()]
        batches = self.got.setdefault(query, {})
        if number in batches:
            assert Counter(batches[number]) == Counter(rows), "a repeated batch is the same"
        assert not batches or number >= max(batches), "numbers go on"
        batches[number] = rows

    def changes(self, query: str) -> Counter[tuple[Any, ...]]:
        return Counter(change for batch in self.got.get(query, {}).values() for change in batch)

    def at(self, query: str, instant: int) -> Answers:
        """The answer that the sink has at an instant: no `-` without its row."""
        answer: Answers = Counter()
        for batch in sorted(self.got.get(query, {})):
            for op, ts, row in sorted(self.got[query][batch], key=lambda change: (change[1], change[0] == "+")):
                if ts <= instant:
                    answer[row] += 1 if op == "+" else -1
        assert all(count >= 0 for count in answer.values()), f"{query} at {instant}: {answer}"
        return +answer


def expected(
    sql: str, streams: Mapping[str, Rows], instants: Sequence[int], until: int, updates: Rows = ()
) -> dict[int, Answers]:
    """The answers of a query that ran from the start; the updates are those of the relations `t` and, not retroactive, `n`."""
    used = {name: rows for name, rows in streams.items() if f" {name} " in sql}
    relations, nrrs = ({name: updates} if f"JOIN {name} AS" in sql else {} for name in "tn")
    keys = dict.fromkeys((*relations, *nrrs), "k")
    result = replay(sql, used, relations, unit="us", until=until, nrrs=nrrs, keys=keys)
    return {instant: Counter(tuple(row.values()) for row in result.at(instant)) for instant in instants}


def put(folder: Path, streams: Mapping[str, list[Rows]], numbers: range) -> None:
    """Write the files of these batches."""
    for name, batches in streams.items():
        for number in numbers:
            write_batch(folder / name, number, batches[number])

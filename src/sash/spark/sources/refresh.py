"""Tables that are refreshed while a query runs: differences, by key, become updates in files beside the checkpoint.

Each reading is compared with the contents that the files add up to, so a restarted query resumes correctly. The query
reads the files as a stream. The time of an update is the number of its reading, so that it takes effect when it arrives;
in a query without streams, where no other input has a clock, it is the time of the reading.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from sash.errors import BadRowError, SourceError
from sash.plan.catalog import OP
from sash.plan.types import BIGINT, STRING, TIMESTAMP, Field, Schema
from sash.rows import refuse_duplicates
from sash.spark.sinks.retry import Retries, RetryPolicy
from sash.spark.sources.declared import FILES_OF_ANY_AGE, struct
from sash.spark.sources.reading import ReadTable
from sash.state.hashing import hash_rows
from sash.state.interner import Interner
from sash.state.memory import HeapMemory, Ints
from sash.time import SECOND

_LOG = logging.getLogger("sash")
READING, READ_AT = "_reading", "_read_at"
_ADDED = (Field(READING, BIGINT), Field(READ_AT, TIMESTAMP), Field(OP, STRING))


@dataclass(frozen=True)
class RefreshedTable:
    """A registered table that is read by calling `read` every `period` microseconds; `key` are its key columns."""

    name: str
    read: ReadTable
    schema: Schema
    key: tuple[int, ...]
    period: int


class TableRefresh:
    """Refreshes one table for one query, with its updates in the given folder."""

    def __init__(self, spark: SparkSession, table: RefreshedTable, folder: str) -> None:
        self._spark = spark
        self._table = table
        self._folder = folder
        self._names = [field.name for field in table.schema]
        self._spark_schema = struct((*table.schema, *_ADDED))
        self._contents, self._reading = self._load()
        self._seen: object = None
        self._lock = threading.Lock()
        self._stopped = threading.Event()

    def refresh(self) -> int:
        """Read the table now; returns the number of updates."""
        with self._lock:
            reading = self._table.read(self._seen)
            found = self._typed(reading.rows)
            refuse_duplicates(self._table.name, found, self._table.key)
            new = found.take(_missing(found, self._contents, range(len(self._names))))
            if reading.gone is None:
                kept, gone = found, self._contents.take(_missing(self._contents, found, self._table.key))
            else:
                kept, gone = self._changed(found, self._typed(reading.gone))
            if len(new) or len(gone) or self._reading == 0:
                self._write(pa.concat_tables([new, gone]), len(new))
                self._contents = kept
                self._reading += 1
            self._seen = reading.seen
            return len(new) + len(gone)

    def _typed(self, rows: pa.Table) -> pa.Table:
        columns = [rows.column(name).cast(f.dtype) for name, f in zip(self._names, self._table.schema, strict=True)]
        return pa.table(columns, names=self._names).combine_chunks()

    def _changed(self, rows: pa.Table, deleted: pa.Table) -> tuple[pa.Table, pa.Table]:
        """The contents after rows of some keys have changed and those of others were deleted; and the rows that are gone."""
        key = self._table.key
        deleted = deleted.take(_missing(deleted, rows, key))
        others = self._contents.take(_missing(self._contents, rows, key))
        left = _missing(others, deleted, key)
        gone = np.delete(np.arange(len(others)), left)
        return pa.concat_tables([others.take(left), rows]).combine_chunks(), others.take(gone)

    def read_at_start(self) -> None:
        """Read the table before the query starts. If that fails for now, go on with the contents of an earlier run, if any."""
        policy = RetryPolicy().at_start if self._reading == 0 else RetryPolicy(0)
        try:
            Retries(self._table.name, policy, kind="relation").run(self.refresh, "the first reading")
        except SourceError as problem:
            if self._reading == 0 or not problem.transient:
                raise
            self._warn(problem)

    def updates(self) -> DataFrame:
        """The updates as a stream."""
        return self._spark.readStream.schema(self._spark_schema).options(**FILES_OF_ANY_AGE).parquet(self._folder)

    def start(self) -> None:
        """Refresh periodically, in a thread of its own, until `stop`."""
        threading.Thread(target=self._run, name=f"sash-refresh-{self._table.name}", daemon=True).start()

    def stop(self) -> None:
        """Stop refreshing."""
        self._stopped.set()

    def _run(self) -> None:
        period, failed = self._table.period / SECOND, 0
        while not self._stopped.wait(min(period, 2.0**failed) if failed else period):
            try:
                self.refresh()
            except (PySparkException, BadRowError, SourceError) as problem:
                failed += 1
                if not self._stopped.is_set():
                    self._warn(problem)
            else:
                if failed:
                    _LOG.warning("relation %s was read again, after %d failed tries", self._table.name, failed)
                failed = 0

    def _warn(self, problem: Exception) -> None:
        _LOG.warning("relation %s could not be refreshed and keeps its contents: %s", self._table.name, problem)

    def _write(self, rows: pa.Table, new: int) -> None:
        count = rows.num_rows
        reading = pa.array(np.full(count, self._reading, np.int64))
        at = pa.array(np.full(count, time.time_ns() // 1_000, np.int64)).cast(TIMESTAMP)
        op = pa.array(["+"] * new + ["-"] * (count - new), pa.string())
        for name, column in ((READING, reading), (READ_AT, at), (OP, op)):
            rows = rows.append_column(name, column)
        frame = self._spark.createDataFrame(rows, self._spark_schema)
        frame.coalesce(1).write.mode("append").parquet(self._folder)

    def _load(self) -> tuple[pa.Table, int]:
        """The contents that the updates of earlier runs add up to, and the number of the next reading."""
        schema = pa.schema([(field.name, field.dtype) for field in self._table.schema])
        try:
            updates = self._spark.read.schema(self._spark_schema).parquet(self._folder)
        except PySparkException:
            return schema.empty_table(), 0
        last = updates.agg(sf.max(READING)).head()
        key = [self._names[column] for column in self._table.key]
        latest = updates.groupBy(*key).agg(sf.max_by(sf.struct("*"), sf.col(READING)).alias("row"))
        kept = latest.select("row.*").where(f"{OP} = '+'").select(*self._names).toArrow()
        return kept.cast(schema).combine_chunks(), 0 if last is None or last[0] is None else last[0] + 1


def _missing(rows: pa.Table, known: pa.Table, columns: Sequence[int]) -> Ints:
    """The positions of the rows whose values in these columns do not occur in `known`."""
    index = Interner(HeapMemory())
    index.intern(*_hashes(known, columns))
    return np.flatnonzero(index.find(*_hashes(rows, columns)) < 0)


def _hashes(rows: pa.Table, columns: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    parts = [rows.column(column) for column in columns]
    return hash_rows([pa.concat_arrays(p.chunks) if p.num_chunks else pa.array([], p.type) for p in parts], len(rows))

"""Tables that are read again while a query runs: what differs, by key, becomes updates in files beside the checkpoint.

A reading is compared with what the files say so far, so a query that is started again goes on where it was. The query
reads the files as a stream. An update has no time but the number of its reading: it counts from when it comes, except in
a query without streams, where nothing else tells the time and the time of reading does.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import StructField, StructType

from sash.errors import BadRowError
from sash.plan.catalog import OP
from sash.plan.types import BIGINT, STRING, TIMESTAMP, Field, Schema
from sash.rows import refuse_duplicates
from sash.state.hashing import hash_rows
from sash.state.interner import Interner
from sash.state.memory import HeapMemory, Ints

READING, READ_AT = "_reading", "_read_at"
_ADDED = (Field(READING, BIGINT), Field(READ_AT, TIMESTAMP), Field(OP, STRING))


@dataclass(frozen=True)
class Table:
    """What is read again: the function that gives it, its columns and key, and how often, in microseconds."""

    name: str
    read: Callable[[], DataFrame]
    schema: Schema
    key: tuple[int, ...]
    refresh: int


def refuse_duplicate_keys(name: str, frame: DataFrame, key: Sequence[str]) -> None:
    """Raise BadRowError if two rows of a relation that never changes have the same key; NULLs are equal."""
    twice = frame.groupBy(*key).agg(sf.count(sf.lit(1)).alias("_rows")).where("_rows > 1").head(1)
    if twice:
        found = {column: twice[0][column] for column in key}
        raise BadRowError(
            f"relation {name} has {twice[0]['_rows']} rows of key {found}: make them one, or name another key"
        )


class Reread:
    """One table of one query, with its files in the directory `place`."""

    def __init__(self, spark: SparkSession, table: Table, place: str) -> None:
        self._spark = spark
        self._table = table
        self._place = place
        self._names = [field.name for field in table.schema]
        self._spark_schema = StructType(
            [StructField(f.name, from_arrow_type(f.dtype)) for f in (*table.schema, *_ADDED)]
        )
        self._said, self._reading = self._so_far()
        self._lock = threading.Lock()
        self._over = threading.Event()

    def refresh(self) -> int:
        """Read the table now; how many updates that gave."""
        with self._lock:
            found = self._table.read().select(*self._names).toArrow()
            now = pa.table(
                [found.column(name).cast(f.dtype) for name, f in zip(self._names, self._table.schema, strict=True)],
                names=self._names,
            ).combine_chunks()
            refuse_duplicates(self._table.name, now, self._table.key)
            everything = range(len(self._names))
            new = _others(now, self._said, everything)
            gone = _others(self._said, now, self._table.key)
            if len(new) or len(gone) or self._reading == 0:
                self._write(pa.concat_tables([now.take(new), self._said.take(gone)]), len(new))
                self._said = now
                self._reading += 1
            return len(new) + len(gone)

    def updates(self) -> DataFrame:
        """The files as a stream."""
        reader = self._spark.readStream.schema(self._spark_schema).option("maxFileAge", "36500d")
        return reader.parquet(self._place)

    def start(self) -> None:
        """Read again and again from now on, in a thread of its own, until `stop`."""
        threading.Thread(target=self._run, name=f"sash-reread-{self._table.name}", daemon=True).start()

    def stop(self) -> None:
        """Read no more."""
        self._over.set()

    def _run(self) -> None:
        while not self._over.wait(self._table.refresh / 1_000_000):
            try:
                self.refresh()
            except (PySparkException, BadRowError) as problem:
                if not self._over.is_set():
                    logging.getLogger("sash").warning(
                        "relation %s could not be read again and stays as it was: %s", self._table.name, problem
                    )

    def _write(self, rows: pa.Table, new: int) -> None:
        count = rows.num_rows
        made = pa.array(np.full(count, self._reading, np.int64))
        at = pa.array(np.full(count, time.time_ns() // 1_000, np.int64)).cast(TIMESTAMP)
        op = pa.array(["+"] * new + ["-"] * (count - new), pa.string())
        for name, column in ((READING, made), (READ_AT, at), (OP, op)):
            rows = rows.append_column(name, column)
        frame = self._spark.createDataFrame(rows, self._spark_schema)
        frame.coalesce(1).write.mode("append").parquet(self._place)

    def _so_far(self) -> tuple[pa.Table, int]:
        """What the files of earlier runs come to, and the number of the next reading."""
        schema = pa.schema([(field.name, field.dtype) for field in self._table.schema])
        try:
            said = self._spark.read.schema(self._spark_schema).parquet(self._place)
        except PySparkException:
            return schema.empty_table(), 0
        last = said.agg(sf.max(READING)).head()
        key = [self._names[column] for column in self._table.key]
        latest = said.groupBy(*key).agg(sf.max_by(sf.struct("*"), sf.col(READING)).alias("row"))
        kept = latest.select("row.*").where(f"{OP} = '+'").select(*self._names).toArrow()
        return kept.cast(schema).combine_chunks(), 0 if last is None or last[0] is None else last[0] + 1


def _others(rows: pa.Table, known: pa.Table, columns: Sequence[int]) -> Ints:
    """The rows whose values in these columns no row of `known` has."""
    index = Interner(HeapMemory())
    index.intern(*_hashes(known, columns))
    return np.flatnonzero(index.find(*_hashes(rows, columns)) < 0)


def _hashes(rows: pa.Table, columns: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    parts = [rows.column(column) for column in columns]
    return hash_rows([pa.concat_arrays(p.chunks) if p.num_chunks else pa.array([], p.type) for p in parts], len(rows))

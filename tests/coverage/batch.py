"""Spark in batch as the oracle: the answer at T is that over views of the rows valid at T."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import SparkSession

from sash.rows import parse_schema
from sash.testing.tables import read_rows, typed
from sash.testing.times import TimeUnit
from tests.coverage.pinned import Pinned, Query, view
from tests.coverage.streams import INSTANTS, LENGTH, SCHEMAS, STREAMS, valid
from tests.coverage.values import Row, rows_of, types_of


@dataclass
class SparkBatch:
    """A session per instant, with views of the streams, each made when a query first needs it."""

    spark: SparkSession
    _sessions: dict[int, SparkSession] = field(default_factory=dict)
    _made: set[tuple[str, int, int]] = field(default_factory=set)

    def answer(self, query: Query, instants: Sequence[int] = INSTANTS) -> Pinned:
        """Spark's answers to a query; Spark's error if it refuses the query."""
        types: tuple[str, ...] = ()
        rows: dict[int, list[Row]] = {}
        for instant in instants:
            for stream, length in {*((name, LENGTH) for name in STREAMS), *query.windows}:
                self._make(stream, length, instant)
            table = self._sessions[instant].sql(query.batch).toArrow()
            types, rows[instant] = tuple(types_of(table)), rows_of(table)
        return Pinned(types, rows)

    def _make(self, stream: str, length: int, instant: int) -> None:
        if (stream, length, instant) in self._made:
            return
        session = self._sessions.setdefault(instant, self.spark.newSession())
        schema = parse_schema(SCHEMAS[stream])
        found = typed(read_rows("stream", stream, valid(stream, length, instant)), schema, TimeUnit("s"))
        table = pa.table(dict(zip((column.name for column in schema), found.columns, strict=True)))
        session.createDataFrame(table).createOrReplaceTempView(view(stream, length))
        self._made.add((stream, length, instant))

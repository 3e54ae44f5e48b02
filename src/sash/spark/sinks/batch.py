"""A batch of changes on its way to a sink: an Arrow table, or a DataFrame where it is large or a sink of Spark's takes it.

Small batches are written on the driver from Arrow. A Spark job per sink and batch would take 60 to 130 ms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sash.history.answers import net_effect
from sash.plan.sql_types import exported
from sash.plan.types import STRING, Field, Schema, holds, is_sql_type, storage
from sash.spark.sql_types import frame_of, spark_struct, to_arrow
from sash.state.changes import ChangeBatch, concat
from sash.state.encoding import decode
from sash.state.memory import Ints
from sash.variant_columns import encode_variants, exported_column, holds_variants

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from sash.plan.options import Mode

ADDED = ("_op", "_ts")
"""The columns of a change besides those of the row."""

SMALL_ROWS = 20_000
"""The largest number of rows of a batch that is collected to the driver although Spark has computed it."""

_OPS = pa.array(["-", "+"])


class Batch:
    """The changes of a batch: `_op`, `_ts` and the query's columns, as `table` or as `frame`; each is made when first used.

    Made from either by `of_table` and `of_frame`. `rows` is the number of changes.
    """

    def __init__(
        self,
        rows: int,
        small: bool,
        table: Callable[[], pa.Table],
        frame: Callable[[], DataFrame],
        spark: SparkSession,
        net_effect: MakeNetEffect | None = None,
    ) -> None:
        self.rows = rows
        self.small = small
        self.spark = spark
        self.clock: int | None = None
        """The clock of the query, if it is known: changes of earlier instants are in this batch, or in earlier ones."""
        self._make_table = table
        self._make_frame = frame
        self._make_net_effect = net_effect

    @staticmethod
    def of_frame(frame: DataFrame, rows: int) -> Batch:
        """A batch that Spark has computed and persisted."""
        return Batch(rows, rows <= SMALL_ROWS, lambda: to_arrow(frame), lambda: frame, frame.sparkSession)

    @staticmethod
    def of_table(table: pa.Table, schema: Schema, time: pa.DataType, spark: SparkSession) -> Batch:
        """A batch that is on the driver, of an output with these columns and this type of `_ts`."""
        typed = typed_schema(schema, time)

        def frame() -> DataFrame:
            return frame_of(spark, encoded_table(exported_table(table, typed), typed), spark_struct(typed))

        return Batch(table.num_rows, True, lambda: readable_table(exported_table(table, typed), typed), frame, spark)

    def net_effect(self, mode: Mode, key: tuple[int, ...] | None, most: int) -> pa.Table | None:
        """The changes without those that cancel out, or the last of each key; None if a shard has more of them than `most`."""
        if self._make_net_effect is not None and "table" not in self.__dict__:
            return self._make_net_effect(mode, key, most)
        return net_effect(self.table, mode, key)

    @cached_property
    def table(self) -> pa.Table:
        """The changes as an Arrow table on the driver."""
        return self._make_table()

    @cached_property
    def frame(self) -> DataFrame:
        """The changes as a DataFrame that is already computed."""
        return self._make_frame()


MakeNetEffect = Callable[["Mode", tuple[int, ...] | None, int], "pa.Table | None"]

WriteBatch = Callable[[Batch, int], None]
"""Writes a batch of changes, given its number."""

WriteFrame = Callable[["DataFrame", int], None]
"""A function of the user's that writes a batch of changes, given its number."""


def typed_schema(schema: Schema, time: pa.DataType) -> Schema:
    """The columns of a batch: the operation, the time, and those of the row."""
    return (Field("_op", STRING), Field("_ts", time), *schema)


def typed_table(changes: ChangeBatch, schema: Schema, time: pa.DataType) -> pa.Table:
    """Changes as the table that a sink gets."""
    op = _OPS.take(pa.array((changes.sign > 0).astype(np.int8)))
    columns = [
        column.cast(exported(f.dtype)) if column.type != exported(f.dtype) else column
        for column, f in zip(changes.columns, schema, strict=True)
    ]
    return pa.table([op, pa.array(changes.ts).cast(time), *columns], names=[f.name for f in typed_schema(schema, time)])


def exported_table(table: pa.Table, schema: Schema) -> pa.Table:
    """The table with stored intervals as they are outside of plans."""
    if not any(holds(f.dtype, is_sql_type) for f in schema):
        return table
    return table.cast(pa.schema([(f.name, exported(f.dtype)) for f in schema]))


def encoded_table(table: pa.Table, schema: Schema) -> pa.Table:
    """The table with stored variants as Spark encodes them."""
    return _converted(table, schema, encode_variants)


def readable_table(table: pa.Table, schema: Schema) -> pa.Table:
    """The table with stored variants as texts of JSON."""
    return _converted(table, schema, exported_column)


def _converted(table: pa.Table, schema: Schema, convert: Callable[[pa.Array, pa.DataType], pa.Array]) -> pa.Table:
    for place, column in enumerate(schema):
        if holds_variants(column.dtype):
            made = convert(table.column(place).combine_chunks(), column.dtype)
            table = table.set_column(place, column.name, made)
    return table


def split_answers(table: pa.Table) -> dict[int, pa.Table]:
    """The changes of alike queries by the number of the query, their first column, which is then left out."""
    if not table.num_rows:
        return {}
    table = table.combine_chunks()
    order, runs = _runs(table.column(len(ADDED)).to_numpy())
    ordered = table.remove_column(len(ADDED)).take(pa.array(order))
    return {number: ordered.slice(start, end - start) for number, start, end in runs}


def by_number(changes: ChangeBatch) -> list[tuple[int, ChangeBatch]]:
    """The changes of alike queries by the number of the query, their first column, which is then left out."""
    order, runs = _runs(changes.columns[0].to_numpy(zero_copy_only=False))
    ordered = changes.with_columns(changes.columns[1:]).take(order)
    return [(number, ordered.slice(start, end)) for number, start, end in runs]


def _runs(numbers: Ints) -> tuple[Ints, list[tuple[int, int, int]]]:
    """The order that puts equal numbers together, and every number with its first position in it and the one after its last."""
    order = np.argsort(numbers, kind="stable")
    numbers = numbers[order]
    starts = np.flatnonzero(np.concatenate(([True], numbers[1:] != numbers[:-1]))) if len(numbers) else order
    ends = [*starts[1:], len(numbers)] if len(numbers) else []
    return order, [(int(numbers[start]), int(start), int(end)) for start, end in zip(starts, ends, strict=True)]


@dataclass(frozen=True)
class Unpack:
    """Turns encoded changes into typed rows in Spark's workers: the function of `mapInArrow` over the column `blob`."""

    schema: Schema
    time: pa.DataType

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for blob in batch.column("blob"):
                table = self.table([blob.as_buffer()])
                yield from encoded_table(table, typed_schema(self.schema, self.time)).to_batches()

    def table(self, blobs: Iterable[pa.Buffer | bytes]) -> pa.Table:
        """Encoded changes as one table, in the order in which they took effect."""
        parts = [decode(blob) for blob in blobs]
        empty = ChangeBatch.empty([storage(field.dtype) for field in self.schema])
        return typed_table(concat([empty, *parts]).sorted(), self.schema, self.time)


_TOO_MANY = "!"


@dataclass(frozen=True)
class NetEffect:
    """As `Unpack`, with only the changes of all that a task gets that do not cancel out, or with the last one of each key.

    If there are more than `most`, there is one row that says so.
    """

    unpack: Unpack
    mode: Mode
    key: tuple[int, ...] | None
    most: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        table = self.unpack.table([blob.as_buffer() for batch in batches for blob in batch.column("blob")])
        left = net_effect(table, self.mode, self.key)
        if left.num_rows > self.most:
            columns = [pa.array([_TOO_MANY]), *(pa.nulls(1, field.type) for field in list(left.schema)[1:])]
            left = pa.table(columns, schema=left.schema)
        yield from left.to_batches()


def whole_effect(table: pa.Table) -> pa.Table | None:
    """What `NetEffect` returned in all tasks; None if a task had too much."""
    if pc.any(pc.equal(table.column(0), _TOO_MANY)).as_py():
        return None
    return table

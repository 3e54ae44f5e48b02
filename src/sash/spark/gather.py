"""Gather: the changes of the last stage as ordinary typed rows, `_op`, `_ts` and the query's columns.

The last processor hands its changes to Spark as Arrow columns, part by part, so that Spark processes the first while more
are computed. Batch metrics go in rows of their own, with sign 0, encoded as integers in the time column; Spark observes
and drops them. The cost per change here limits a query whose answer changes with every row. So sign and time are never
NULL, and metrics have no column of their own, which Spark would read in every row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import StructField, StructType

from sash.plan.sql_types import Variant
from sash.plan.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    NULL,
    TIMESTAMP,
    TINYINT,
    Schema,
    holds,
    is_nested,
    is_sql_type,
    storage,
)
from sash.spark.batch_metrics import METRICS_COLUMN, from_words, to_words
from sash.spark.legs import micros
from sash.spark.sql_types import restored_column, spark_type
from sash.sql.render import quoted
from sash.state.changes import ChangeBatch
from sash.state.hashing import byte_buffers
from sash.state.nested import decode_values, encode_values
from sash.variant_columns import encode_variants, holds_variants

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame

OBSERVATION_NAME = "sash"
"""The name of the observation in Spark's progress reports."""

_SIGN, _TIME = "sign", "ts"


@dataclass(frozen=True)
class Gather:
    """The output of a query: its columns, and the type of `_ts`."""

    schema: Schema
    time: pa.DataType

    @property
    def struct(self) -> StructType:
        """The columns that leave the last processor."""
        return StructType(
            [
                StructField(name, from_arrow_type(dtype), nullable=name not in (_SIGN, _TIME))
                for name, dtype in self._columns.items()
            ]
        )

    @property
    def _columns(self) -> dict[str, pa.DataType]:
        columns = {f"c{index}": _carried(field.dtype) for index, field in enumerate(self.schema)}
        return {_SIGN: TINYINT, _TIME: _carried(self.time), **columns}

    def rows(self, changes: ChangeBatch) -> pd.DataFrame:
        """Changes as a frame of the last processor."""
        time = pa.array(changes.ts).view(_carried(self.time))
        arrays = [pa.array(changes.sign), time]
        for column in changes.columns:
            carried = _carried(column.type)
            arrays.append(column if column.type == carried else _relabelled(column, carried))
        return self._frame(arrays)

    def metrics(self, metrics: Sequence[str]) -> pd.DataFrame:
        """Batch metrics as a frame of the last processor."""
        _, time, *others = self._columns.values()
        words = pa.array(to_words(metrics)).view(time)
        return self._frame([pa.array(np.zeros(len(words), np.int8)), words, *(pa.nulls(len(words), o) for o in others)])

    def _frame(self, arrays: Sequence[pa.Array]) -> pd.DataFrame:
        import pandas as pd

        columns = [pd.Series(pd.arrays.ArrowExtensionArray(array), copy=False) for array in arrays]
        return pd.DataFrame(dict(zip(self._columns, columns, strict=True)), copy=False)

    def typed(self, packed: DataFrame) -> DataFrame:
        """Name and type the changes, and observe the batch metrics."""
        named = [
            f"{_original(f'c{index}', field.dtype)} AS {quoted(field.name)}" for index, field in enumerate(self.schema)
        ]
        word = f"CASE WHEN {_SIGN} = 0 THEN {micros(_TIME, _carried(self.time))} END"
        observed = packed.observe(OBSERVATION_NAME, sf.expr(from_words(word)).alias(METRICS_COLUMN))
        changes = observed.where(f"{_SIGN} <> 0")
        packed_types = {
            f"c{n}": field.dtype
            for n, field in enumerate(self.schema)
            if is_nested(field.dtype) or holds_variants(field.dtype)
        }
        if packed_types:
            sent = [
                StructField(f.name, spark_type(storage(packed_types[f.name], (Variant,))))
                if f.name in packed_types
                else f
                for f in self.struct.fields
            ]
            changes = changes.mapInArrow(_Unpack(tuple(packed_types.items())), StructType(sent))
        operation = f"CASE WHEN {_SIGN} > 0 THEN '+' ELSE '-' END AS _op"
        return changes.selectExpr(operation, f"{_original(_TIME, self.time)} AS _ts", *named)


@dataclass(frozen=True)
class _Unpack:
    """Reads the arrays, structs and maps of changes, which pandas would turn into objects, from their bytes.

    Variants get the form that Spark reads.
    """

    dtypes: tuple[tuple[str, pa.DataType], ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        packed = dict(self.dtypes)
        for batch in batches:
            columns = []
            for name, column in zip(batch.schema.names, batch.columns, strict=True):
                columns.append(_unpacked(column, packed[name]) if name in packed else column)
            yield pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _unpacked(column: pa.Array, dtype: pa.DataType) -> pa.Array:
    if is_nested(dtype):
        offsets, data = byte_buffers(column.cast(pa.binary()))
        column = decode_values(storage(dtype), offsets[:-1], data)[0]
    return encode_variants(column, dtype)


def _carried(dtype: pa.DataType) -> pa.DataType:
    """The type in which a column is sent. Types that pandas would convert are sent as integers, or as bytes."""
    if is_nested(dtype):
        return BINARY
    return {TIMESTAMP: BIGINT, NULL: BOOLEAN}.get(dtype, storage(dtype))


def _original(column: str, dtype: pa.DataType) -> str:
    """Convert a sent column back to its own type, in Spark SQL."""
    if dtype == NULL:
        return "NULL"
    if holds(dtype, is_sql_type):
        return restored_column(column, dtype)
    return f"timestamp_micros({column})" if dtype == TIMESTAMP else column


def _relabelled(column: pa.Array, carried: pa.DataType) -> pa.Array:
    if is_nested(column.type):
        offsets, data = encode_values(column)
        buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data)]
        return pa.Array.from_buffers(carried, len(column), buffers, 0)
    return pa.nulls(len(column), carried) if pa.types.is_null(column.type) else column.view(carried)

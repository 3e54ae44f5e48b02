"""Partial aggregates: rows of the same lifetime are combined before they are sent to the shard of the final aggregate.

Meaning: all (row, ts, exp) with equal ts and exp give one (partial values, ts, exp): counts, sums of integers, minima and
maxima. Combined rows start and end together, so the input must be stamped; there is no state.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from sash.operators.base import Edge, Operator
from sash.plan.expressions import AggregateCall
from sash.plan.types import BIGINT, is_integer
from sash.state.changes import ChangeBatch
from sash.state.memory import Memory

_ARROW = {"count": "count", "sum": "sum", "min": "min", "max": "max"}


def combinable(call: AggregateCall) -> bool:
    """Whether the aggregate can be computed exactly from partial aggregates."""
    if call.distinct:
        return False
    if call.function == "sum":
        return is_integer(call.arguments[0].dtype)
    return call.function in ("count_star", "count", "min", "max")


class Combine(Operator):
    """Stateless; one output column per aggregate."""

    def __init__(self, memory: Memory, inputs: tuple[Edge], aggregates: tuple[AggregateCall, ...]) -> None:
        self._aggregates = aggregates

    def process(self, inputs: Sequence[ChangeBatch], clock: int) -> ChangeBatch:
        (batch,) = inputs
        names, arrays = ["ts", "exp"], [pa.array(batch.ts), pa.array(batch.exp)]
        wanted: list[tuple[str | list[str], str]] = []
        for number, call in enumerate(self._aggregates):
            if call.function == "count_star":
                wanted.append(([], "count_all"))
                continue
            names.append(f"a{number}")
            arrays.append(batch.columns[call.arguments[0].index])
            wanted.append((f"a{number}", _ARROW[call.function]))
        grouped = pa.table(arrays, names=names).group_by(["ts", "exp"]).aggregate(wanted).combine_chunks()
        columns = [_flat(grouped.column(2 + number), call.dtype) for number, call in enumerate(self._aggregates)]
        ts, exp = (_flat(grouped.column(number), BIGINT).to_numpy() for number in (0, 1))
        return ChangeBatch.stamped(ts, exp, columns).sorted()


def _flat(column: pa.ChunkedArray, dtype: pa.DataType) -> pa.Array:
    return pa.concat_arrays([chunk.cast(dtype) for chunk in column.chunks] or [pa.array([], dtype)])

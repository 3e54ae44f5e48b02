"""Statistics computed from observed rows: their rate, and the distinct and frequent values of each column."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from sash.plan.statistics import FREQUENT, UNKNOWN, Statistics, observed
from sash.plan.types import Schema


def seen(
    schema: Schema, columns: Sequence[pa.Array], microseconds: int, leave: str, known: Statistics = UNKNOWN
) -> Statistics:
    """The statistics of rows that arrived within `microseconds`; `leave` is the time column, which is not counted.

    Columns of lists and maps, whose values cannot be compared, are not counted; NULLs are ignored.
    """
    distinct: dict[str, float] = {}
    frequent: dict[str, dict[object, int]] = {}
    for field, column in zip(schema, columns, strict=True):
        if field.name.lower() == leave.lower() or pa.types.is_nested(column.type):
            continue
        counted = pc.value_counts(column.drop_null())
        distinct[field.name] = len(counted)
        most = counted.take(pc.sort_indices(counted.field(1), sort_keys=[("", "descending")])[:FREQUENT])
        frequent[field.name] = dict(zip(most.field(0).to_pylist(), most.field(1).to_pylist(), strict=True))
    return observed(len(columns[0]) if columns else 0, max(microseconds, 1), distinct, known, frequent)

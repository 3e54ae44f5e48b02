"""SEQUENCE: arrays of integers, dates or timestamps at equal steps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from sash.errors import EvaluationError
from sash.operators.scalar.arrays import Array, Datum, Numbers, broadcast_all, kernel, map_rows, numbers
from sash.operators.scalar.dates import add_months
from sash.operators.scalar.function import Function
from sash.operators.scalar.ranks import offsets_of, owners
from sash.state.nested import list_array
from sash.time import DAY

LONGEST = 2**24
"""The most elements of an array that a function makes."""


def _integers(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """SEQUENCE(start, stop, step) of integers; the step is 1 or -1 if there is none."""
    columns = broadcast_all(arguments)
    known = np.ones(len(columns[0]), np.bool_)
    for column in columns:
        known &= kernel("is_valid", column).to_numpy(zero_copy_only=False)
    start, stop = (numbers(column).astype(np.int64) for column in columns[:2])
    step = numbers(columns[2]).astype(np.int64) if len(columns) == 3 else np.where(start <= stop, 1, -1)
    _refuse_wrong_steps(start, stop, step, known)
    made = offsets_of(np.where(known, _counts(start, stop, step), 0))
    rows = owners(made)
    values = start[rows] + step[rows] * (np.arange(len(rows)) - made[rows])
    return list_array(dtype, made, pa.array(values.astype(dtype.value_type.to_pandas_dtype())), known)


def _refuse_wrong_steps(start: Numbers, stop: Numbers, step: Numbers, known: Numbers) -> None:
    wrong = ((step == 0) & (start != stop)) | ((step > 0) & (start > stop)) | ((step < 0) & (start < stop))
    if (known & wrong).any():
        row = int(np.flatnonzero(known & wrong)[0])
        raise EvaluationError(f"sequence: no steps of {step[row]} lead from {start[row]} to {stop[row]}")
    distance = np.abs(stop.astype(np.float64) - start.astype(np.float64))
    if (known & (distance / np.maximum(np.abs(step.astype(np.float64)), 1) > LONGEST)).any():
        raise EvaluationError(f"sequence: the array has more than {LONGEST:,} elements")


def _counts(start: Numbers, stop: Numbers, step: Numbers) -> Numbers:
    """The number of elements; distances are unsigned, since that of two BIGINTs may need 64 bits."""
    low, high = np.minimum(start, stop).view(np.uint64), np.maximum(start, stop).view(np.uint64)
    width = np.maximum(np.abs(step), 1).astype(np.uint64)
    return ((high - low) // width).astype(np.int64) + 1


def _moments(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """SEQUENCE(start, stop, INTERVAL): dates or timestamps, each from the start by so many times the interval."""
    start, stop, *step = arguments
    months, days, micros = (part.as_py() for part in step) if step else (0, 0, 0)
    element = dtype.value_type
    unit = DAY if pa.types.is_date32(element) else 1
    if unit == DAY and micros % DAY:
        raise EvaluationError("sequence: dates follow each other by whole days or months")

    def made(first: int, last: int) -> list[int]:
        by = days * DAY + micros if step else DAY if first <= last else -DAY
        return _series(first * unit, last * unit, months, by, unit)

    physical = pa.list_(pa.int32() if unit == DAY else pa.int64())
    return map_rows(made, [start, stop], physical).view(dtype)


def _series(first: int, last: int, months: int, micros: int, unit: int) -> list[int]:
    """The moments of one array, in days or microseconds."""
    if months == 0 and micros == 0:
        if first == last:
            return [first // unit]
        raise EvaluationError("sequence: the interval between the elements is 0")
    step = months * 28 * DAY + micros
    if (step > 0) != (last >= first) and first != last:
        raise EvaluationError("sequence: the interval leads away from the end; turn its sign")
    count = abs(last - first) // abs(step) + 1
    if count > LONGEST:
        raise EvaluationError(f"sequence: the array has more than {LONGEST:,} elements")
    moments = np.full(count + 1, first, np.int64)
    if months:
        shifted = add_months(
            [
                pa.array(moments // DAY, pa.int64()).cast(pa.int32()).view(pa.date32()),
                pa.array((months * np.arange(count + 1)).astype(np.int32)),
            ],
            pa.date32(),
        )
        moments = numbers(shifted).astype(np.int64) * DAY + first % DAY
    moments = moments + micros * np.arange(count + 1)
    inside = moments <= last if step > 0 else moments >= last
    return [int(moment) // unit for moment in moments[: int(np.argmin(inside)) if not inside.all() else len(moments)]]


SERIES: dict[str, Function] = {
    "sequence": Function(_integers, 2, 3, fails=True),
    "sequence_by": Function(_moments, 2, 5, fails=True),
}

"""Columns by position: whatever the type, with NULLs or without, sliced or whole."""

from __future__ import annotations

from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sash.state.columns import gather, stored_values

COLUMNS = {
    "bigint": pa.array([5, -1, 7, 2**62, 0], pa.int64()),
    "tinyint": pa.array([1, 2, -3, 4, 5], pa.int8()),
    "double": pa.array([0.5, -0.0, float("inf"), 2.0, 3.0]),
    "date": pa.array([date(2020, 1, day) for day in range(1, 6)]),
    "time": pa.array([1, 2, 3, 4, 5], pa.timestamp("us", tz="UTC")),
    "nulls": pa.array([1, None, 3, None, 5], pa.int64()),
    "text": pa.array(["a", None, "", "dd", "e"]),
    "boolean": pa.array([True, None, False, True, False]),
}


@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS)
@pytest.mark.parametrize("positions", [[3, 0, 0, 2], []], ids=["some", "none"])
def test_rows_are_gathered_as_arrow_takes_them(column: pa.Array[Any], positions: list[int]) -> None:
    index = np.array(positions, np.int64)
    for given in (column, pa.concat_arrays([column, column]).slice(3, 5)):
        (gathered,) = gather([given], index)
        gathered.validate(full=True)
        assert gathered.equals(given.take(pa.array(index)))
        assert gathered.type == column.type


def test_no_rows_have_no_values_and_text_has_none_of_its_own() -> None:
    values = stored_values(pa.array([], pa.int32()))
    assert values is not None
    assert values.dtype == np.int32
    assert len(values) == 0
    assert stored_values(COLUMNS["text"]) is None
    assert [array.to_pylist() for array in gather([pa.array([], pa.int64())], np.empty(0, np.int64))] == [[]]

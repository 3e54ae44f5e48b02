"""RAISE_ERROR and ASSERT_TRUE, which fail the query."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from sash.errors import EvaluationError
from sash.operators.scalar.arrays import Array, Datum, broadcast_all, nulls
from sash.operators.scalar.function import Function


def _raise(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    (messages,) = broadcast_all(arguments)
    raise EvaluationError(f"raise_error: {messages[0].as_py()}")


def _assert(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """NULL where the condition is true; otherwise the message of the first row in which it is not."""
    holds, *message = broadcast_all(arguments)
    failed = pc.index(pc.fill_null(holds, False), pa.scalar(False)).as_py()
    if failed >= 0:
        raise EvaluationError(f"assert_true: {message[0][failed].as_py() if message else 'the condition is not true'}")
    return nulls(len(holds), dtype)


FUNCTIONS: dict[str, Function] = {
    "raise_error": Function(_raise, 1, 1, strict=False, fails=True),
    "assert_true": Function(_assert, 1, 2, strict=False, fails=True),
}

"""Calls of functions that users registered: Arrow arrays in, one Arrow array of the same length out."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from sash.errors import EvaluationError
from sash.operators.scalar.arrays import Array, Datum, broadcast
from sash.plan.types import type_name
from sash.plan.user_code import UserCode


def call_user(code: UserCode, arguments: Sequence[Datum]) -> Datum:
    """The result of the function; a constant if all arguments are constants."""
    lengths = [len(argument) for argument in arguments if isinstance(argument, pa.Array)]
    rows = lengths[0] if lengths else 1
    given = [broadcast(argument, rows) for argument in arguments]
    try:
        result = code.code(*given)
    except Exception as error:
        raise failed(code, error) from error
    made = as_column(code, result)
    if len(made) != rows:
        raise EvaluationError(
            f"the function {code.name} returned {len(made)} values for {rows} rows: return one per row"
        )
    return made if lengths else made[0]


def failed(code: UserCode, error: Exception) -> EvaluationError:
    """The error of a query whose user code failed."""
    return EvaluationError(f"{code.name} (version {code.version}) failed: {type(error).__name__}: {error}")


def as_column(code: UserCode, values: object) -> Array:
    """The values that user code returned, as a column of its type."""
    try:
        if isinstance(values, pa.ChunkedArray):
            values = values.combine_chunks()
        if isinstance(values, pa.Array):
            return values if values.type == code.dtype else values.cast(code.dtype)
        return pa.array(values, code.dtype)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise EvaluationError(f"{code.name} returned what is not {type_name(code.dtype)}: {error}") from None

"""Intervals, stored as microseconds or months: their texts, and their products with numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import ROUND_DOWN, ROUND_HALF_UP, Context, Decimal
from typing import Any

import pyarrow as pa

from sash.errors import EvaluationError
from sash.operators.scalar import decimals
from sash.operators.scalar.arrays import Array, Datum, broadcast_all
from sash.operators.scalar.function import Function, by_value, one
from sash.plan.interval_text import INTERVAL_LIMITS, parsed, text_of
from sash.time import DAY, HOUR, MINUTE, SECOND

_SPARKS = Context(prec=38, rounding=ROUND_HALF_UP)
_WIDE = Context(prec=100, rounding=ROUND_HALF_UP)


def _parse(text: str, name: str) -> int:
    value = parsed(text, name)
    if value is None:
        raise EvaluationError(f"{text[:40]!r} is no {name}; use TRY_CAST to get NULL instead")
    return value


def _rounded(value: Decimal | float, dtype: pa.DataType) -> int:
    """The nearest whole number; halves away from zero."""
    if isinstance(value, float):
        if not math.isfinite(value):
            raise _overflow()
        value = Decimal(value)
    whole = int(value.to_integral_value(ROUND_HALF_UP, _WIDE))
    limit = INTERVAL_LIMITS[dtype]
    if not -limit <= whole < limit:
        raise _overflow()
    return whole


def _overflow() -> EvaluationError:
    return EvaluationError("an interval is too long: it does not fit the type")


def _product(value: int, factor: Any) -> Decimal | float:
    if isinstance(factor, float):
        return value * factor
    return _WIDE.multiply(Decimal(value), Decimal(factor))


def _quotient(value: int, divisor: Any) -> Decimal | float:
    if divisor == 0:
        raise EvaluationError(
            "division of an interval by zero; make the divisor NULLIF(divisor, 0) to get NULL instead"
        )
    if isinstance(divisor, float):
        return value / divisor
    if not isinstance(divisor, int):
        return _SPARKS.divide(Decimal(value), divisor)
    quotient, rest = divmod(abs(value), abs(divisor))
    half_up = quotient + (2 * rest >= abs(divisor))
    return Decimal(half_up if (value < 0) == (divisor < 0) else -half_up)


def _scaled(compute: Callable[[int, Any], Decimal | float]) -> Function:
    def run(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
        return by_value(lambda value, factor: _rounded(compute(value, factor), dtype), 2, fails=True).run(
            arguments, dtype
        )

    return Function(run, 2, 2, fails=True)


def _make_day_time(days: int, hours: int, minutes: int, seconds: Decimal) -> int:
    micros = int((seconds * SECOND).to_integral_value(ROUND_DOWN))
    total = days * DAY + hours * HOUR + minutes * MINUTE + micros
    if not -(2**63) <= total < 2**63:
        raise _overflow()
    return total


def _to_seconds(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """Microseconds as a DECIMAL of seconds."""
    (micros,) = broadcast_all(arguments)
    return decimals.rescale(decimals.reinterpret(micros.cast(pa.decimal128(19, 0)), pa.decimal128(19, 6)), dtype)


FUNCTIONS: dict[str, Function] = {
    "interval_text": by_value(text_of, 2),
    "parse_interval": by_value(_parse, 2, fails=True),
    "try_parse_interval": by_value(parsed, 2),
    "interval_multiply": _scaled(_product),
    "interval_divide": _scaled(_quotient),
    "day_time_micros": by_value(_make_day_time, 4, fails=True),
    "micros_to_seconds": one(_to_seconds),
}

"""Intervals that are values: their arithmetic, their fields, and aggregates of them.

Everything is computed on the numbers that store intervals: `stored` and `typed` are calls that stand for the change of the
type alone, and are gone when the plan is bound (`storage.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from sash.errors import TypeMismatchError
from sash.plan import types
from sash.plan.expressions import Call, Case, Cast, Expression, Literal
from sash.plan.sql_types import (
    DAY_TIME_FIELDS,
    DAY_TO_SECOND,
    YEAR_MONTH_FIELDS,
    YEAR_TO_MONTH,
    DayTimeInterval,
    YearMonthInterval,
    common_interval,
    day_time,
    is_interval,
)
from sash.plan.types import BIGINT, BOOLEAN, DATE, DOUBLE, INT, STRING, TIMESTAMP, TIMESTAMP_NTZ, TINYINT, type_name
from sash.sql.coercion import coerce, common_dtype, implicit, is_decimal
from sash.time import DAY, HOUR, MINUTE, SECOND

_MOMENTS = (DATE, TIMESTAMP, TIMESTAMP_NTZ)
_SECONDS = pa.decimal128(8, 6)
_LENGTHS = dict(zip(DAY_TIME_FIELDS, (DAY, HOUR, MINUTE, SECOND), strict=True))
_FIELDS = {
    "YEAR": ("Y", "YEARS", "YR", "YRS"),
    "MONTH": ("MON", "MONS", "MONTHS"),
    "DAY": ("D", "DAYS"),
    "HOUR": ("H", "HOURS", "HR", "HRS"),
    "MINUTE": ("M", "MIN", "MINS", "MINUTES"),
    "SECOND": ("S", "SEC", "SECONDS", "SECS"),
}
_FIELD_NAMES = {name: field for field, names in _FIELDS.items() for name in (field, *names)}


def stored(value: Expression) -> Expression:
    """The number that stores a value."""
    return Call("stored", (value,), types.storage(value.dtype))


def typed(number: Expression, dtype: pa.DataType) -> Expression:
    """The value of a type that the number stores."""
    return Call("typed", (number,), dtype)


def arithmetic(name: str, left: Expression, right: Expression) -> Expression | None:
    """add, subtract, multiply, divide or int_divide with an interval in it, or that returns one; None for any other."""
    intervals = is_interval(left.dtype), is_interval(right.dtype)
    if name == "subtract" and not any(intervals):
        return _difference(left, right)
    if not any(intervals):
        return None
    if all(intervals):
        return _of_two(name, left, right)
    if name == "add" and intervals[0]:
        left, right = right, left
    if name in ("add", "subtract") and is_interval(right.dtype) and left.dtype in (*_MOMENTS, types.NULL):
        return _moved(name, left, right)
    if name == "multiply" and intervals[1]:
        left, right = right, left
    if name in ("multiply", "divide") and is_interval(left.dtype):
        return _scaled(name, left, right)
    raise TypeMismatchError(
        f"{name} takes no {type_name(left.dtype)} and {type_name(right.dtype)}: add intervals to times and to each other, "
        "and multiply and divide them by numbers"
    )


def _difference(left: Expression, right: Expression) -> Expression | None:
    """The difference of two times, of which one may be text."""
    moments = [side.dtype for side in (left, right) if side.dtype in _MOMENTS]
    if not moments or any(side.dtype not in (*_MOMENTS, STRING, types.NULL) for side in (left, right)):
        return None
    if STRING in (left.dtype, right.dtype):
        (dtype,) = moments
        dtype = TIMESTAMP if dtype == TIMESTAMP_NTZ else dtype
    else:
        dtype = common_dtype(left.dtype, right.dtype) or TIMESTAMP
    if dtype == DATE:
        days = Call("datediff", (coerce(left, DATE), coerce(right, DATE)), INT)
        micros: Expression = Call("multiply", (coerce(days, BIGINT), Literal(DAY, BIGINT)), BIGINT)
        return typed(micros, day_time(0, 0))
    ends = (Call("unix_micros", (coerce(coerce(side, dtype), TIMESTAMP),), BIGINT) for side in (left, right))
    return typed(Call("subtract", tuple(ends), BIGINT), DAY_TO_SECOND)


def _of_two(name: str, left: Expression, right: Expression) -> Expression:
    dtype = common_interval(left.dtype, right.dtype)
    if dtype is None or name not in ("add", "subtract", "int_divide"):
        raise TypeMismatchError(f"{name} takes no {type_name(left.dtype)} and {type_name(right.dtype)}")
    numbers = (stored(left), stored(right))
    if name == "int_divide":
        return Call(name, tuple(coerce(number, BIGINT) for number in numbers), BIGINT)
    return typed(Call(name, numbers, types.storage(dtype)), dtype)


def _moved(name: str, moment: Expression, interval: Expression) -> Expression:
    """A DATE or TIMESTAMP plus or minus an interval: days keep a DATE a DATE, shorter parts do not."""
    amount = stored(interval)
    if name == "subtract":
        amount = Call("negate", (amount,), amount.dtype)
    moment = coerce(moment, TIMESTAMP) if moment.dtype == types.NULL else moment
    if isinstance(interval.dtype, YearMonthInterval):
        return add_months(moment, amount)
    if moment.dtype == DATE:
        if interval.dtype == day_time(0, 0):
            days = Call("int_divide", (amount, Literal(DAY, BIGINT)), BIGINT)
            return Call("date_add", (moment, Cast(days, INT)), DATE)
        moment = coerce(moment, TIMESTAMP)
    return Call("timestamp_add_micros", (moment, amount), moment.dtype)


def add_months(moment: Expression, months: Expression) -> Expression:
    """The same time of day, months later."""
    date_part = coerce(moment, DATE)
    moved = Call("add_months", (date_part, months), DATE)
    if moment.dtype == DATE:
        return moved
    midnight, now = (Call("unix_micros", (coerce(part, TIMESTAMP),), BIGINT) for part in (date_part, moment))
    time_of_day = Call("subtract", (now, midnight), BIGINT)
    return Call("timestamp_add_micros", (coerce(moved, moment.dtype), time_of_day), moment.dtype)


def _scaled(name: str, interval: Expression, factor: Expression) -> Expression:
    dtype = DAY_TO_SECOND if isinstance(interval.dtype, DayTimeInterval) else YEAR_TO_MONTH
    if factor.dtype in (STRING, types.NULL):
        factor = coerce(factor, DOUBLE)
    if not types.is_numeric(factor.dtype):
        raise TypeMismatchError(f"{name} takes an interval and a number, not {type_name(factor.dtype)}")
    if not is_decimal(factor.dtype):
        factor = coerce(factor, BIGINT if types.is_integer(factor.dtype) else DOUBLE)
    return typed(Call(f"interval_{name}", (stored(interval), factor), types.storage(dtype)), dtype)


def signed(name: str, interval: Expression) -> Expression:
    """negate, abs or sign of an interval."""
    number = stored(interval)
    if name == "sign":
        return Call(name, (coerce(number, DOUBLE),), DOUBLE)
    return typed(Call(name, (number,), number.dtype), interval.dtype)


def field_of(name: str, interval: Expression) -> Expression:
    """EXTRACT(name FROM interval): the number of whole units beside larger ones."""
    dtype = interval.dtype
    assert isinstance(dtype, DayTimeInterval | YearMonthInterval)
    known = DAY_TIME_FIELDS if isinstance(dtype, DayTimeInterval) else YEAR_MONTH_FIELDS
    first, last = dtype.fields
    found = _FIELD_NAMES.get(name.upper())
    if found not in known[first : last + 1]:
        raise TypeMismatchError(
            f"{type_name(dtype)} has no field {name}: it has {', '.join(known[first : last + 1])}; cast the interval"
        )
    number = stored(interval)
    if isinstance(dtype, YearMonthInterval):
        twelve = Literal(12, INT)
        if found == "YEAR":
            return Cast(Call("int_divide", (coerce(number, BIGINT), coerce(twelve, BIGINT)), BIGINT), INT)
        return Cast(Call("modulo", (number, twelve), INT), TINYINT)
    if found == "SECOND":
        micros = Call("modulo", (number, Literal(MINUTE, BIGINT)), BIGINT)
        return Call("micros_to_seconds", (micros,), _SECONDS)
    place = known.index(found)
    if place:
        number = Call("modulo", (number, Literal(_LENGTHS[known[place - 1]], BIGINT)), BIGINT)
    units = Call("int_divide", (number, Literal(_LENGTHS[found], BIGINT)), BIGINT)
    return Cast(units, INT if found == "DAY" else TINYINT)


AGGREGATES = ("sum", "avg")
"""Aggregates of numbers that Spark has of intervals, too, and Sash."""


def aggregate(name: str, value: Expression, add: Callable[[str, Expression], Expression]) -> Expression:
    """SUM or AVG of intervals; `add` adds an aggregate of numbers to those of the query."""
    number = stored(value)
    total = add("sum", number)
    if name == "sum":
        return typed(total if number.dtype == BIGINT else Cast(total, INT), value.dtype)
    dtype = DAY_TO_SECOND if isinstance(value.dtype, DayTimeInterval) else YEAR_TO_MONTH
    count = add("count", number)
    some = Call("gt", (count, Literal(0, BIGINT)), BOOLEAN)
    mean = Call("interval_divide", (total, count), types.storage(dtype))
    return typed(Case(((some, mean),), None, mean.dtype), dtype)


PERCENTILES = ("median", "percentile", "percentile_disc", "approx_percentile")
"""Aggregates that order intervals, and return one of them or one between two."""


def percentile(name: str, value: Expression, add: Callable[[Expression], Expression]) -> Expression:
    """A percentile of intervals, or an array of them; `add` adds the aggregate of numbers. One between two is cut to a whole
    number of microseconds or months."""
    dtype, number = value.dtype, stored(value)
    found = add(number)
    if name != "approx_percentile":
        dtype = DAY_TO_SECOND if isinstance(dtype, DayTimeInterval) else YEAR_TO_MONTH
        found = Cast(found, types.array_of(number.dtype) if types.is_array(found.dtype) else number.dtype)
    return typed(found, types.array_of(dtype) if types.is_array(found.dtype) else dtype)


def make_day_time(name: str, arguments: Sequence[Expression]) -> Expression:
    """MAKE_DT_INTERVAL(days, hours, minutes, seconds), all 0 by default."""
    defaults = [Literal(0, INT)] * 3 + [Literal(0, pa.decimal128(18, 6))]
    wanted = [INT, INT, INT, pa.decimal128(18, 6)]
    given = [*arguments, *defaults[len(arguments) :]]
    parts = [implicit(part, dtype, name) for part, dtype in zip(given, wanted, strict=True)]
    return typed(Call("day_time_micros", tuple(parts), BIGINT), DAY_TO_SECOND)


def make_year_month(name: str, arguments: Sequence[Expression]) -> Expression:
    """MAKE_YM_INTERVAL(years, months), both 0 by default."""
    given = [*arguments, *[Literal(0, INT)] * (2 - len(arguments))]
    years, months = (coerce(implicit(part, INT, name), BIGINT) for part in given)
    total = Call("add", (Call("multiply", (years, Literal(12, BIGINT)), BIGINT), months), BIGINT)
    return typed(Cast(total, INT), YEAR_TO_MONTH)

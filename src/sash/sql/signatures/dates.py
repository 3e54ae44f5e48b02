"""Functions of dates and times: patterns, zones, fields and differences."""

from __future__ import annotations

import pyarrow as pa

from sash.errors import TypeMismatchError
from sash.plan import types
from sash.plan.expressions import Call, Cast, Expression, Literal
from sash.plan.sql_types import DayTimeInterval, is_interval
from sash.plan.types import BIGINT, BOOLEAN, DATE, DOUBLE, INT, STRING, TIMESTAMP, TIMESTAMP_NTZ
from sash.sql import intervals
from sash.sql.coercion import coerce, implicit
from sash.sql.function_rules import Arguments, Rule, of_types, unix_time
from sash.sql.signatures.base import OnlySparkError, Signature

_SECONDS = pa.decimal128(16, 6)
_UNITS = (
    *("MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "DAYOFYEAR", "WEEK", "MONTH", "QUARTER", "YEAR"),
)
_FIELDS: dict[str, tuple[str, ...]] = {
    "year": ("y", "years", "yr", "yrs"),
    "yearofweek": (),
    "quarter": ("qtr",),
    "month": ("mon", "mons", "months"),
    "weekofyear": ("week", "w", "weeks"),
    "day": ("d", "days"),
    "dayofweek": ("dow",),
    "dayofweek_iso": ("dow_iso",),
    "dayofyear": ("doy",),
    "hour": ("h", "hours", "hr", "hrs"),
    "minute": ("m", "min", "mins", "minutes"),
    "second": ("s", "sec", "seconds", "secs"),
}
_FIELD_NAMES = {name: field for field, names in _FIELDS.items() for name in (field, *names)}
_DATE_FIELDS = frozenset({"year", "quarter", "month", "weekofyear", "day", "dayofweek", "dayofyear"})


def _bucket(name: str, arguments: Arguments) -> Expression:
    """TIME_BUCKET(size, time [, origin]): the start of the bucket, as the time less what it is past that."""
    size, moment, *origins = arguments
    if not is_interval(size.dtype) or not isinstance(size, Literal):
        raise TypeMismatchError(f"the first argument of {name} is a constant interval")
    if not isinstance(size.dtype, DayTimeInterval):
        raise OnlySparkError(f"Sash does not run {name} with months")
    if not size.value or size.value <= 0:
        raise TypeMismatchError(f"the first argument of {name}, the size of a bucket, is greater than 0")
    if moment.dtype not in (TIMESTAMP, TIMESTAMP_NTZ):
        raise TypeMismatchError(f"{name} takes a TIMESTAMP or TIMESTAMP_NTZ, not {types.type_name(moment.dtype)}")
    passed: Expression = _micros(moment)
    for origin in origins:
        if origin.dtype != moment.dtype:
            raise TypeMismatchError(f"the origin of {name} has the type of the time, {types.type_name(moment.dtype)}")
        passed = Call("subtract", (passed, _micros(origin)), BIGINT)
    past = Call("pmod", (passed, intervals.stored(size)), BIGINT)
    return Call("timestamp_add_micros", (moment, Call("negate", (past,), BIGINT)), moment.dtype)


def _micros(moment: Expression) -> Expression:
    return Call("unix_micros", (coerce(moment, TIMESTAMP),), BIGINT)


def time_field(name: str, moment: Expression) -> Expression:
    """EXTRACT(name FROM moment)."""
    if is_interval(moment.dtype):
        return intervals.field_of(name, moment)
    found = _FIELD_NAMES.get(name.lower())
    if found is None:
        raise TypeMismatchError(f"there is no field {name} of a time: write one of {', '.join(_FIELDS).upper()}")
    if found in ("yearofweek", "dayofweek_iso"):
        day = implicit(moment, DATE, found)
        if found == "yearofweek":
            return Call(found, (day,), INT)
        return Call("add", (Call("weekday", (day,), INT), Literal(1, INT)), INT)
    if found in _DATE_FIELDS:
        return Call(found, (implicit(moment, DATE, found),), INT)
    clock = moment if pa.types.is_timestamp(moment.dtype) else implicit(moment, TIMESTAMP, found)
    if found == "second":
        return Call("seconds_of_minute", (clock,), pa.decimal128(8, 6))
    return Call(found, (implicit(clock, TIMESTAMP, found),), INT)


def _date_part(name: str, arguments: Arguments) -> Expression:
    part, moment = arguments
    if not isinstance(part, Literal) or not isinstance(part.value, str):
        raise TypeMismatchError(f"the first argument of {name} is the name of a field, such as 'YEAR'")
    return time_field(part.value, moment)


def _parsed(canonical: str, result: pa.DataType, lenient: bool = False) -> Rule:
    """Text by a pattern; without a pattern, and for dates and times, a cast."""

    def rule(name: str, arguments: Arguments) -> Expression:
        value, *pattern = arguments
        if pattern and value.dtype == STRING:
            return Call(canonical, (value, implicit(pattern[0], STRING, name)), result)
        if not (pa.types.is_temporal(value.dtype) or types.is_numeric(value.dtype)):
            value = implicit(value, STRING if value.dtype == STRING else result, name)
        elif types.is_numeric(value.dtype) and result != TIMESTAMP:
            raise TypeMismatchError(f"{name} takes text or a time, not {types.type_name(value.dtype)}")
        if value.dtype == result:
            return value
        return Cast(value, result, lenient)

    return rule


def _unix_timestamp(name: str, arguments: Arguments) -> Expression:
    """Of text, by a pattern; of a date or time, its seconds."""
    value, *pattern = arguments
    if value.dtype == STRING:
        return Call("to_unix_timestamp", (value, *(implicit(each, STRING, name) for each in pattern)), BIGINT)
    return unix_time("unix_timestamp", [value])


def _date_format(name: str, arguments: Arguments) -> Expression:
    moment = implicit(arguments[0], TIMESTAMP, name)
    return Call(name, (moment, implicit(arguments[1], STRING, name)), STRING)


def _convert_timezone(name: str, arguments: Arguments) -> Expression:
    """The session's zone, UTC, is the source unless there is another."""
    source = arguments[0] if len(arguments) == 3 else Literal("UTC", STRING)
    *_, target, moment = arguments
    zones = (implicit(source, STRING, name), implicit(target, STRING, name))
    return Call(name, (*zones, implicit(moment, TIMESTAMP_NTZ, name)), TIMESTAMP_NTZ)


def _with_unit(name: str, arguments: Arguments) -> Expression:
    """TIMESTAMPADD(unit, amount, time) and TIMESTAMPDIFF(unit, start, end)."""
    unit = arguments[0]
    word = str(unit.value).upper() if isinstance(unit, Literal) else ""
    if word not in _UNITS:
        raise TypeMismatchError(f"the first argument of {name} is a unit: {', '.join(_UNITS)}")
    constant = Literal(word, STRING)
    if name == "timestampdiff":
        moments = [coerce(implicit(each, TIMESTAMP, name), TIMESTAMP) for each in arguments[1:]]
        return Call(name, (constant, *moments), BIGINT)
    moment = arguments[2]
    if moment.dtype != TIMESTAMP_NTZ:
        moment = implicit(moment, TIMESTAMP, name)
    return Call(name, (constant, implicit(arguments[1], BIGINT, name), moment), moment.dtype)


def _made(result: pa.DataType) -> Rule:
    return of_types((INT, INT, INT, INT, INT, _SECONDS, STRING), result)


SIGNATURES: dict[str, Signature] = {
    "time_bucket": Signature(2, 3, _bucket),
    "date_format": Signature(2, 2, _date_format),
    "from_unixtime": Signature(1, 2, of_types((BIGINT, STRING), STRING)),
    "to_timestamp": Signature(1, 2, _parsed("to_timestamp", TIMESTAMP)),
    "to_timestamp_ntz": Signature(1, 2, _parsed("to_timestamp_ntz", TIMESTAMP_NTZ)),
    "to_date": Signature(1, 2, _parsed("parse_date", DATE)),
    "try_to_timestamp": Signature(1, 2, _parsed("try_to_timestamp", TIMESTAMP, lenient=True)),
    "try_to_date": Signature(1, 2, _parsed("try_to_date", DATE, lenient=True)),
    **{name: Signature(1, 2, _unix_timestamp) for name in ("unix_timestamp", "to_unix_timestamp")},
    "date_part": Signature(2, 2, _date_part),
    **{
        name: Signature(2, 2, of_types((TIMESTAMP, STRING), TIMESTAMP))
        for name in ("from_utc_timestamp", "to_utc_timestamp")
    },
    "convert_timezone": Signature(2, 3, _convert_timezone),
    "make_date": Signature(3, 3, of_types((INT,), DATE)),
    **{name: Signature(6, 7, _made(TIMESTAMP)) for name in ("make_timestamp", "try_make_timestamp")},
    **{name: Signature(6, 6, _made(TIMESTAMP_NTZ)) for name in ("make_timestamp_ntz", "try_make_timestamp_ntz")},
    "make_dt_interval": Signature(0, 4, intervals.make_day_time),
    "make_ym_interval": Signature(0, 2, intervals.make_year_month),
    "weekday": Signature(1, 1, of_types((DATE,), INT)),
    **{name: Signature(1, 1, of_types((DATE,), STRING)) for name in ("dayname", "monthname")},
    "next_day": Signature(2, 2, of_types((DATE, STRING), DATE)),
    "trunc": Signature(2, 2, of_types((DATE, STRING), DATE)),
    "months_between": Signature(2, 3, of_types((TIMESTAMP, TIMESTAMP, BOOLEAN), DOUBLE)),
    **{name: Signature(3, 3, _with_unit) for name in ("timestampadd", "timestampdiff")},
    "unix_date": Signature(1, 1, of_types((DATE,), INT)),
    "date_from_unix_date": Signature(1, 1, of_types((INT,), DATE)),
}
ALIASES = {
    "datepart": "date_part",
    "to_timestamp_ltz": "to_timestamp",
    "make_timestamp_ltz": "make_timestamp",
    "try_make_timestamp_ltz": "try_make_timestamp",
}
WITH_UNITS = {
    **dict.fromkeys(("timestampadd", "dateadd", "date_add"), "timestampadd"),
    **dict.fromkeys(("timestampdiff", "datediff", "date_diff", "timediff"), "timestampdiff"),
}
"""Functions whose first of three arguments is the name of a unit."""

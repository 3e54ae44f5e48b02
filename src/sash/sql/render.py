"""A bound expression as Spark SQL text, for evaluation by Spark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa

from sash.errors import UnsupportedSqlError
from sash.plan.compound import fold
from sash.plan.describe import INFIX
from sash.plan.expressions import (
    ONLY_SASH,
    Call,
    Case,
    Cast,
    Column,
    Expression,
    Lambda,
    Literal,
    SparkFunction,
    UserCall,
    Variable,
)
from sash.plan.types import BINARY, BOOLEAN, DATE, INT, NULL, STRING, TIMESTAMP, is_integer, type_name

_INFIX = {name: sign for name, (_, sign) in INFIX.items()} | {"int_divide": "div", "ne": "!="}
_RENAMED = {
    "starts_with": "startswith",
    "ends_with": "endswith",
    "is_nan": "isnan",
    "ceil_to": "ceil",
    "floor_to": "floor",
    "parse_date": "to_date",
    "array_concat": "concat",
    "array_reverse": "reverse",
}
_ESCAPES = str.maketrans({"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\0": "\\0", "\x1a": "\\Z"})


def to_spark_sql(expression: Expression, columns: Sequence[str]) -> str:
    """Spark SQL in which column i is written as `columns[i]`.

    >>> to_spark_sql(Call("add", (Column(0, "a", INT), Literal(1, INT)), INT), ["s.a"])
    '(s.a + 1)'
    """
    return fold(expression, lambda part, texts: _render(part, texts, columns))


def _render(expression: Expression, texts: list[str], columns: Sequence[str]) -> str:
    """The text of an expression whose subexpressions have these texts."""
    match expression:
        case Column():
            return columns[expression.index]
        case Literal():
            return literal(expression)
        case Cast():
            return f"{'TRY_CAST' if expression.lenient else 'CAST'}({texts[0]} AS {type_name(expression.dtype)})"
        case Case():
            default = "" if expression.otherwise is None else f" ELSE {texts.pop()}"
            branches = "".join(f" WHEN {when} THEN {then}" for when, then in zip(texts[::2], texts[1::2], strict=True))
            return f"(CASE{branches}{default} END)"
        case SparkFunction():
            return expression.sql.format(*texts)
        case Variable():
            return _variable(expression)
        case Lambda():
            names = ", ".join(map(_variable, expression.variables))
            return f"{names if len(expression.variables) == 1 else f'({names})'} -> {texts[0]}"
        case UserCall():
            raise UnsupportedSqlError(
                f"{expression.function} runs in Sash, and what it is used in only in Spark's own engine: compute it above, in the "
                "SELECT around a subquery"
            )
        case Call() if expression.function in ONLY_SASH:
            raise UnsupportedSqlError(
                "a VARIANT is in Sash, and what it is used in only in Spark's own engine: compute it above, in the SELECT around "
                "a subquery"
            )
        case Call():
            return _call(expression, texts)


def _variable(variable: Variable) -> str:
    """A name of its own for each variable, since Spark prefers variables to columns of the same name."""
    return quoted(f"variable {variable.number} of a lambda")


def quoted(name: str) -> str:
    """A name as a back-quoted identifier.

    >>> quoted("a b")
    '`a b`'
    """
    return "`" + name.replace("`", "``") + "`"


def _call(expression: Call, arguments: list[str]) -> str:
    name = expression.function
    if name in _INFIX:
        return f"({arguments[0]} {_INFIX[name]} {arguments[1]})"
    if name in _SPECIAL:
        return _SPECIAL[name](expression, arguments)
    return f"{_RENAMED.get(name, name)}({', '.join(arguments)})"


def _trim(word: str) -> Callable[[Call, list[str]], str]:
    def render(call: Call, arguments: list[str]) -> str:
        if len(arguments) == 1:
            return f"{call.function}({arguments[0]})"
        return f"trim({word} {arguments[1]} FROM {arguments[0]})"

    return render


def _named(call: Call, arguments: list[str]) -> list[str]:
    return [f"{_string(field.name)}, {text}" for field, text in zip(call.dtype, arguments, strict=True)]


def _name_of(literal: Expression) -> str:
    assert isinstance(literal, Literal)
    return str(literal.value)


def _add_micros(call: Call, arguments: list[str]) -> str:
    moment, micros = arguments
    if call.dtype == TIMESTAMP:
        return f"timestamp_micros(unix_micros({moment}) + {micros})"
    return f"CAST(timestamp_micros(unix_micros(CAST({moment} AS TIMESTAMP)) + {micros}) AS {type_name(call.dtype)})"


def _window_bound(call: Call, arguments: list[str]) -> str:
    """The start or end of the window that a time is in, of those of a size that start at multiples of it after an origin."""
    moment, size, origin = arguments
    plain = call.dtype == TIMESTAMP
    micros = f"unix_micros({moment if plain else f'CAST({moment} AS TIMESTAMP)'})"
    end = f" + {size}" if call.function == "window_end" else ""
    bound = f"timestamp_micros({micros} - pmod({micros} - {origin}, {size}){end})"
    return bound if plain else f"CAST({bound} AS {type_name(call.dtype)})"


EPOCH = "TIMESTAMP_NTZ'1970-01-01 00:00:00'"


def stored(interval: str, months: bool) -> str:
    """An interval as the number that stores it: of microseconds, or of months."""
    if months:
        return f"CAST(CAST({interval} AS INTERVAL MONTH) AS INT)"
    return f"timestampdiff(MICROSECOND, {EPOCH}, {EPOCH} + {interval})"


def restored(number: str, name: str) -> str:
    """The interval of a type that the number stores."""
    if "MONTH" in name or "YEAR" in name:
        return f"CAST(make_ym_interval(0, {number}) AS {name})"
    return f"CAST(timestampadd(MICROSECOND, {number}, {EPOCH}) - {EPOCH} AS {name})"


def _scaled(operator: str) -> Callable[[Call, list[str]], str]:
    def render(call: Call, arguments: list[str]) -> str:
        months = call.dtype == INT
        interval = restored(arguments[0], "INTERVAL YEAR TO MONTH" if months else "INTERVAL DAY TO SECOND")
        return stored(f"({interval} {operator} {arguments[1]})", months)

    return render


def _interval_text(call: Call, arguments: list[str]) -> str:
    return f"CAST({restored(arguments[0], _name_of(call.arguments[1]))} AS STRING)"


def _json_tuple(call: Call, arguments: list[str]) -> str:
    raise UnsupportedSqlError(
        "json_tuple runs in Sash, and what it is used in only in Spark's own engine: compute that above, in the SELECT around a "
        "subquery"
    )


def _parse_interval(call: Call, arguments: list[str]) -> str:
    cast = "TRY_CAST" if call.function.startswith("try") else "CAST"
    return stored(f"{cast}({arguments[0]} AS {_name_of(call.arguments[1])})", call.dtype == INT)


def _sequence(call: Call, arguments: list[str]) -> str:
    """SEQUENCE by an interval of months, days and microseconds."""
    start, stop, *step = arguments
    if not step:
        return f"sequence({start}, {stop})"
    months, days, micros = (int(part.value) for part in call.arguments[2:] if isinstance(part, Literal))
    seconds = f"CAST('{Decimal(micros).scaleb(-6)}' AS DECIMAL(18, 6))"
    return f"sequence({start}, {stop}, make_interval(0, {months}, 0, {days}, 0, 0, {seconds}))"


_SPECIAL: dict[str, Callable[[Call, list[str]], str]] = {
    "negate": lambda _, a: f"(- {a[0]})",
    "not": lambda _, a: f"(NOT {a[0]})",
    "timestampadd": lambda _, a: f"timestampadd({a[0][1:-1]}, {a[1]}, {a[2]})",
    "timestampdiff": lambda _, a: f"timestampdiff({a[0][1:-1]}, {a[1]}, {a[2]})",
    "yearofweek": lambda _, a: f"extract(YEAROFWEEK FROM {a[0]})",
    "seconds_of_minute": lambda _, a: f"extract(SECOND FROM {a[0]})",
    "bit_not": lambda _, a: f"(~ {a[0]})",
    "is_null": lambda _, a: f"({a[0]} IS NULL)",
    "is_not_null": lambda _, a: f"({a[0]} IS NOT NULL)",
    "in": lambda _, a: f"({a[0]} IN ({', '.join(a[1:])}))",
    "trim": _trim("BOTH"),
    "ltrim": _trim("LEADING"),
    "rtrim": _trim("TRAILING"),
    "timestamp_add_micros": _add_micros,
    "struct": lambda call, a: f"named_struct({', '.join(_named(call, a))})",
    "get_field": lambda call, a: f"{a[0]}.{quoted(_name_of(call.arguments[1]))}",
    "sequence_by": _sequence,
    "get_item": lambda _, a: f"{a[0]}[{a[1]}]",
    "interval_text": _interval_text,
    "from_json": lambda call, a: f"from_json({a[0]}, {_string(type_name(call.dtype))})",
    "json_tuple": _json_tuple,
    "parse_interval": _parse_interval,
    "try_parse_interval": _parse_interval,
    "interval_multiply": _scaled("*"),
    "interval_divide": _scaled("/"),
    "day_time_micros": lambda _, a: stored(f"make_dt_interval({', '.join(a)})", months=False),
    "micros_to_seconds": lambda call, a: f"CAST(CAST({a[0]} AS DECIMAL(19,0)) * 0.000001 AS {type_name(call.dtype)})",
    "window_start": _window_bound,
    "window_end": _window_bound,
}


def literal(constant: Literal) -> str:
    """A constant that Spark reads back as the same value of the same type."""
    value, dtype = constant.value, constant.dtype
    if value is None:
        return "NULL" if dtype == NULL else f"CAST(NULL AS {type_name(dtype)})"
    if dtype == BOOLEAN:
        return "TRUE" if value else "FALSE"
    if dtype == STRING:
        return _string(value)
    if dtype == BINARY:
        return f"X'{bytes(value).hex().upper()}'"
    if is_integer(dtype):
        return str(value) if dtype == INT and value > -(2**31) else _cast(str(value), dtype)
    if pa.types.is_floating(dtype):
        return _cast(repr(float(value)), dtype)
    if pa.types.is_decimal(dtype):
        return _cast(format(Decimal(value), "f"), dtype)
    if dtype == DATE and isinstance(value, date):
        return _cast(value.isoformat(), dtype)
    if isinstance(value, datetime):
        moment = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
        zone = "Z" if dtype == TIMESTAMP else ""
        return _cast(moment.isoformat(sep=" ", timespec="microseconds") + zone, dtype)
    raise UnsupportedSqlError(f"a constant {value!r} of type {type_name(dtype)} cannot be written in Spark SQL")


def _cast(text: str, dtype: pa.DataType) -> str:
    return f"CAST('{text}' AS {type_name(dtype)})"


def _string(value: str) -> str:
    return "'" + value.translate(_ESCAPES) + "'"

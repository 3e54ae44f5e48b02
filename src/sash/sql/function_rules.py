"""Typing rules of calls: from bound arguments to a typed call, with Spark's implicit casts (ANSI mode)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from sash.errors import TypeMismatchError
from sash.plan import types
from sash.plan.expressions import Call, Case, Expression, Literal
from sash.plan.sql_types import VARIANT, is_interval
from sash.sql import coercion, intervals
from sash.sql.coercion import coerce, digits_of, implicit, is_decimal, unify

Arguments = Sequence[Expression]
Rule = Callable[[str, Arguments], Expression]


def arithmetic(name: str, arguments: Arguments) -> Expression:
    """Two numbers in their common type; `/` of integers is DOUBLE."""
    left, right = arguments
    dtype = coercion.common_type(left, right)
    if dtype == types.NULL:
        dtype = types.DOUBLE
    if dtype is None or not types.is_numeric(dtype):
        raise TypeMismatchError(
            f"{name} takes two numbers, not {types.type_name(left.dtype)} and {types.type_name(right.dtype)}"
        )
    if is_decimal(dtype):
        return _decimal_arithmetic(name, _to_decimal(left), _to_decimal(right))
    if name == "divide":
        dtype = types.DOUBLE
    operands = (coerce(left, dtype), coerce(right, dtype))
    if name == "int_divide":
        if not types.is_integer(dtype):
            raise TypeMismatchError(f"DIV takes integers or decimals, not {types.type_name(dtype)}; cast the operands")
        return Call(name, (coerce(left, types.BIGINT), coerce(right, types.BIGINT)), types.BIGINT)
    return Call(name, operands, dtype)


def _to_decimal(expression: Expression) -> Expression:
    return coerce(expression, coercion.decimal_for(expression)) if expression.dtype != types.NULL else expression


def _decimal_arithmetic(name: str, left: Expression, right: Expression) -> Expression:
    """Spark's result types of decimal arithmetic (DecimalPrecision)."""
    if left.dtype == types.NULL:
        left = coerce(left, right.dtype)
    if right.dtype == types.NULL:
        right = coerce(right, left.dtype)
    (p1, s1), (p2, s2) = digits_of(left.dtype), digits_of(right.dtype)
    dtype: pa.DataType
    match name:
        case "add" | "subtract":
            scale = max(s1, s2)
            dtype = coercion.adjusted_decimal(max(p1 - s1, p2 - s2) + scale + 1, scale)
        case "multiply":
            dtype = coercion.adjusted_decimal(p1 + p2 + 1, s1 + s2)
        case "divide":
            scale = max(6, s1 + p2 + 1)
            dtype = coercion.adjusted_decimal(p1 - s1 + s2 + scale, scale)
        case "int_divide":
            dtype = types.BIGINT
        case _:
            scale = max(s1, s2)
            dtype = coercion.adjusted_decimal(min(p1 - s1, p2 - s2) + scale, scale)
    return Call(name, (left, right), dtype)


def comparison(name: str, arguments: Arguments) -> Expression:
    """Both sides in their common type."""
    left, right = arguments
    dtype = coercion.common_type(left, right)
    if dtype is None:
        raise TypeMismatchError(
            f"{types.type_name(left.dtype)} and {types.type_name(right.dtype)} cannot be compared; cast one of them"
        )
    if types.holds(dtype, lambda part: part == VARIANT):
        raise TypeMismatchError(f"{types.type_name(dtype)} cannot be compared: cast it, or what you need of it")
    if not types.is_orderable(dtype):
        raise TypeMismatchError(
            f"{types.type_name(dtype)} cannot be compared: compare map_keys and map_values, or entries"
        )
    return Call(name, (coerce(left, dtype), coerce(right, dtype)), types.BOOLEAN)


def logical(name: str, arguments: Arguments) -> Expression:
    """BOOLEAN operands only."""
    for argument in arguments:
        if argument.dtype not in (types.BOOLEAN, types.NULL):
            raise TypeMismatchError(f"{name.upper()} takes BOOLEAN, not {types.type_name(argument.dtype)}")
    return Call(name, tuple(coerce(argument, types.BOOLEAN) for argument in arguments), types.BOOLEAN)


def same_number(name: str, arguments: Arguments) -> Expression:
    """A number or an interval; the result has the same type."""
    if is_interval(arguments[0].dtype):
        return intervals.signed(name, arguments[0])
    number = _number(name, arguments[0])
    return Call(name, (number,), number.dtype)


def _number(name: str, argument: Expression) -> Expression:
    if argument.dtype in (types.NULL, types.STRING):
        return coerce(argument, types.DOUBLE)
    if not types.is_numeric(argument.dtype):
        raise TypeMismatchError(f"{name} takes a number, not {types.type_name(argument.dtype)}")
    return argument


def sign(name: str, arguments: Arguments) -> Expression:
    """SIGN of a number or an interval."""
    if is_interval(arguments[0].dtype):
        return intervals.signed(name, arguments[0])
    return of_types((types.DOUBLE,), types.DOUBLE)(name, arguments)


def to_integer(name: str, arguments: Arguments) -> Expression:
    """CEIL and FLOOR: BIGINT, or a DECIMAL without fraction."""
    number = _number(name, arguments[0])
    if is_decimal(number.dtype):
        precision, scale = digits_of(number.dtype)
        return Call(name, (number,), coercion.bounded_decimal(precision - scale + (scale > 0), 0))
    return Call(name, (coerce(number, types.BIGINT if types.is_integer(number.dtype) else types.DOUBLE),), types.BIGINT)


def rounded(name: str, arguments: Arguments) -> Expression:
    """ROUND to a constant number of digits."""
    number = _number(name, arguments[0])
    digits = arguments[1] if len(arguments) == 2 else Literal(0, types.INT)
    if not isinstance(digits, Literal) or not isinstance(digits.value, int):
        raise TypeMismatchError("the second argument of round must be a whole number")
    dtype = number.dtype
    if is_decimal(dtype):
        precision, scale = digits_of(dtype)
        integer_digits = precision - scale + 1
        if digits.value < 0:
            dtype = coercion.bounded_decimal(max(integer_digits, 1 - digits.value), 0)
        else:
            scale = min(scale, digits.value)
            dtype = coercion.bounded_decimal(integer_digits + scale, scale)
    return Call(name, (number, coerce(digits, types.INT)), dtype)


def merge(name: str, arguments: Arguments) -> Expression:
    """All arguments in their common type, which is the type of the result."""
    operands = unify(arguments, f"the arguments of {name}")
    return Call(name, tuple(operands), operands[0].dtype)


def nullif(name: str, arguments: Arguments) -> Expression:
    """NULLIF has the type of its first argument, whatever the second is."""
    equal = comparison("eq", arguments)
    first = arguments[0]
    if isinstance(equal, Call) and equal.arguments[0] == first:
        return Call(name, equal.arguments, first.dtype)
    return Case(((equal, Literal(None, first.dtype)),), first, first.dtype)


def nvl2(name: str, arguments: Arguments) -> Expression:
    """NVL2 is a CASE."""
    then, otherwise = unify(arguments[1:], "the last arguments of nvl2")
    return Case(((Call("is_not_null", tuple(arguments[:1]), types.BOOLEAN), then),), otherwise, then.dtype)


def of_anything(result: pa.DataType) -> Rule:
    """Arguments of any types."""
    return lambda name, arguments: Call(name, tuple(arguments), result)


def of_types(parameters: tuple[pa.DataType, ...], result: pa.DataType) -> Rule:
    """Arguments of the given types; the last one repeats."""

    def rule(name: str, arguments: Arguments) -> Expression:
        wanted = [parameters[min(i, len(parameters) - 1)] for i in range(len(arguments))]
        cast = (implicit(argument, want, name) for argument, want in zip(arguments, wanted, strict=True))
        return Call(name, tuple(cast), result)

    return rule


def bitmap(name: str, arguments: Arguments) -> Expression:
    """A function of a BINARY, to which nothing is cast."""
    if arguments[0].dtype not in (types.BINARY, types.NULL):
        raise TypeMismatchError(f"{name} takes BINARY, not {types.type_name(arguments[0].dtype)}")
    return Call(name, (coerce(arguments[0], types.BINARY),), types.BIGINT)


def in_list(name: str, arguments: Arguments) -> Expression:
    """IN: `in` if every choice is a literal, otherwise equalities."""
    dtype = arguments[0].dtype
    for choice in arguments[1:]:
        merged = coercion.common_dtype(dtype, choice.dtype)
        if merged is None:
            raise TypeMismatchError(
                f"IN compares {types.type_name(arguments[0].dtype)} with {types.type_name(choice.dtype)}; cast one of them"
            )
        dtype = merged
    value, *choices = (coerce(argument, dtype) for argument in arguments)
    if all(isinstance(choice, Literal) for choice in choices):
        return Call(name, (value, *choices), types.BOOLEAN)
    result: Expression = Call("eq", (value, choices[0]), types.BOOLEAN)
    for choice in choices[1:]:
        result = Call("or", (result, Call("eq", (value, choice), types.BOOLEAN)), types.BOOLEAN)
    return result


def concat(name: str, arguments: Arguments) -> Expression:
    """Strings, or bytes; other types are cast to STRING."""
    kinds = {argument.dtype for argument in arguments}
    if any(map(types.is_array, kinds)):
        operands = unify(arguments, "the arguments of concat")
        return Call("array_concat", tuple(operands), operands[0].dtype)
    if types.BINARY in kinds and kinds <= {types.BINARY, types.NULL}:
        return Call(name, tuple(coerce(argument, types.BINARY) for argument in arguments), types.BINARY)
    return of_types((types.STRING,), types.STRING)(name, arguments)


def reversed_value(name: str, arguments: Arguments) -> Expression:
    """REVERSE of a string, or of an array."""
    if types.is_array(arguments[0].dtype):
        return Call("array_reverse", tuple(arguments), arguments[0].dtype)
    return of_types((types.STRING,), types.STRING)(name, arguments)


def bitwise(name: str, arguments: Arguments) -> Expression:
    """Integers in their common type."""
    operands = unify(arguments, f"the operands of {name}")
    if not types.is_integer(operands[0].dtype):
        raise TypeMismatchError(f"{name} takes integers, not {types.type_name(operands[0].dtype)}")
    return Call(name, tuple(operands), operands[0].dtype)


def _moment(name: str, argument: Expression) -> Expression:
    """A DATE or TIMESTAMP; anything else is cast to TIMESTAMP."""
    return argument if pa.types.is_temporal(argument.dtype) else implicit(argument, types.TIMESTAMP, name)


def unix_time(name: str, arguments: Arguments) -> Expression:
    """A DATE or TIMESTAMP as a BIGINT."""
    return Call(name, (coerce(_moment(name, arguments[0]), types.TIMESTAMP),), types.BIGINT)


_TRUNCATIONS = (
    *("year", "yyyy", "yy", "quarter", "month", "mon", "mm", "week", "day", "dd"),
    *("hour", "minute", "second", "millisecond", "microsecond"),
)
_CANONICAL_UNIT = {"yyyy": "year", "yy": "year", "mon": "month", "mm": "month", "dd": "day"}


def date_trunc(name: str, arguments: Arguments) -> Expression:
    """The unit is a constant, normalized to its full name."""
    unit = arguments[0]
    if not isinstance(unit, Literal) or str(unit.value).lower() not in _TRUNCATIONS:
        raise TypeMismatchError(f"the first argument of date_trunc must be one of {', '.join(map(repr, _TRUNCATIONS))}")
    word = str(unit.value).lower()
    moment = coerce(_moment(name, arguments[1]), types.TIMESTAMP)
    return Call(name, (Literal(_CANONICAL_UNIT.get(word, word), types.STRING), moment), types.TIMESTAMP)


def add_months(name: str, arguments: Arguments) -> Expression:
    """A DATE some months later."""
    months = implicit(arguments[1], types.INT, name)
    return Call(name, (implicit(arguments[0], types.DATE, name), months), types.DATE)


def seconds(name: str, arguments: Arguments) -> Expression:
    """TIMESTAMP_SECONDS takes a number of any type."""
    return Call(name, (_number(name, arguments[0]),), types.TIMESTAMP)


def digest(parameters: tuple[pa.DataType, ...], result: pa.DataType) -> Rule:
    """A first argument of bytes: STRING or BINARY."""

    def rule(name: str, arguments: Arguments) -> Expression:
        data, *rest = arguments
        if data.dtype != types.BINARY:
            data = implicit(data, types.STRING, name)
        rest = [implicit(argument, want, name) for argument, want in zip(rest, parameters, strict=True)]
        return Call(name, (data, *rest), result)

    return rule


def hexadecimal(name: str, arguments: Arguments) -> Expression:
    """HEX of a BIGINT, or of bytes."""
    if types.is_numeric(arguments[0].dtype):
        return Call(name, (coerce(arguments[0], types.BIGINT),), types.STRING)
    return digest((), types.STRING)(name, arguments)

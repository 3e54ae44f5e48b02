"""Functions of arrays."""

from __future__ import annotations

import pyarrow as pa

from sash.errors import TypeMismatchError
from sash.plan import types
from sash.plan.expressions import Call, Expression, Literal
from sash.plan.types import BIGINT, BOOLEAN, INT, STRING
from sash.sql.coercion import coerce, implicit, tightest, unify
from sash.sql.function_rules import Arguments, Rule
from sash.sql.signatures.base import Signature


def _array(name: str, argument: Expression) -> Expression:
    if not types.is_array(argument.dtype):
        raise TypeMismatchError(f"{name} takes an ARRAY, not {types.type_name(argument.dtype)}")
    return argument


def _ordered(name: str, argument: Expression) -> Expression:
    """An array whose elements can be compared."""
    if not types.is_orderable(_array(name, argument).dtype):
        raise TypeMismatchError(
            f"{name} compares elements, and those of {types.type_name(argument.dtype)} have no order"
        )
    return argument


def _with_value(name: str, array: Expression, value: Expression) -> tuple[Expression, Expression]:
    """An array and a value in the type of both."""
    merged = tightest(array.dtype.value_type, value.dtype)
    if merged is None:
        raise TypeMismatchError(
            f"{name} takes elements of {types.type_name(array.dtype.value_type)}, not {types.type_name(value.dtype)}; cast it"
        )
    return coerce(array, types.array_of(merged)), coerce(value, merged)


def _reordered(name: str, arguments: Arguments) -> Expression:
    """A function of an array whose elements are compared."""
    array = _ordered(name, arguments[0])
    return Call(name, (array,), array.dtype)


def _compact(name: str, arguments: Arguments) -> Expression:
    array = _array(name, arguments[0])
    return Call(name, (array,), array.dtype)


def _extreme(name: str, arguments: Arguments) -> Expression:
    array = _ordered(name, arguments[0])
    return Call(name, (array,), array.dtype.value_type)


def _searched(result: pa.DataType | None = None) -> Rule:
    """A function that looks for a value in an array."""

    def rule(name: str, arguments: Arguments) -> Expression:
        array, value = _with_value(name, _ordered(name, arguments[0]), arguments[1])
        return Call(name, (array, value), array.dtype if result is None else result)

    return rule


def _extended(name: str, arguments: Arguments) -> Expression:
    array, value = _with_value(name, _array(name, arguments[0]), arguments[1])
    return Call(name, (array, value), array.dtype)


def _inserted(name: str, arguments: Arguments) -> Expression:
    array, position, value = arguments
    if not types.is_integer(position.dtype):
        raise TypeMismatchError(f"{name} takes a whole number as position, not {types.type_name(position.dtype)}")
    array, value = _with_value(name, _array(name, array), value)
    return Call(name, (array, implicit(position, INT, name), value), array.dtype)


def _sets(result: pa.DataType | None = None) -> Rule:
    """A function of two arrays whose elements are compared."""

    def rule(name: str, arguments: Arguments) -> Expression:
        left, right = (_ordered(name, argument) for argument in arguments)
        merged = tightest(left.dtype, right.dtype)
        if merged is None:
            raise TypeMismatchError(
                f"{name} takes two arrays of one type, not {types.type_name(left.dtype)} and {types.type_name(right.dtype)}; "
                "cast one of them"
            )
        return Call(name, (coerce(left, merged), coerce(right, merged)), merged if result is None else result)

    return rule


def _join(name: str, arguments: Arguments) -> Expression:
    array, *texts = arguments
    if types.is_nested(_array(name, array).dtype.value_type):
        raise TypeMismatchError(f"{name} takes an ARRAY<STRING>, not {types.type_name(array.dtype)}")
    made = coerce(array, types.array_of(STRING))
    return Call(name, (made, *(implicit(text, STRING, name) for text in texts)), STRING)


def _repeat(name: str, arguments: Arguments) -> Expression:
    value, count = arguments
    return Call(name, (value, implicit(count, INT, name)), types.array_of(value.dtype))


def _slice(name: str, arguments: Arguments) -> Expression:
    array = _array(name, arguments[0])
    return Call(name, (array, *(implicit(argument, INT, name) for argument in arguments[1:])), array.dtype)


def _sort(name: str, arguments: Arguments) -> Expression:
    array = _ordered(name, arguments[0])
    if any(not isinstance(argument, Literal) for argument in arguments[1:]):
        raise TypeMismatchError(f"the second argument of {name} is TRUE or FALSE, the same for all rows")
    return Call(name, (array, *(implicit(argument, BOOLEAN, name) for argument in arguments[1:])), array.dtype)


def _flatten(name: str, arguments: Arguments) -> Expression:
    (array,) = arguments
    if not types.is_array(array.dtype) or not types.is_array(array.dtype.value_type):
        raise TypeMismatchError(f"{name} takes an array of arrays, not {types.type_name(array.dtype)}")
    return Call(name, (array,), array.dtype.value_type)


def _sequence(name: str, arguments: Arguments) -> Expression:
    operands = unify(arguments, f"the arguments of {name}")
    dtype = operands[0].dtype
    if dtype in (types.DATE, types.TIMESTAMP, types.TIMESTAMP_NTZ) and len(arguments) == 2:
        return moments(operands, None)
    if not types.is_integer(dtype):
        raise TypeMismatchError(
            f"{name} takes integers, or dates or timestamps and an interval, not {types.type_name(dtype)}"
        )
    return Call(name, tuple(operands), types.array_of(dtype))


def moments(bounds: Arguments, step: tuple[int, int, int] | None) -> Expression:
    """SEQUENCE of dates or timestamps by months, days and microseconds; by default it is a day, forwards or backwards."""
    start, stop = unify(bounds, "the arguments of sequence")
    if not pa.types.is_temporal(start.dtype):
        raise TypeMismatchError(
            f"sequence by an interval takes dates or timestamps, not {types.type_name(start.dtype)}"
        )
    parts = tuple(Literal(part, BIGINT) for part in step or ())
    return Call("sequence_by", (start, stop, *parts), types.array_of(start.dtype))


SIGNATURES: dict[str, Signature] = {
    "array_join": Signature(2, 3, _join),
    **{name: Signature(1, 1, _reordered) for name in ("array_distinct", "array_sort")},
    "array_compact": Signature(1, 1, _compact),
    **{name: Signature(1, 1, _extreme) for name in ("array_max", "array_min")},
    "array_position": Signature(2, 2, _searched(BIGINT)),
    "array_remove": Signature(2, 2, _searched()),
    **{name: Signature(2, 2, _extended) for name in ("array_append", "array_prepend")},
    "array_insert": Signature(3, 3, _inserted),
    "array_repeat": Signature(2, 2, _repeat),
    "slice": Signature(3, 3, _slice),
    "sort_array": Signature(1, 2, _sort),
    "flatten": Signature(1, 1, _flatten),
    **{name: Signature(2, 2, _sets()) for name in ("array_union", "array_intersect", "array_except")},
    "arrays_overlap": Signature(2, 2, _sets(BOOLEAN)),
    "sequence": Signature(2, 3, _sequence),
}

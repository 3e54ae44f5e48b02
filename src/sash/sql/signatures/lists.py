"""Functions of arrays."""

from __future__ import annotations

import pyarrow as pa

from sash.errors import TypeMismatchError
from sash.plan import types
from sash.plan.expressions import Call, Expression
from sash.plan.types import BIGINT, BOOLEAN, INT, STRING
from sash.sql.coercion import coerce, common_dtype, implicit, unify
from sash.sql.function_rules import Arguments, Rule
from sash.sql.signatures.base import OnlySparkError, Signature


def _compared(dtype: pa.DataType) -> bool:
    """Whether Sash compares elements of this type in arrays: not those with NaN, zones or parts."""
    plain = types.is_integer(dtype) or pa.types.is_decimal(dtype)
    return plain or dtype in (types.STRING, types.BOOLEAN, types.BINARY, types.DATE)


def _array(name: str, argument: Expression) -> Expression:
    if not pa.types.is_list(argument.dtype):
        raise TypeMismatchError(f"{name} takes an ARRAY, not {types.type_name(argument.dtype)}")
    if not _compared(argument.dtype.value_type):
        raise OnlySparkError(f"Sash does not run {name} of {types.type_name(argument.dtype)}")
    return argument


def _element(name: str, array: Expression, argument: Expression) -> Expression:
    wanted = array.dtype.value_type
    if common_dtype(wanted, argument.dtype) != wanted:
        raise TypeMismatchError(
            f"{name} takes elements of {types.type_name(wanted)}, not {types.type_name(argument.dtype)}; cast it"
        )
    return coerce(argument, wanted)


def _of_array(result: pa.DataType | None = None) -> Rule:
    """A function of an array alone; by default its result is an array of the same type."""

    def rule(name: str, arguments: Arguments) -> Expression:
        array = _array(name, arguments[0])
        return Call(name, (array,), array.dtype if result is None else result)

    return rule


def _to_element(name: str, arguments: Arguments) -> Expression:
    array = _array(name, arguments[0])
    return Call(name, (array,), array.dtype.value_type)


def _with_element(result: pa.DataType | None = None) -> Rule:
    def rule(name: str, arguments: Arguments) -> Expression:
        array = _array(name, arguments[0])
        return Call(name, (array, _element(name, array, arguments[1])), array.dtype if result is None else result)

    return rule


def _two_arrays(result: pa.DataType | None = None) -> Rule:
    def rule(name: str, arguments: Arguments) -> Expression:
        left, right = (_array(name, argument) for argument in arguments)
        if left.dtype != right.dtype:
            raise TypeMismatchError(
                f"{name} takes two arrays of one type, not {types.type_name(left.dtype)} and {types.type_name(right.dtype)}; "
                "cast one of them"
            )
        return Call(name, (left, right), left.dtype if result is None else result)

    return rule


def _join(name: str, arguments: Arguments) -> Expression:
    array, *texts = arguments
    if _array(name, array).dtype.value_type != STRING:
        raise TypeMismatchError(f"{name} takes an ARRAY<STRING>, not {types.type_name(array.dtype)}; cast it")
    return Call(name, (array, *(implicit(text, STRING, name) for text in texts)), STRING)


def _repeat(name: str, arguments: Arguments) -> Expression:
    value, count = arguments
    if not _compared(value.dtype):
        raise TypeMismatchError(f"Sash does not run {name} of {types.type_name(value.dtype)}")
    return Call(name, (value, implicit(count, INT, name)), types.array_of(value.dtype))


def _slice(name: str, arguments: Arguments) -> Expression:
    array = _array(name, arguments[0])
    return Call(name, (array, *(implicit(argument, INT, name) for argument in arguments[1:])), array.dtype)


def _sort(name: str, arguments: Arguments) -> Expression:
    array = _array(name, arguments[0])
    return Call(name, (array, *(implicit(argument, BOOLEAN, name) for argument in arguments[1:])), array.dtype)


def _flatten(name: str, arguments: Arguments) -> Expression:
    (array,) = arguments
    if not pa.types.is_list(array.dtype) or not pa.types.is_list(array.dtype.value_type):
        raise TypeMismatchError(f"{name} takes an array of arrays, not {types.type_name(array.dtype)}")
    if not _compared(array.dtype.value_type.value_type):
        raise TypeMismatchError(f"Sash does not run {name} of {types.type_name(array.dtype)}")
    return Call(name, (array,), array.dtype.value_type)


def _sequence(name: str, arguments: Arguments) -> Expression:
    operands = unify(arguments, f"the arguments of {name}")
    if not types.is_integer(operands[0].dtype):
        raise TypeMismatchError(f"Sash runs {name} of integers, not of {types.type_name(operands[0].dtype)}")
    return Call(name, tuple(operands), types.array_of(operands[0].dtype))


SIGNATURES: dict[str, Signature] = {
    "array_join": Signature(2, 3, _join),
    **{name: Signature(1, 1, _of_array()) for name in ("array_distinct", "array_compact", "array_sort")},
    **{name: Signature(1, 1, _to_element) for name in ("array_max", "array_min")},
    "array_position": Signature(2, 2, _with_element(BIGINT)),
    **{name: Signature(2, 2, _with_element()) for name in ("array_remove", "array_append", "array_prepend")},
    "array_repeat": Signature(2, 2, _repeat),
    "slice": Signature(3, 3, _slice),
    "sort_array": Signature(1, 2, _sort),
    "flatten": Signature(1, 1, _flatten),
    **{name: Signature(2, 2, _two_arrays()) for name in ("array_union", "array_intersect", "array_except")},
    "arrays_overlap": Signature(2, 2, _two_arrays(BOOLEAN)),
    "sequence": Signature(2, 3, _sequence),
}

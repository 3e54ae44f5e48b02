"""Functions of numbers: mathematics, bits, hashes and arithmetic that does not fail."""

from __future__ import annotations

import math

import pyarrow as pa

from sash.errors import TypeMismatchError
from sash.plan import types
from sash.plan.expressions import Call, Expression, Literal
from sash.plan.types import BIGINT, BOOLEAN, DOUBLE, INT, STRING, TINYINT
from sash.sql.coercion import coerce, implicit, is_decimal
from sash.sql.function_rules import Arguments, Rule, arithmetic, of_types, rounded, to_integer
from sash.sql.signatures.base import Signature

_DECIMALS = {
    types.TINYINT: pa.decimal128(3, 0),
    types.SMALLINT: pa.decimal128(5, 0),
    types.INT: pa.decimal128(10, 0),
    types.BIGINT: pa.decimal128(20, 0),
    types.FLOAT: pa.decimal128(14, 7),
    types.DOUBLE: pa.decimal128(30, 15),
}
_TRY = {
    "try_add": "add",
    "try_subtract": "subtract",
    "try_multiply": "multiply",
    "try_divide": "divide",
    "try_mod": "modulo",
}
_DOUBLES = (
    *("sin", "cos", "tan", "sinh", "cosh", "tanh", "asin", "acos", "atan", "asinh", "acosh", "atanh", "cot", "csc", "sec"),
    *("cbrt", "expm1", "log1p", "degrees", "radians", "rint"),
)  # fmt: skip


def _constant(value: float) -> Rule:
    return lambda _, __: Literal(value, DOUBLE)


def _integer(name: str, argument: Expression) -> Expression:
    if argument.dtype in (types.NULL, types.STRING):
        return coerce(argument, BIGINT if argument.dtype == STRING else INT)
    if not types.is_integer(argument.dtype):
        raise TypeMismatchError(f"{name} takes an integer, not {types.type_name(argument.dtype)}")
    return argument


def _bit_not(name: str, arguments: Arguments) -> Expression:
    number = _integer("~", arguments[0])
    return Call(name, (number,), number.dtype)


def _shift(name: str, arguments: Arguments) -> Expression:
    """Shifts of an INT or a BIGINT."""
    number = arguments[0]
    wanted = BIGINT if number.dtype == BIGINT else INT
    return Call(name, (implicit(number, wanted, name), implicit(arguments[1], INT, name)), wanted)


def _bit_count(name: str, arguments: Arguments) -> Expression:
    (number,) = arguments
    return Call(name, (number if number.dtype == BOOLEAN else _integer(name, number),), INT)


def _bit_get(name: str, arguments: Arguments) -> Expression:
    return Call("bit_get", (_integer(name, arguments[0]), implicit(arguments[1], INT, name)), TINYINT)


def _hashed(result: pa.DataType) -> Rule:
    """Arguments of any types without maps, whose entries have no order."""

    def rule(name: str, arguments: Arguments) -> Expression:
        for argument in arguments:
            if _has_map(argument.dtype):
                found = types.type_name(argument.dtype)
                raise TypeMismatchError(f"{name} does not take {found}: hash array_sort(map_entries(...)) instead")
        return Call(name, tuple(arguments), result)

    return rule


def _has_map(dtype: pa.DataType) -> bool:
    return types.is_map(dtype) or any(map(_has_map, types.parts_of(dtype)))


def _attempt(name: str, arguments: Arguments) -> Expression:
    """The types of the arithmetic that it attempts."""
    typed = arithmetic(_TRY[name], arguments)
    assert isinstance(typed, Call)
    return Call(name, typed.arguments, typed.dtype)


def _toward(name: str, arguments: Arguments) -> Expression:
    """CEIL and FLOOR, also to a number of digits, which makes the result a DECIMAL."""
    if len(arguments) == 1:
        return to_integer(name, arguments)
    number = arguments[0]
    if not is_decimal(number.dtype):
        number = implicit(number, _DECIMALS.get(number.dtype, pa.decimal128(38, 18)), name)
    typed = rounded(name, [number, arguments[1]])
    assert isinstance(typed, Call)
    return Call(f"{name}_to", typed.arguments, typed.dtype)


def _logarithm(name: str, arguments: Arguments) -> Expression:
    """LOG(x), or LOG(base, x)."""
    return of_types((DOUBLE,), DOUBLE)("ln" if len(arguments) == 1 else "log", arguments)


def _int_divide(name: str, arguments: Arguments) -> Expression:
    return arithmetic("int_divide", arguments)


SIGNATURES: dict[str, Signature] = {
    "e": Signature(0, 0, _constant(math.e)),
    "pi": Signature(0, 0, _constant(math.pi)),
    **{name: Signature(1, 1, of_types((DOUBLE,), DOUBLE)) for name in _DOUBLES},
    **{name: Signature(2, 2, of_types((DOUBLE,), DOUBLE)) for name in ("atan2", "hypot")},
    "log": Signature(1, 2, _logarithm),
    **{name: Signature(1, 2, _toward) for name in ("ceil", "floor")},
    "bround": Signature(1, 2, rounded),
    "width_bucket": Signature(4, 4, of_types((DOUBLE, DOUBLE, DOUBLE, BIGINT), BIGINT)),
    "factorial": Signature(1, 1, of_types((INT,), BIGINT)),
    "conv": Signature(3, 3, of_types((STRING, INT), STRING)),
    "bit_not": Signature(1, 1, _bit_not),
    **{name: Signature(2, 2, _shift) for name in ("shiftleft", "shiftright", "shiftrightunsigned")},
    "bit_count": Signature(1, 1, _bit_count),
    "bit_get": Signature(2, 2, _bit_get),
    **{name: Signature(2, 2, _attempt) for name in _TRY},
    "hash": Signature(1, None, _hashed(INT)),
    "xxhash64": Signature(1, None, _hashed(BIGINT)),
    "div": Signature(2, 2, _int_divide),
}
ALIASES = {"getbit": "bit_get"}

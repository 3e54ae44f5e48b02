"""Functions that choose among their arguments or test them; most are written with CASE and comparisons."""

from __future__ import annotations

import pyarrow as pa

from sash.errors import TypeMismatchError
from sash.plan import types
from sash.plan.expressions import Call, Case, Cast, Expression, Literal
from sash.sql.coercion import castable, coerce, implicit, unify
from sash.sql.function_rules import Arguments, Rule, comparison, logical, merge, nullif, of_types
from sash.sql.signatures.base import Signature

_CASTS: dict[str, pa.DataType] = {
    **{types.type_name(dtype).lower(): dtype for dtype in (types.TINYINT, types.SMALLINT, types.INT, types.BIGINT)},
    **{types.type_name(dtype).lower(): dtype for dtype in (types.FLOAT, types.DOUBLE, types.BOOLEAN, types.STRING)},
    **{types.type_name(dtype).lower(): dtype for dtype in (types.BINARY, types.DATE, types.TIMESTAMP)},
    "decimal": pa.decimal128(10, 0),
}


def _as_cast(name: str, arguments: Arguments) -> Expression:
    """INT(x) is CAST(x AS INT)."""
    (argument,), dtype = arguments, _CASTS[name]
    if not castable(argument.dtype, dtype):
        raise TypeMismatchError(f"{types.type_name(argument.dtype)} cannot be cast to {types.type_name(dtype)}")
    return argument if argument.dtype == dtype else Cast(argument, dtype)


def _zero_if_null(name: str, arguments: Arguments) -> Expression:
    return merge("coalesce", [*arguments, Literal(0, types.INT)])


def _null_if_zero(name: str, arguments: Arguments) -> Expression:
    return nullif("nullif", [*arguments, Literal(0, types.INT)])


def _same(name: str, arguments: Arguments) -> Expression:
    """POSITIVE(x) is x, a number."""
    (argument,) = arguments
    if argument.dtype in (types.STRING, types.NULL):
        return coerce(argument, types.DOUBLE)
    if not types.is_numeric(argument.dtype):
        raise TypeMismatchError(f"{name} takes a number, not {types.type_name(argument.dtype)}")
    return argument


def _renamed(canonical: str, rule: Rule) -> Rule:
    return lambda _, arguments: rule(canonical, arguments)


def _between(name: str, arguments: Arguments) -> Expression:
    value, low, high = arguments
    return logical("and", [comparison("ge", [value, low]), comparison("le", [value, high])])


def _nanvl(name: str, arguments: Arguments) -> Expression:
    """The first argument, or the second if the first is NaN."""
    values = list(arguments)
    if any(not pa.types.is_floating(value.dtype) for value in values):
        values = [implicit(value, types.DOUBLE, name) for value in values]
    left, right = unify(values, "the arguments of nanvl")
    return Case(((Call("is_nan", (left,), types.BOOLEAN), right),), left, left.dtype)


def decode(name: str, arguments: Arguments) -> Expression:
    """DECODE(bytes, charset), or a CASE in which NULL equals NULL."""
    if len(arguments) == 2:
        data, charset = arguments
        data = data if data.dtype == types.BINARY else implicit(data, types.STRING, name)
        return Call(name, (data, implicit(charset, types.STRING, name)), types.STRING)
    subject, *rest = arguments
    searches, results = rest[0 : len(rest) // 2 * 2 : 2], rest[1::2]
    otherwise = [rest[-1]] if len(rest) % 2 else []
    unified = unify([*results, *otherwise], "the results of decode")
    branches = tuple(
        (comparison("eq_null_safe", [subject, search]), result)
        for search, result in zip(searches, unified, strict=False)
    )
    return Case(branches, unified[-1] if otherwise else None, unified[0].dtype)


def _type_of(name: str, arguments: Arguments) -> Expression:
    return Literal(types.type_name(arguments[0].dtype).lower(), types.STRING)


SIGNATURES: dict[str, Signature] = {
    **{name: Signature(1, 1, _as_cast) for name in _CASTS},
    "zeroifnull": Signature(1, 1, _zero_if_null),
    "nullifzero": Signature(1, 1, _null_if_zero),
    "positive": Signature(1, 1, _same),
    "equal_null": Signature(2, 2, _renamed("eq_null_safe", comparison)),
    "between": Signature(3, 3, _between),
    "nanvl": Signature(2, 2, _nanvl),
    "decode": Signature(2, None, decode),
    "typeof": Signature(1, 1, _type_of),
    "luhn_check": Signature(1, 1, of_types((types.STRING,), types.BOOLEAN)),
}

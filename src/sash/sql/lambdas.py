"""Binds calls of higher-order functions: functions with lambdas such as `x -> x + 1` among their arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from sash.errors import TypeMismatchError
from sash.plan import types
from sash.plan.expressions import Call, Expression, Lambda, Variable
from sash.plan.types import BOOLEAN, INT, NULL, is_array, is_map, type_name
from sash.sql.coercion import coerce, common_dtype
from sash.sql.signatures.base import OnlySparkError

if TYPE_CHECKING:
    from sash.sql.expressions import ExpressionBinder

_Rule = Callable[["ExpressionBinder", str, list[exp.Expr]], Expression]


def bind_higher_order(binder: ExpressionBinder, name: str, arguments: list[exp.Expr]) -> Expression:
    """The call of a higher-order function; OnlySparkError if Sash does not have it, or not with such lambdas."""
    rule = _RULES.get(name)
    if rule is None:
        raise OnlySparkError(f"Sash does not run {name} with a lambda")
    return rule(binder, name, arguments)


def _function(
    binder: ExpressionBinder, name: str, node: exp.Expr, parameters: Sequence[pa.DataType], optional: int = 0
) -> Lambda:
    """The lambda over variables of these types, of which the last ones are optional."""
    if not isinstance(node, exp.Lambda):
        raise TypeMismatchError(f"{name} takes a lambda such as x -> x + 1, not {node.sql(dialect='spark')}")
    names = [part.name for part in node.expressions]
    most = len(parameters)
    if not most - optional <= len(names) <= most:
        wants = f"{most - optional} or {most}" if optional else str(most)
        raise TypeMismatchError(
            f"the lambda of {name} has {wants} variable{'' if wants == '1' else 's'}, not {len(names)}"
        )
    if len({each.lower() for each in names}) < len(names):
        raise TypeMismatchError(f"the variables of a lambda have different names, not {', '.join(names)}")
    first = 1 + max((variable.number for variable in binder.variables.values()), default=-1)
    made = tuple(
        Variable(first + place, each, dtype) for place, (each, dtype) in enumerate(zip(names, parameters, strict=False))
    )
    inner = replace(
        binder,
        variables={**binder.variables, **{variable.name.lower(): variable for variable in made}},
        clause="a lambda",
        subqueries=None,
        windows=None,
    )
    return Lambda(made, inner.bind(node.this))


def _predicate(
    binder: ExpressionBinder, name: str, node: exp.Expr, parameters: Sequence[pa.DataType], optional: int = 0
) -> Lambda:
    """A lambda that returns a BOOLEAN."""
    made = _function(binder, name, node, parameters, optional)
    if made.dtype not in (BOOLEAN, NULL):
        raise TypeMismatchError(f"the lambda of {name} returns a BOOLEAN, not {type_name(made.dtype)}")
    return Lambda(made.variables, coerce(made.body, BOOLEAN))


def _count(name: str, arguments: list[exp.Expr], *counts: int) -> None:
    if len(arguments) not in counts:
        wants = " or ".join(map(str, counts))
        raise TypeMismatchError(f"{name} takes {wants} arguments, not {len(arguments)}")


def _array(binder: ExpressionBinder, name: str, node: exp.Expr) -> tuple[Expression, pa.DataType]:
    """An array, and the type of its elements."""
    array = binder.bind(node)
    if not is_array(array.dtype):
        raise TypeMismatchError(f"{name} takes an ARRAY, not {type_name(array.dtype)}")
    return array, array.dtype.value_type


def _map(binder: ExpressionBinder, name: str, node: exp.Expr) -> tuple[Expression, pa.DataType, pa.DataType]:
    """A map, and the types of its keys and values."""
    value = binder.bind(node)
    if not is_map(value.dtype):
        raise TypeMismatchError(f"{name} takes a MAP, not {type_name(value.dtype)}")
    return value, value.dtype.key_type, value.dtype.item_type


def _transform(binder: ExpressionBinder, name: str, arguments: list[exp.Expr]) -> Expression:
    _count(name, arguments, 2)
    array, element = _array(binder, name, arguments[0])
    made = _function(binder, name, arguments[1], (element, INT), optional=1)
    return Call(name, (array, made), types.array_of(made.dtype))


def _filter(binder: ExpressionBinder, name: str, arguments: list[exp.Expr]) -> Expression:
    _count(name, arguments, 2)
    array, element = _array(binder, name, arguments[0])
    return Call(name, (array, _predicate(binder, name, arguments[1], (element, INT), optional=1)), array.dtype)


def _quantified(binder: ExpressionBinder, name: str, arguments: list[exp.Expr]) -> Expression:
    """EXISTS and FORALL."""
    _count(name, arguments, 2)
    array, element = _array(binder, name, arguments[0])
    return Call(name, (array, _predicate(binder, name, arguments[1], (element,))), BOOLEAN)


def _aggregate(binder: ExpressionBinder, name: str, arguments: list[exp.Expr]) -> Expression:
    """AGGREGATE(array, start, (result, element) -> ..., result -> ...), also called REDUCE."""
    _count(name, arguments, 3, 4)
    array, element = _array(binder, name, arguments[0])
    start = binder.bind(arguments[1])
    merge = _function(binder, name, arguments[2], (start.dtype, element))
    if merge.dtype != start.dtype:
        if merge.dtype != NULL:
            raise TypeMismatchError(
                f"the lambda of {name} returns {type_name(merge.dtype)}, and the start is {type_name(start.dtype)}: cast one "
                "of them"
            )
        merge = Lambda(merge.variables, coerce(merge.body, start.dtype))
    given: tuple[Expression, ...] = (array, start, merge)
    if len(arguments) == 4:
        given = (*given, _function(binder, name, arguments[3], (start.dtype,)))
    return Call("aggregate", given, given[-1].dtype)


def _zip_with(binder: ExpressionBinder, name: str, arguments: list[exp.Expr]) -> Expression:
    _count(name, arguments, 3)
    (left, one), (right, two) = (_array(binder, name, argument) for argument in arguments[:2])
    made = _function(binder, name, arguments[2], (one, two))
    return Call(name, (left, right, made), types.array_of(made.dtype))


def _array_sort(binder: ExpressionBinder, name: str, arguments: list[exp.Expr]) -> Expression:
    _count(name, arguments, 2)
    array, element = _array(binder, name, arguments[0])
    made = _function(binder, name, arguments[1], (element, element))
    if made.dtype != INT:
        raise TypeMismatchError(
            f"the lambda of {name} returns an INT (below, equal to or above 0), not {type_name(made.dtype)}"
        )
    return Call(name, (array, made), array.dtype)


def _map_filter(binder: ExpressionBinder, name: str, arguments: list[exp.Expr]) -> Expression:
    _count(name, arguments, 2)
    value, *entry = _map(binder, name, arguments[0])
    return Call(name, (value, _predicate(binder, name, arguments[1], entry)), value.dtype)


def _transform_entries(binder: ExpressionBinder, name: str, arguments: list[exp.Expr]) -> Expression:
    """TRANSFORM_KEYS and TRANSFORM_VALUES."""
    _count(name, arguments, 2)
    value, key, item = _map(binder, name, arguments[0])
    made = _function(binder, name, arguments[1], (key, item))
    if name == "transform_values":
        return Call(name, (value, made), types.map_of(key, made.dtype))
    if types.holds(made.dtype, is_map) or made.dtype == NULL:
        raise TypeMismatchError(f"the keys of a map cannot be {type_name(made.dtype)}")
    return Call(name, (value, made), types.map_of(made.dtype, item))


def _map_zip_with(binder: ExpressionBinder, name: str, arguments: list[exp.Expr]) -> Expression:
    _count(name, arguments, 3)
    (left, one, first), (right, two, second) = (_map(binder, name, argument) for argument in arguments[:2])
    key = common_dtype(one, two)
    if key is None or (types.STRING in (one, two) and one != two):
        raise TypeMismatchError(f"{name} takes maps with keys of one type, not {type_name(one)} and {type_name(two)}")
    left, right = coerce(left, types.map_of(key, first)), coerce(right, types.map_of(key, second))
    made = _function(binder, name, arguments[2], (key, first, second))
    return Call(name, (left, right, made), types.map_of(key, made.dtype))


_RULES: dict[str, _Rule] = {
    "transform": _transform,
    "filter": _filter,
    "exists": _quantified,
    "forall": _quantified,
    "aggregate": _aggregate,
    "reduce": _aggregate,
    "zip_with": _zip_with,
    "array_sort": _array_sort,
    "map_filter": _map_filter,
    "transform_keys": _transform_entries,
    "transform_values": _transform_entries,
    "map_zip_with": _map_zip_with,
}

NAMES = frozenset(_RULES)
"""The functions that take lambdas."""

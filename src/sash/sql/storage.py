"""The plan of a query without types that only SQL has: every column and value gets the type of its storage.

A cast from or to an interval becomes a call. A function that is not known to mean the same of stored values is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

import pyarrow as pa

from sash.errors import UnsupportedSqlError
from sash.plan.compound import Compound, fold
from sash.plan.expressions import (
    ONLY_SASH,
    Call,
    Case,
    Cast,
    Column,
    Expression,
    Literal,
    SparkFunction,
    UserCall,
    Variable,
)
from sash.plan.nodes import Node
from sash.plan.sql_types import VARIANT, DayTimeInterval, YearMonthInterval, is_interval
from sash.plan.statistics import Statistics
from sash.plan.types import BIGINT, INT, STRING, Field, holds, is_integer, is_sql_type, storage, type_name
from sash.time import DAY, HOUR, MINUTE, SECOND

_UNITS = (DAY, HOUR, MINUTE, SECOND)
_GENERIC = frozenset(
    {
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
        "eq_null_safe",
        "in",
        "nullif",
        "greatest",
        "least",
        "coalesce",
        "single_value",
    }
    | {"is_null", "is_not_null", "array", "struct", "map", "get_field", "get_item", "get", "element_at"}
    | {"try_element_at", "array_contains", "size", "map_keys", "map_values", "map_entries", "map_from_arrays"}
    | ONLY_SASH
    | {"map_from_entries", "map_contains_key", "stored", "typed", "hash", "xxhash64"}
    | {
        "transform",
        "filter",
        "exists",
        "forall",
        "array_distinct",
        "array_max",
        "array_min",
        "array_sort",
        "sort_array",
    }
    | {"array_position", "array_remove", "array_union", "array_intersect", "array_except", "arrays_overlap", "slice"}
    | {"array_append", "array_prepend", "array_compact", "array_repeat", "flatten"}
)
"""Functions that mean the same of stored values."""


def to_storage(plan: Node) -> Node:
    """The plan over stored values; the same object if it has no types that only SQL has."""
    return _Storage({}).node(plan)


class _Storage:
    """Rewrites the nodes of one plan, each once."""

    def __init__(self, done: dict[int, tuple[Node, Node]]) -> None:
        self._done = done

    def node(self, node: Node) -> Node:
        if id(node) not in self._done:
            self._done[id(node)] = node, self._parts(node)
        return self._done[id(node)][1]

    def _parts(self, value: Any) -> Any:
        """A dataclass with its parts rewritten."""
        changed = {}
        for part in fields(value):
            if part.init:
                old = getattr(value, part.name)
                new = self._value(old)
                if new is not old:
                    changed[part.name] = new
        return replace(value, **changed) if changed else value

    def _value(self, value: Any) -> Any:
        match value:
            case None | str() | int() | float() | bytes() | Statistics():
                return value
            case pa.DataType():
                return _type(value)
            case Column() | Literal() | Call() | Cast() | Case() | SparkFunction():
                return stored_expression(value)
            case tuple():
                made = tuple(map(self._value, value))
                return made if any(new is not old for new, old in zip(made, value, strict=True)) else value
            case Field():
                return self._parts(value)
            case _ if hasattr(value, "children") and hasattr(value, "schema"):
                return self.node(value)
            case _ if is_dataclass(value):
                return self._parts(value)
            case _:
                return value


def _type(dtype: pa.DataType) -> pa.DataType:
    return storage(dtype) if holds(dtype, is_sql_type) else dtype


def stored_expression(expression: Expression) -> Expression:
    """The expression over stored values."""
    return fold(expression, _stored)


def _stored(part: Expression, inner: Sequence[Expression]) -> Expression:
    """The part over these arguments, which are rewritten already."""
    match part:
        case Column() | Literal() | Variable():
            dtype = _type(part.dtype)
            return part if dtype is part.dtype else replace(part, dtype=dtype)
        case Call(function="stored" | "typed"):
            return inner[0]
        case Cast() if is_sql_type(part.dtype) or is_sql_type(part.argument.dtype):
            return _cast(part, inner[0])
        case UserCall() | SparkFunction() if any(holds(each.dtype, is_sql_type) for each in (part, *part.children)):
            name = part.function if isinstance(part, UserCall) else part.sql
            raise UnsupportedSqlError(
                f"Sash does not pass intervals and variants to {name}: pass a number, or CAST(... AS STRING)"
            )
        case Call() if part.function not in _GENERIC:
            for argument in part.arguments:
                if holds(argument.dtype, is_sql_type):
                    raise UnsupportedSqlError(f"Sash does not run {part.function} of {type_name(argument.dtype)}")
    assert isinstance(part, Compound)
    own = tuple(map(_own, part.own))
    same = all(new is old for new, old in zip((*inner, *own), (*part.children, *part.own), strict=True))
    return part if same else type(part).made(own, tuple(inner))


def _own(value: Any) -> Any:
    """A part of an expression that is no subexpression: its type, or the variables of a lambda."""
    if isinstance(value, pa.DataType):
        return _type(value)
    if isinstance(value, tuple) and any(isinstance(each, Variable) for each in value):
        made = tuple(_stored(each, ()) for each in value)
        return made if any(new is not old for new, old in zip(made, value, strict=True)) else value
    return value


def _cast(cast: Cast, value: Expression) -> Expression:
    """A cast from or to an interval, as a call."""
    have, want = cast.argument.dtype, cast.dtype
    if have == want:
        return value
    if pa.types.is_null(have):
        return Literal(None, storage(want)) if isinstance(value, Literal) else Cast(value, storage(want))
    if have == VARIANT:
        if want == STRING:
            return Call("variant_text", (value,), STRING)
        return Call("variant_try_cast" if cast.lenient else "variant_cast", (value,), want)
    if want == VARIANT:
        return Call("variant_of", (value,), STRING)
    if have == STRING:
        name = "try_parse_interval" if cast.lenient else "parse_interval"
        return Call(name, (value, Literal(type_name(want), STRING)), storage(want))
    if want == STRING:
        return Call("interval_text", (value, Literal(type_name(have), STRING)), STRING)
    if is_interval(have) and is_interval(want):
        return _other_fields(value, have, want)
    if is_interval(have):
        return _count(cast, value, have)
    unit = _unit(want)
    number = value if value.dtype == BIGINT else Cast(value, BIGINT)
    name = "try_multiply" if cast.lenient else "multiply"
    total = Call(name, (number, Literal(unit, BIGINT)), BIGINT)
    return total if storage(want) == BIGINT else Cast(total, INT, cast.lenient)


def _unit(dtype: pa.DataType) -> int:
    """The length of an interval's last field, in the unit of its storage."""
    if isinstance(dtype, YearMonthInterval):
        return 12 if dtype.fields[1] == 0 else 1
    assert isinstance(dtype, DayTimeInterval)
    return _UNITS[dtype.fields[1]]


def _other_fields(value: Expression, have: pa.DataType, want: pa.DataType) -> Expression:
    """An interval without the fields after its last one."""
    unit = _unit(want)
    if unit <= _unit(have) and unit in (1, SECOND):
        return value
    dtype = storage(want)
    return Call("subtract", (value, Call("modulo", (value, Literal(unit, dtype)), dtype)), dtype)


def _count(cast: Cast, value: Expression, have: pa.DataType) -> Expression:
    """The number of units of the last field; fractions of seconds are kept in a DECIMAL only."""
    unit = _unit(have)
    if not is_integer(cast.dtype) and unit == SECOND:
        return Cast(Call("micros_to_seconds", (value,), pa.decimal128(19, 6)), cast.dtype, cast.lenient)
    number = value if value.dtype == BIGINT else Cast(value, BIGINT)
    units = number if unit == 1 else Call("int_divide", (number, Literal(unit, BIGINT)), BIGINT)
    return units if cast.dtype == BIGINT else Cast(units, cast.dtype, cast.lenient)

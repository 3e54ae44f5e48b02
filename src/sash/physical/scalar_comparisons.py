"""Semi joins with a scalar: conditions that compare a value of the left rows with one of the only right row."""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa

from sash.operators.scalar_comparison import COMPARISONS
from sash.plan.expressions import Call, Expression, columns_of, remap
from sash.plan.nodes import Aggregate, Join, Node, Project
from sash.plan.types import is_nested, is_orderable

_TURNED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "ne": "ne", "eq": "eq"}


class Compared(NamedTuple):
    """`value function scalar`: an expression over the left columns, and one over the right ones."""

    function: str
    value: Expression
    scalar: Expression


def compared_with_scalar(node: Join) -> Compared | None:
    """The comparison of a semi join with the only row of a global aggregate, if its condition is one; its values have an order.

    >>> from sash.plan.expressions import Column
    >>> from sash.plan.nodes import Relation
    >>> from sash.plan.types import BIGINT, BOOLEAN, Field
    >>> table = Relation("t", (Field("a", BIGINT),))
    >>> scalar = Aggregate(table, (), (), ())
    >>> condition = Call("lt", (Column(1, "b", BIGINT), Column(0, "a", BIGINT)), BOOLEAN)
    >>> compared_with_scalar(Join(table, scalar, "semi", (), condition)).function
    'gt'
    """
    condition, border = node.condition, len(node.left.schema)
    if node.kind != "semi" or node.keys or not _has_one_row(node.right):
        return None
    if not isinstance(condition, Call) or condition.function not in COMPARISONS:
        return None
    one, other = condition.arguments
    if one.dtype != other.dtype or not _has_order(one.dtype):
        return None
    function = condition.function
    if _is_right(one, border):
        one, other, function = other, one, _TURNED[function]
    if not _is_right(other, border) or any(column >= border for column in columns_of(one)):
        return None
    return Compared(function, one, remap(other, {column: column - border for column in columns_of(other)}))


def _has_one_row(node: Node) -> bool:
    while isinstance(node, Project):
        node = node.child
    return isinstance(node, Aggregate) and not node.keys


def _has_order(dtype: pa.DataType) -> bool:
    return is_orderable(dtype) and not is_nested(dtype) and not pa.types.is_null(dtype)


def _is_right(expression: Expression, border: int) -> bool:
    columns = columns_of(expression)
    return bool(columns) and min(columns) >= border

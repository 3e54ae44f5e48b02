"""Which columns are never NULL, as far as the plan tells: NOT IN needs no tests for NULLs that cannot be there."""

from __future__ import annotations

from sash.plan.compound import fold
from sash.plan.expressions import Call, Cast, Column, Expression, Literal, conjuncts
from sash.plan.nodes import Aggregate, Distinct, Filter, Join, Node, Project, Stream, TopK, Union

_ALWAYS_KNOWN = frozenset({"is_null", "is_not_null", "eq_null_safe"})
STRICT = frozenset(
    {"eq", "ne", "lt", "le", "gt", "ge", "add", "subtract", "multiply", "divide", "modulo", "negate", "abs"}
)
"""Functions that are NULL if an argument is; there are more."""
_REJECT_NULL = frozenset({"is_not_null", "eq", "ne", "lt", "le", "gt", "ge"})


def never_null(expression: Expression, node: Node) -> bool:
    """Whether the expression over the columns of the node is not NULL in any row.

    >>> from sash.plan.nodes import Relation
    >>> never_null(Literal(1, None), Relation("r", ()))
    True
    """
    match expression:
        case Literal():
            return expression.value is not None
        case Column():
            return _known(node, expression.index)
        case Call():
            return expression.function in _ALWAYS_KNOWN
        case _:
            return False


def always_null(expression: Expression) -> bool:
    """Whether the expression is NULL whatever its columns are.

    >>> import pyarrow as pa
    >>> always_null(Call("add", (Literal(None, pa.int64()), Column(0, "a", pa.int64())), pa.int64()))
    True
    """

    def combine(part: Expression, inner: list[bool]) -> bool:
        match part:
            case Literal():
                return part.value is None
            case Cast():
                return inner[0]
            case Call():
                return part.function in STRICT and any(inner)
            case _:
                return False

    return fold(expression, combine)


def _known(node: Node, column: int) -> bool:
    """Whether the column of the node has no NULLs."""
    match node:
        case Stream():
            return column == node.time
        case Filter():
            return any(_rejects_null(part, column) for part in conjuncts(node.predicate)) or _known(node.child, column)
        case Project():
            return never_null(node.expressions[column], node.child)
        case Distinct() | TopK():
            return _known(node.child, column)
        case Aggregate():
            if column < len(node.keys):
                return _known(node.child, node.keys[column])
            return node.aggregates[column - len(node.keys)].function in ("count", "count_star")
        case Union():
            return _known(node.left, column) and _known(node.right, column)
        case Join():
            return _known_in_join(node, column)
        case _:
            return False


def _known_in_join(node: Join, column: int) -> bool:
    border = len(node.left.schema)
    if column < border:
        is_key = node.kind in ("inner", "semi") and any(left == column for left, _ in node.keys)
        return node.kind not in ("right", "full") and (is_key or _known(node.left, column))
    is_key = node.kind == "inner" and any(right == column - border for _, right in node.keys)
    return node.kind not in ("left", "full") and (is_key or _known(node.right, column - border))


def _rejects_null(predicate: Expression, column: int) -> bool:
    """Whether the predicate is not true for NULLs in the column."""
    return (
        isinstance(predicate, Call)
        and predicate.function in _REJECT_NULL
        and any(isinstance(argument, Column) and argument.index == column for argument in predicate.arguments)
    )

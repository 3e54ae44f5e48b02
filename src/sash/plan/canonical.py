"""Canonical form of a logical plan: nodes that compute the same rows in the same columns have equal forms.

Names of columns are removed, since every column is a position; the parts of a conjunction and the key pairs of a join are
sorted, and so are the arguments of operators whose order does not matter. The form is for comparison only: what is shown
and what runs keeps the names that were written.

>>> from sash.plan.types import BIGINT, BOOLEAN
>>> one, other = (Call("gt", (Column(0, name, BIGINT), Literal(2, BIGINT)), BOOLEAN) for name in ("price", "p"))
>>> one == other, canonical_expression(one) == canonical_expression(other)
(False, True)
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

from sash.plan.compound import Compound, fold
from sash.plan.expression_safety import may_fail
from sash.plan.expressions import (
    AggregateCall,
    Call,
    Column,
    Expression,
    Lambda,
    Literal,
    Variable,
    conjunction,
    conjuncts,
)
from sash.plan.nodes import (
    Aggregate,
    Alike,
    AssignWindows,
    Distinct,
    Except,
    Expand,
    Filter,
    Final,
    Generate,
    Intersect,
    Join,
    Lifetime,
    Node,
    Over,
    Project,
    Relation,
    Sessions,
    Stream,
    TopK,
    Union,
    once_per_node,
)
from sash.plan.window_calls import WindowCall

_SYMMETRIC = frozenset({"eq", "ne", "eq_null_safe"})
"""Functions of two arguments whose order does not matter."""


@once_per_node
def canonical(node: Node) -> Node:
    """The canonical form of the plan."""
    match node:
        case Stream() | Relation():
            return node
        case Filter():
            return Filter(canonical(node.child), _sorted_conjunction(node.predicate))
        case Project():
            expressions = tuple(map(canonical_expression, node.expressions))
            return Project(canonical(node.child), _positions(expressions), expressions)
        case Expand():
            lists = tuple(tuple(map(canonical_expression, made)) for made in node.lists)
            return Expand(canonical(node.child), _positions(node.names), lists)
        case Generate():
            return replace(node, child=canonical(node.child), array=canonical_expression(node.array))
        case Join():
            condition = None if node.condition is None else _sorted_conjunction(node.condition)
            keys = tuple(sorted(node.keys))
            return Join(canonical(node.left), canonical(node.right), node.kind, keys, condition)
        case Aggregate():
            calls = tuple(map(_canonical_call, node.aggregates))
            return Aggregate(canonical(node.child), node.keys, _positions(calls), calls)
        case Distinct() | TopK() | AssignWindows() | Sessions() | Final():
            return replace(node, child=canonical(node.child))
        case Over():
            return Over(
                canonical(node.child),
                node.partition,
                node.ties,
                _positions(node.calls),
                tuple(map(_canonical_window_call, node.calls)),
            )
        case Lifetime():
            start, end = (None if one is None else canonical_expression(one) for one in (node.start, node.end))
            return Lifetime(canonical(node.child), start, end)
        case Union() | Except() | Intersect():
            return replace(node, left=canonical(node.left), right=canonical(node.right))
        case Alike():
            condition = None if node.condition is None else _sorted_conjunction(node.condition)
            otherwise = None if node.otherwise is None else tuple(map(canonical_expression, node.otherwise))
            return Alike(
                canonical(node.left), canonical(node.right), tuple(sorted(node.keys)), condition, otherwise, node.net
            )


def canonical_expression(expression: Expression) -> Expression:
    """The expression without names of columns, and with symmetric arguments in one order.

    Constants are compared by their text, since 0.0 and -0.0 are equal in Python.
    """
    return fold(expression, _canonical_part)


def _canonical_part(expression: Expression, inner: list[Expression]) -> Expression:
    match expression:
        case Column() | Variable():
            return replace(expression, name="")
        case Lambda():
            return Lambda(tuple(replace(variable, name="") for variable in expression.variables), inner[0])
        case Literal():
            return Literal(repr(expression.value), expression.dtype)
        case Call() if expression.function in _SYMMETRIC and not any(map(may_fail, expression.arguments)):
            return replace(expression, arguments=tuple(sorted(inner, key=_digest)))
        case _:
            return expression.over(tuple(inner))


def _sorted_conjunction(predicate: Expression) -> Expression:
    """The predicate with its conjuncts in one order, unless one guards another against a failure."""
    parts = [canonical_expression(part) for part in conjuncts(predicate)]
    if not any(map(may_fail, conjuncts(predicate))):
        parts = list({_digest(part): part for part in sorted(parts, key=_digest)}.values())
    made = conjunction(parts)
    assert made is not None
    return made


def _digest(expression: Expression) -> bytes:
    """A short identification of an expression, the same in every process."""

    def combine(part: Expression, inner: list[bytes]) -> bytes:
        own: object = part.own if isinstance(part, Compound) else part
        text = f"{type(part).__name__} {own!r}".encode()
        return hashlib.blake2b(b"\0".join([text, *inner]), digest_size=16).digest()

    return fold(expression, combine)


def _canonical_call(call: AggregateCall) -> AggregateCall:
    return replace(call, arguments=tuple(replace(column, name="") for column in call.arguments))


def _canonical_window_call(call: WindowCall) -> WindowCall:
    aggregate = None if call.aggregate is None else _canonical_call(call.aggregate)
    present = None if call.present is None else replace(call.present, name="")
    arguments = tuple(replace(column, name="") for column in call.arguments)
    return replace(call, arguments=arguments, present=present, aggregate=aggregate)


def _positions(columns: Sequence[object]) -> tuple[str, ...]:
    return ("",) * len(columns)

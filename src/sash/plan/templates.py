"""Alike queries: plans that are equal but for constants, recognised by their shape.

A *shape* is a plan in which every constant is replaced by a numbered parameter. Queries with equal shapes form a group; a
parameter for which all of them have the same constant is no difference and gets its constant back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeGuard

from sash.plan.compound import children, postorder, rewrite, walk
from sash.plan.expressions import Expression, Lambda, Literal, SparkFunction
from sash.plan.nodes import Expand, Filter, Generate, Join, Node, Project, with_children
from sash.plan.types import NULL


@dataclass(frozen=True)
class Parameter:
    """The value of a Literal that stands for the constant with this number."""

    number: int

    def __repr__(self) -> str:
        return f":{self.number}"


@dataclass(frozen=True)
class Shape:
    """A plan with parameters for constants, and the constants in the order of their numbers."""

    plan: Node
    constants: tuple[Expression, ...]


def shape_of(plan: Node) -> Shape:
    """The shape of a plan. A constant is the largest part of an expression that reads no column.

    >>> import pyarrow as pa
    >>> from sash.plan.expressions import Call, Column
    >>> from sash.plan.nodes import Relation
    >>> from sash.plan.types import BIGINT, Field
    >>> account = Column(0, "account", BIGINT)
    >>> items = Relation("items", (Field("account", BIGINT),))
    >>> one, two = (
    ...     shape_of(Filter(items, Call("eq", (account, Literal(number, BIGINT)), pa.bool_()))) for number in (1, 2)
    ... )
    >>> one.plan == two.plan, one.constants[0].value, two.constants[0].value
    (True, 1, 2)
    """
    constants: list[Expression] = []

    def take(part: Expression) -> Expression:
        constants.append(part)
        return Literal(Parameter(len(constants) - 1), part.dtype)

    return Shape(_changed(plan, lambda expression: _without_constants(expression, take)), tuple(constants))


def with_constants(plan: Node, values: dict[int, Expression]) -> Node:
    """The plan with these parameters replaced."""
    return _changed(plan, lambda expression: replace_parameters(expression, values))


def replace_parameters(expression: Expression, values: dict[int, Expression]) -> Expression:
    """The expression with these parameters replaced; others stay."""
    return rewrite(expression, lambda part: values.get(part.value.number) if is_parameter(part) else None)


def is_parameter(expression: Expression) -> TypeGuard[Literal]:
    """Whether the expression is a literal that stands for a parameter."""
    return isinstance(expression, Literal) and isinstance(expression.value, Parameter)


def parameters_of(expressions: Iterable[Expression]) -> frozenset[int]:
    """The numbers of the parameters in the expressions."""
    return frozenset(part.value.number for one in expressions for part in walk(one) if is_parameter(part))


def varying(constants: Sequence[tuple[Expression, ...]]) -> frozenset[int]:
    """The numbers of the parameters for which the queries have different constants."""
    first = constants[0]
    return frozenset(
        number for number in range(len(first)) if any(others[number] != first[number] for others in constants)
    )


def _changed(plan: Node, change: Callable[[Expression], Expression]) -> Node:
    """The plan with every expression changed, inputs first."""
    below = tuple(_changed(child, change) for child in plan.children)
    node = with_children(plan, below) if below else plan
    match node:
        case Filter():
            return replace(node, predicate=change(node.predicate))
        case Project():
            return replace(node, expressions=tuple(map(change, node.expressions)))
        case Expand():
            return replace(node, lists=tuple(tuple(map(change, made)) for made in node.lists))
        case Generate():
            return replace(node, array=change(node.array))
        case Join() if node.condition is not None:
            return replace(node, condition=change(node.condition))
        case _:
            return node


def _without_constants(expression: Expression, take: Callable[[Expression], Expression]) -> Expression:
    constant: set[int] = set()
    for part in postorder(expression):
        inner = children(part)
        computed = (
            bool(inner) and not isinstance(part, SparkFunction | Lambda) and all(id(one) in constant for one in inner)
        )
        if isinstance(part, Literal) or computed:
            constant.add(id(part))
    return rewrite(expression, lambda part: take(part) if id(part) in constant and part.dtype != NULL else None)

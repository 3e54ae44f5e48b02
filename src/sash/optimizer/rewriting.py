"""Building blocks of rules: walks that rebuild a plan, and functions that wrap a plan in further nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from sash.plan.compound import rewrite
from sash.plan.expressions import Column, Expression, columns_of, conjunction, conjuncts
from sash.plan.nodes import Aggregate, Expand, Filter, Generate, Join, Node, Project, once_per_node, with_children
from sash.plan.types import Schema


def bottom_up(node: Node, change: Callable[[Node], Node]) -> Node:
    """The plan with `change` applied to every node, inputs first."""
    children = tuple(bottom_up(child, change) for child in node.children)
    if any(new is not old for new, old in zip(children, node.children, strict=True)):
        node = with_children(node, children)
    return change(node)


def somewhere(plan: Node, change: Callable[[Node], Iterable[Node]]) -> Iterator[Node]:
    """Every plan that results from applying `change` to one node of the plan."""
    yield from change(plan)
    for place, child in enumerate(plan.children):
        for changed in somewhere(child, change):
            yield with_children(plan, (*plan.children[:place], changed, *plan.children[place + 1 :]))


def columns(node: Node) -> tuple[Column, ...]:
    """A column expression for every output column of the node."""
    return tuple(Column(position, field.name, field.dtype) for position, field in enumerate(node.schema))


def select(node: Node, positions: Sequence[int]) -> Node:
    """The node's columns at these positions, in this order; the node itself if these are all columns in order."""
    if list(positions) == list(range(len(node.schema))):
        return node
    available = columns(node)
    chosen = tuple(available[position] for position in positions)
    return Project(node, tuple(column.name for column in chosen), chosen)


def named(node: Node, schema: Schema) -> Node:
    """The node with its columns renamed as in the schema."""
    names = tuple(field.name for field in schema)
    if tuple(field.name for field in node.schema) == names:
        return node
    if isinstance(node, Project):
        return replace(node, names=names)
    return Project(node, names, columns(node))


def filtered(node: Node, parts: Iterable[Expression]) -> Node:
    """The rows of the node for which all parts are true; a repeated part is tested once."""
    different: dict[Expression, Expression] = {}
    for part in parts:
        different.setdefault(unnamed_expression(part), part)
    predicate = conjunction(list(different.values()))
    return node if predicate is None else Filter(node, predicate)


def condition_columns(node: Join) -> tuple[frozenset[int], frozenset[int]]:
    """The columns of the left and of the right input that a join compares."""
    border = len(node.left.schema)
    read = frozenset() if node.condition is None else columns_of(node.condition)
    left = {column for column in read if column < border} | {column for column, _ in node.keys}
    right = {column - border for column in read if column >= border} | {column for _, column in node.keys}
    return frozenset(left), frozenset(right)


def unnamed_expression(expression: Expression) -> Expression:
    """The expression without the names of its columns, which do not affect its value."""
    return rewrite(expression, _without_name)


def _without_name(part: Expression) -> Expression | None:
    return Column(part.index, "", part.dtype) if isinstance(part, Column) and part.name else None


@once_per_node
def unnamed(node: Node) -> Node:
    """The plan without column names and with normalized conjunctions: equal for plans that do the same."""

    def change(node: Node) -> Node:
        match node:
            case Filter():
                return filtered(node.child, map(unnamed_expression, conjuncts(node.predicate)))
            case Project():
                expressions = tuple(map(unnamed_expression, node.expressions))
                return Project(node.child, ("",) * len(expressions), expressions)
            case Expand():
                lists = tuple(tuple(map(unnamed_expression, made)) for made in node.lists)
                return Expand(node.child, ("",) * len(node.names), lists)
            case Generate():
                return replace(node, array=unnamed_expression(node.array))
            case Join():
                if node.condition is None:
                    return node
                parts = [unnamed_expression(part) for part in conjuncts(node.condition)]
                return replace(node, condition=conjunction(parts))
            case Aggregate():
                arguments = (tuple(replace(c, name="") for c in call.arguments) for call in node.aggregates)
                calls = tuple(
                    replace(call, arguments=inner) for call, inner in zip(node.aggregates, arguments, strict=True)
                )
                return replace(node, names=("",) * len(calls), aggregates=calls)
            case _:
                return node

    return bottom_up(node, change)

"""Chains of inner joins, decomposed into inputs, equalities, other conditions, and output expressions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from sash.operators.join_program import MIRRORED, Operand, Theta
from sash.plan.expression_safety import may_fail
from sash.plan.expressions import Call, Column, Expression, columns_of, conjuncts, remap, substitute
from sash.plan.nodes import Filter, Join, Node, Project
from sash.plan.patterns import is_nonretroactive, is_static
from sash.plan.time_bounds import runs_by_bounds


@dataclass(frozen=True)
class Chain:
    """A chain of inner joins. Its expressions are over the concatenated columns of all inputs."""

    inputs: tuple[Node, ...]
    conditions: tuple[Expression, ...]
    outputs: tuple[Expression, ...]

    @property
    def origins(self) -> list[tuple[int, int]]:
        """The input of every column, and its position in that input."""
        return [(number, position) for number, node in enumerate(self.inputs) for position in range(len(node.schema))]


def decompose(node: Node) -> Chain:
    """The chain of inner joins that computes the node; any other node is a chain of one input."""
    match node:
        case Project():
            below = decompose(node.child)
            if len(below.inputs) > 1:
                return replace(below, outputs=tuple(substitute(e, below.outputs) for e in node.expressions))
        case Filter():
            below = decompose(node.child)
            if len(below.inputs) > 1:
                parts = [substitute(part, below.outputs) for part in conjuncts(node.predicate)]
                return replace(below, conditions=(*below.conditions, *parts))
        case Join() if (
            node.kind == "inner"
            and not any(_is_looked_up(side) for side in (node.left, node.right))
            and not runs_by_bounds(node)
        ):
            return _joined(node)
        case _:
            pass
    return _alone(node)


def _alone(node: Node) -> Chain:
    return Chain((node,), (), _columns(node))


def _columns(node: Node) -> tuple[Column, ...]:
    return tuple(Column(position, field.name, field.dtype) for position, field in enumerate(node.schema))


def _is_looked_up(node: Node) -> bool:
    """Whether rows are looked up in the node one by one: such joins do not belong to a chain."""
    return is_static(node) or is_nonretroactive(node)


def _joined(node: Join) -> Chain:
    left = _keyed(node.left, [one for one, _ in node.keys])
    right = _keyed(node.right, [other for _, other in node.keys])
    border, size = len(left.origins), len(left.origins) + len(right.origins)
    moved = {position: position + border for position in range(size - border)}
    outputs = (*left.outputs, *(remap(output, moved) for output in right.outputs))
    conditions = [*left.conditions, *(remap(condition, moved) for condition in right.conditions)]
    split = len(node.left.schema)
    conditions += [Call("eq", (outputs[a], outputs[split + b]), pa.bool_()) for a, b in node.keys]
    if node.condition is not None:
        conditions += [substitute(part, outputs) for part in conjuncts(node.condition)]
    return Chain((*left.inputs, *right.inputs), tuple(conditions), outputs)


def _keyed(side: Node, keys: Sequence[int]) -> Chain:
    """A side of a join as a chain in which its keys are columns.

    A key that is computed from a single input becomes a column of that input. Where that is impossible, the side is joined
    by itself first, and its result is one input.
    """
    chain = decompose(side)
    for key in keys:
        value = chain.outputs[key]
        if isinstance(value, Column):
            continue
        owners = {chain.origins[index][0] for index in columns_of(value)}
        if len(owners) != 1 or may_fail(value):
            return _alone(side)
        chain = _with_column(chain, owners.pop(), key)
    return chain


def _with_column(chain: Chain, number: int, output: int) -> Chain:
    """The chain with an output that is computed from one input as a column of that input."""
    origins, given = chain.origins, chain.inputs[number]
    first = origins.index((number, 0))
    end = first + len(given.schema)
    value, name = chain.outputs[output], f"_key{len(given.schema)}"
    own = remap(value, {position: position - first for position in range(first, end)})
    wider = Project(given, (*(field.name for field in given.schema), name), (*_columns(given), own))
    moved = {position: position + (position >= end) for position in range(len(origins))}
    outputs = [remap(made, moved) for made in chain.outputs]
    outputs[output] = Column(end, name, value.dtype)
    return Chain(
        (*chain.inputs[:number], wider, *chain.inputs[number + 1 :]),
        tuple(remap(condition, moved) for condition in chain.conditions),
        tuple(outputs),
    )


Origin = tuple[int, int]
"""An input and a column of it."""


def equal_columns(chain: Chain) -> tuple[list[dict[int, int]], list[Expression]]:
    """The classes of equal columns, each as {input: column}, and the other conditions.

    Two columns of one input are never in one class: their equality stays a condition.
    """
    origins = chain.origins
    classes: list[dict[int, int]] = []
    rest: list[Expression] = []
    for condition in chain.conditions:
        pair = _equality(condition)
        if pair is None or origins[pair[0]][0] == origins[pair[1]][0]:
            rest.append(condition)
            continue
        found = [_class_of(classes, origins[side]) for side in pair]
        together = {**found[0], **found[1]}
        if found[0] is found[1]:
            continue
        if len(together) < len(found[0]) + len(found[1]):
            rest.append(condition)
            continue
        classes = [known for known in classes if known is not found[0] and known is not found[1]]
        classes.append(together)
    return classes, rest


def _equality(condition: Expression) -> tuple[int, int] | None:
    if not isinstance(condition, Call) or condition.function != "eq":
        return None
    one, two = condition.arguments
    if isinstance(one, Column) and isinstance(two, Column) and one.dtype == two.dtype:
        return one.index, two.index
    return None


def _class_of(classes: list[dict[int, int]], position: Origin) -> dict[int, int]:
    number, column = position
    return next((known for known in classes if known.get(number) == column), {number: column})


def comparison(condition: Expression, origins: list[Origin]) -> Theta | None:
    """The condition as a comparison of values of two inputs; None if it is something else, or may fail on a row."""
    if not isinstance(condition, Call) or condition.function not in MIRRORED:
        return None
    sides = [_operand(argument, origins) for argument in condition.arguments]
    left, right = sides[0], sides[-1]
    if left is None or right is None or left.input == right.input or left.value.dtype != right.value.dtype:
        return None
    return Theta(condition.function, left, right)


def _operand(value: Expression, origins: list[Origin]) -> Operand | None:
    owners = {origins[index][0] for index in columns_of(value)}
    if len(owners) != 1 or may_fail(value) or not _fits(value.dtype):
        return None
    return Operand(owners.pop(), remap(value, {index: origins[index][1] for index in columns_of(value)}))


def _fits(dtype: pa.DataType) -> bool:
    """Whether values of the type are compared as 64-bit integers."""
    numeric = pa.types.is_integer(dtype) or pa.types.is_floating(dtype)
    return bool(numeric or pa.types.is_temporal(dtype) or pa.types.is_boolean(dtype))

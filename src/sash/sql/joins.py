"""FROM as a tree of joins with unassigned conditions: equalities become keys, others join conditions."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal

import pyarrow as pa

from sash.plan.compound import walk
from sash.plan.expressions import Call, Column, Expression, Literal, SparkFunction, columns_of, conjunction, remap
from sash.plan.nodes import Join, JoinKind, Node, Project
from sash.plan.time_bounds import bounds_time
from sash.sql.scope import shift


@dataclass
class Branch:
    """A join under construction; its conditions are over the left columns followed by the right ones.

    With `null_safe`, equalities that hold for two NULLs are keys too, each as two: the value, or a constant for NULL, and
    whether it is NULL.
    """

    left: Tree
    right: Tree
    kind: JoinKind
    conditions: list[Expression] = field(default_factory=list)
    null_safe: bool = False


Tree = Node | Branch


def width(tree: Tree) -> int:
    """The number of output columns of the tree."""
    if not isinstance(tree, Branch):
        return len(tree.schema)
    return width(tree.left) + (0 if tree.kind in ("semi", "anti") else width(tree.right))


def push_equality(tree: Tree, predicate: Expression) -> bool:
    """Make an equality of WHERE a key of the lowest join that has both columns; False if there is none.

    A bound of the times of two streams becomes a condition of their join, which then keeps rows for less time.
    """
    if not isinstance(tree, Branch) or any(is_nested(part) for part in walk(predicate)):
        return False
    border, columns = width(tree.left), columns_of(predicate)
    if all(column < border for column in columns):
        return tree.kind in ("inner", "left", "semi", "anti") and push_equality(tree.left, predicate)
    if all(column >= border for column in columns):
        return tree.kind in ("inner", "right") and push_equality(tree.right, shift(predicate, -border))
    if tree.kind == "inner" and (_sides(predicate, border) is not None or _is_interval(tree, predicate)):
        tree.conditions.append(predicate)
        return True
    return False


def _is_interval(tree: Branch, predicate: Expression) -> bool:
    left, right = tree.left, tree.right
    return not isinstance(left, Branch) and not isinstance(right, Branch) and bounds_time(left, right, predicate)


def build(tree: Tree) -> Node:
    """The plan of the tree; its columns are those of all inputs, left to right."""
    if not isinstance(tree, Branch):
        return tree
    left, right = build(tree.left), build(tree.right)
    border = len(left.schema)
    keys: list[tuple[Expression, Expression]] = []
    rest: list[Expression] = []
    for part in tree.conditions:
        sides = _sides(part, border)
        pairs = [] if sides is None else [sides]
        if tree.null_safe and (equal := _sides(part, border, "eq_null_safe")) is not None:
            pairs = _null_safe_keys(*equal)
        if pairs:
            keys.extend(pair for pair in pairs if pair not in keys)
        elif part != Literal(True, part.dtype):
            rest.append(part)
    wide_left, left_keys = _with_columns(left, [key for key, _ in keys])
    wide_right, right_keys = _with_columns(right, [key for _, key in keys])
    added = len(wide_left.schema) - border
    moved = {i: i if i < border else i + added for i in range(border + len(right.schema))}
    condition = conjunction([remap(part, moved) for part in rest])
    join = Join(wide_left, wide_right, tree.kind, tuple(zip(left_keys, right_keys, strict=True)), condition)
    if wide_left is left and wide_right is right:
        return join
    kept = range(border) if tree.kind in ("semi", "anti") else [moved[i] for i in range(border + len(right.schema))]
    fields = [(position, join.schema[position]) for position in kept]
    return Project(
        join, tuple(f.name for _, f in fields), tuple(Column(position, f.name, f.dtype) for position, f in fields)
    )


def _sides(predicate: Expression, border: int, function: str = "eq") -> tuple[Expression, Expression] | None:
    """The left and right key of an equality between the two inputs (the right one from 0); None otherwise."""
    if not isinstance(predicate, Call) or predicate.function != function:
        return None
    if any(isinstance(part, SparkFunction) or is_nested(part) for part in walk(predicate)):
        return None
    for one, other in (predicate.arguments, predicate.arguments[::-1]):
        left, right = columns_of(one), columns_of(other)
        if left and right and max(left) < border <= min(right):
            return one, shift(other, -border)
    return None


def is_nested(part: Expression) -> bool:
    """Whether the expression is a subquery, or a reference of one to the query around it."""
    return isinstance(part, Call) and part.function in ("outer", "subquery")


def _null_safe_keys(left: Expression, right: Expression) -> list[tuple[Expression, Expression]]:
    """Keys that are equal exactly if both sides are equal or both are NULL; none if the type has no constant for NULL."""
    zero = _zero(left.dtype)
    if zero is None:
        return []
    values = tuple(Call("coalesce", (side, zero), side.dtype) for side in (left, right))
    missing = tuple(Call("is_null", (side,), pa.bool_()) for side in (left, right))
    return [(values[0], values[1]), (missing[0], missing[1])]


def _zero(dtype: pa.DataType) -> Literal | None:
    """Some constant of the type."""
    if pa.types.is_boolean(dtype):
        return Literal(False, dtype)
    if pa.types.is_string(dtype):
        return Literal("", dtype)
    if pa.types.is_binary(dtype):
        return Literal(b"", dtype)
    if pa.types.is_decimal(dtype):
        return Literal(Decimal(0), dtype)
    if pa.types.is_integer(dtype) or pa.types.is_floating(dtype) or pa.types.is_temporal(dtype):
        return Literal(0, dtype)
    return None


def _with_columns(node: Node, keys: list[Expression]) -> tuple[Node, list[int]]:
    """The node with a column for every key, and the positions of these columns."""
    schema = node.schema
    expressions: list[Expression] = [Column(i, f.name, f.dtype) for i, f in enumerate(schema)]
    names = [f.name for f in schema]
    positions = []
    for key in keys:
        if isinstance(key, Column):
            positions.append(key.index)
            continue
        if key not in expressions:
            expressions.append(key)
            names.append(f"_key{len(expressions) - len(schema)}")
        positions.append(expressions.index(key))
    if len(expressions) == len(schema):
        return node, positions
    return Project(node, tuple(names), tuple(expressions)), positions

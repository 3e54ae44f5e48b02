"""Push selections down as far as possible, so that fewer rows are processed, kept and retracted."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from sash.optimizer.rewriting import filtered, unnamed
from sash.plan import compound, expressions, nodes
from sash.plan.expression_safety import may_fail, respects_equality
from sash.plan.patterns import is_nonretroactive

Parts = list[expressions.Expression]
Test = Callable[[expressions.Expression], bool]


def push_down_selection(plan: nodes.Node) -> nodes.Node:
    """Move every conjunct of a filter or join condition down to the input that its columns come from.

    Equalities between the inputs of a join become its keys, and a predicate on a key applies to both sides. A predicate
    that may fail must not see more rows than before, so it passes only projections and unions.

    >>> from sash.testing.rewrites import show
    >>> show(push_down_selection, "SELECT s.v FROM s JOIN r ON s.k = r.k WHERE s.k = 7 AND r.v > 3 WINDOW 1 HOUR")
    Project v#2
      Filter k#1 = 7 AND v#5 > 3
        Join inner ON k#1 = k#1
          Stream s [RANGE 1 HOUR]
          Stream r [RANGE 1 HOUR]
    =>
    Project v#2
      Join inner ON k#1 = k#1
        Filter k#1 = 7
          Stream s [RANGE 1 HOUR]
        Filter v#2 > 3 AND k#1 = 7
          Stream r [RANGE 1 HOUR]
    """
    pushed = _push(plan, [])
    return plan if unnamed(pushed) == unnamed(plan) else pushed


def _push(node: nodes.Node, parts: Parts) -> nodes.Node:
    """The node with the parts tested on its rows or further down."""
    match node:
        case nodes.Stream() | nodes.Relation():
            return filtered(node, parts)
        case nodes.Filter():
            moving, staying = _divided(parts, _is_movable)
            return filtered(_push(node.child, [*expressions.conjuncts(node.predicate), *moving]), staying)
        case nodes.Project():
            return _push_below_project(node, parts)
        case nodes.Expand():
            return _push_below_expand(node, parts)
        case nodes.Generate():
            return _push_below_generate(node, parts)
        case nodes.AssignWindows():
            own = len(node.child.schema)
            moving, staying = _divided(
                parts, lambda part: _is_movable(part) and all(c < own for c in expressions.columns_of(part))
            )
            return filtered(replace(node, child=_push(node.child, moving)), staying)
        case nodes.Sessions() | nodes.Final():
            return filtered(replace(node, child=_push(node.child, [])), parts)
        case nodes.Lifetime():
            moving, staying = _divided(parts, _is_movable)
            return filtered(replace(node, child=_push(node.child, moving)), staying)
        case nodes.Join():
            return _push_below_join(node, parts)
        case nodes.Aggregate():
            moving, staying = _divided(parts, lambda part: _is_of_group(part, node))
            below = [expressions.remap(part, dict(enumerate(node.keys))) for part in moving]
            return filtered(replace(node, child=_push(node.child, below)), staying)
        case nodes.Distinct():
            moving, staying = _divided(parts, _is_of_value)
            return filtered(nodes.Distinct(_push(node.child, moving)), staying)
        case nodes.Union():
            return nodes.Union(_push(node.left, parts), _push(node.right, parts))
        case nodes.Except() | nodes.Intersect():
            moving, staying = _divided(parts, _is_of_value)
            return filtered(replace(node, left=_push(node.left, moving), right=_push(node.right, moving)), staying)
        case nodes.Over():
            moving, staying = _divided(parts, lambda part: _is_of_partition(part, node.partition))
            return filtered(replace(node, child=_push(node.child, moving)), staying)
        case nodes.TopK():
            moving, staying = _divided(parts, lambda part: _is_of_partition(part, node.by))
            return filtered(replace(node, child=_push(node.child, moving)), staying)
        case nodes.Alike():
            return filtered(replace(node, left=_push(node.left, [])), parts)


def _divided(parts: Iterable[expressions.Expression], test: Test) -> tuple[Parts, Parts]:
    """The parts that pass the test, and the others."""
    moving: Parts = []
    staying: Parts = []
    for part in parts:
        (moving if test(part) else staying).append(part)
    return moving, staying


def _needs_spark(part: expressions.Expression) -> bool:
    return any(isinstance(below, expressions.SparkFunction) for below in compound.walk(part))


def _is_movable(part: expressions.Expression) -> bool:
    """Whether the part may be tested on rows that are otherwise dropped; Spark expressions must be."""
    return _needs_spark(part) or not may_fail(part)


def _is_of_value(part: expressions.Expression) -> bool:
    """Whether the part has the same value for all duplicates of a row."""
    return _is_movable(part) and respects_equality(part)


def _is_of_group(part: expressions.Expression, node: nodes.Aggregate) -> bool:
    """Whether the part selects whole groups. A global aggregate has a row even if no input row passes."""
    return bool(node.keys) and expressions.columns_of(part) <= frozenset(range(len(node.keys))) and _is_of_value(part)


def _is_of_partition(part: expressions.Expression, partition: tuple[int, ...]) -> bool:
    """Whether the part selects whole partitions."""
    return expressions.columns_of(part) <= frozenset(partition) and bool(partition) and _is_of_value(part)


def _push_below_project(node: nodes.Project, parts: Parts) -> nodes.Node:
    """Push through a projection, except predicates on columns that Spark computes directly above the source."""
    moving, staying = _divided(
        parts, lambda part: not any(_needs_spark(node.expressions[column]) for column in expressions.columns_of(part))
    )
    if staying:
        moving, guarded = _divided(moving, _is_movable)
        staying += guarded
    child = _push(node.child, [expressions.substitute(part, node.expressions) for part in moving])
    return filtered(replace(node, child=child), staying)


def _push_below_expand(node: nodes.Expand, parts: Parts) -> nodes.Node:
    """Push the predicates that are the same for all copies of a row."""
    passed = node.passed()
    same = {position for position, made in passed.items() if not _needs_spark(made)}
    moving, staying = _divided(parts, lambda part: _is_movable(part) and expressions.columns_of(part) <= same)
    inputs = tuple(passed.get(position, made) for position, made in enumerate(node.lists[0]))
    child = _push(node.child, [expressions.substitute(part, inputs) for part in moving])
    return filtered(replace(node, child=child), staying)


def _push_below_generate(node: nodes.Generate, parts: Parts) -> nodes.Node:
    """Push the predicates that read no element, unless the array may fail where they are tested first."""
    places = dict(enumerate(node.columns))
    moving, staying = _divided(parts, lambda part: _is_movable(part) and expressions.columns_of(part) <= places.keys())
    child = _push(node.child, [expressions.remap(part, places) for part in moving])
    return filtered(replace(node, child=child), staying)


@dataclass
class _Sides:
    """The conjuncts of a join, sorted into those for its inputs, its keys, its condition, and those that stay above."""

    join: nodes.Join
    left: Parts = field(default_factory=list)
    right: Parts = field(default_factory=list)
    keys: list[tuple[int, int]] = field(default_factory=list)
    staying: Parts = field(default_factory=list)

    def to_side(self, part: expressions.Expression, left: bool, right: bool) -> bool:
        """Assign the part to the one input that it reads, if that is allowed."""
        border = len(self.join.left.schema)
        read = expressions.columns_of(part)
        if not _is_movable(part):
            return False
        if left and all(column < border for column in read) and not is_nonretroactive(self.join.left):
            self.left.append(part)
        elif right and all(column >= border for column in read) and not is_nonretroactive(self.join.right):
            self.right.append(expressions.remap(part, {column: column - border for column in read}))
        else:
            return False
        return True

    def to_keys(self, part: expressions.Expression) -> bool:
        """Make the part a key, if it is an equality between the inputs."""
        border = len(self.join.left.schema)
        match part:
            case expressions.Call("eq", (expressions.Column() as one, expressions.Column() as other)) if (
                one.dtype == other.dtype
            ):
                low, high = sorted((one.index, other.index))
                if low < border <= high:
                    if (low, high - border) not in self.keys:
                        self.keys.append((low, high - border))
                    return True
        return False

    def transfer(self) -> None:
        """Copy predicates on a key of a preserved side to the other side, whose matches must satisfy them too."""
        kind = self.join.kind
        to_right, to_left = kind in ("inner", "left", "semi", "anti"), kind in ("inner", "right")
        left, right = list(self.left), list(self.right)
        if to_right and not is_nonretroactive(self.join.right):
            self.right += _transferred(left, dict(self.keys))
        if to_left and not is_nonretroactive(self.join.left):
            self.left += _transferred(right, {other: one for one, other in self.keys})


def _transferred(parts: Parts, keys: dict[int, int]) -> Parts:
    return [
        expressions.remap(part, keys)
        for part in parts
        if len(expressions.columns_of(part)) == 1
        and expressions.columns_of(part) <= keys.keys()
        and not _needs_spark(part)
        and respects_equality(part)
    ]


def _push_below_join(node: nodes.Join, parts: Parts) -> nodes.Node:
    """Push filters to the preserved sides of the join, and its condition to the sides that are only matched."""
    sides = _Sides(node, keys=list(node.keys))
    for part in parts:
        if not (
            sides.to_side(
                part, left=node.kind in ("inner", "left", "semi", "anti"), right=node.kind in ("inner", "right")
            )
            or (node.kind == "inner" and sides.to_keys(part))
        ):
            sides.staying.append(part)
    sides.transfer()
    condition: Parts = []
    for part in [] if node.condition is None else expressions.conjuncts(node.condition):
        if not (
            sides.to_keys(part)
            or sides.to_side(
                part, left=node.kind in ("inner", "right", "semi"), right=node.kind in ("inner", "left", "semi", "anti")
            )
        ):
            condition.append(part)
    join = nodes.Join(
        _push(node.left, sides.left),
        _push(node.right, sides.right),
        node.kind,
        tuple(sides.keys),
        expressions.conjunction(condition),
    )
    return filtered(join, sides.staying)

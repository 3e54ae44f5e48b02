"""Move joins with tables that never change down to their stream, where they are lookups without state.

Such a join keeps its input's update pattern, so it is one of the weakest operators, and those go first (paper 5,
5.4). Below DISTINCT, GROUP BY and set operators the rule adds a semi-join with the table instead, so that rows without
a match in the table are never kept.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal as OneOf

from sash.optimizer.rewriting import bottom_up, columns, select
from sash.plan import nodes
from sash.plan.expression_safety import may_fail, respects_equality
from sash.plan.expressions import Column, Expression, columns_of, remap
from sash.plan.patterns import is_nonretroactive, is_table


def order_static_joins(plan: nodes.Node) -> nodes.Node:
    """Move inner, semi and anti joins with tables below joins of streams and unions, and semi-joins below the rest.

    >>> from sash.testing.rewrites import show
    >>> show(order_static_joins, "SELECT s.v, t.name FROM s JOIN r ON s.v = r.v JOIN t ON s.k = t.k WINDOW 1 HOUR")
    Project v#2, name#7
      Join inner ON k#1 = k#0
        Join inner ON v#2 = v#2
          Stream s [RANGE 1 HOUR]
          Stream r [RANGE 1 HOUR]
        Relation t
    =>
    Project v#2, name#4
      Join inner ON v#2 = v#2
        Join inner ON k#1 = k#0
          Stream s [RANGE 1 HOUR]
          Relation t
        Stream r [RANGE 1 HOUR]
    """
    return bottom_up(plan, _order)


@dataclass(frozen=True)
class _Lookup:
    """A join with a table, without its left input of `width` columns."""

    table: nodes.Node
    kind: OneOf["inner", "semi", "anti"]
    keys: tuple[tuple[int, int], ...]
    condition: Expression | None
    width: int

    @property
    def read(self) -> frozenset[int]:
        """The columns of the left input that the join compares."""
        tested = frozenset() if self.condition is None else columns_of(self.condition)
        return frozenset(column for column in tested if column < self.width) | {column for column, _ in self.keys}

    @property
    def added(self) -> int:
        """The number of columns that the join appends to those of the left input."""
        return len(self.table.schema) if self.kind == "inner" else 0

    def moved(self, positions: dict[int, int], width: int) -> _Lookup:
        """The same join over an input with the columns at other positions."""
        keys = tuple((positions[left], right) for left, right in self.keys)
        shifted = {self.width + column: width + column for column in range(len(self.table.schema))}
        condition = None if self.condition is None else remap(self.condition, positions | shifted)
        return replace(self, keys=keys, condition=condition, width=width)

    def over(self, node: nodes.Node) -> nodes.Node:
        """The join over the node, pushed into it as far as possible; the node itself if it contains the same semi-join."""
        placed = _position(node, self)
        if placed is not None:
            return placed
        if self.kind == "semi" and self.condition is None and _is_reduced(node, self):
            return node
        return nodes.Join(node, self.table, self.kind, self.keys, self.condition)


def _order(node: nodes.Node) -> nodes.Node:
    if not isinstance(node, nodes.Join):
        return node
    if node.kind == "inner" and is_table(node.left) and not is_table(node.right):
        swapped = nodes.mirrored(node)
        ordered = _order(swapped)
        border, size = len(node.left.schema), len(node.schema)
        if ordered is swapped:
            return node
        return select(ordered, [(position + size - border) % size for position in range(size)])
    if not is_table(node.right) or is_table(node.left) or (node.condition is not None and may_fail(node.condition)):
        return node
    match node.kind:
        case "semi" | "anti":
            lookup = _Lookup(node.right, node.kind, node.keys, node.condition, len(node.left.schema))
            return _position(node.left, lookup) or node
        case "inner":
            lookup = _Lookup(node.right, "inner", node.keys, node.condition, len(node.left.schema))
            return _position(node.left, lookup) or _with_semi_join(node)
        case _:
            return node


def _with_semi_join(node: nodes.Join) -> nodes.Node:
    """The join with a table, over an input with a semi-join that drops rows without a match early."""
    if not node.keys:
        return node
    used = list(dict.fromkeys(right for _, right in node.keys))
    keys = tuple((left, used.index(right)) for left, right in node.keys)
    table = _keys_of(node.right, used)
    reduced = _position(node.left, _Lookup(table, "semi", keys, None, len(node.left.schema)))
    return node if reduced is None or reduced == node.left else replace(node, left=reduced)


def _keys_of(table: nodes.Node, used: list[int]) -> nodes.Node:
    """The table with its key columns only."""
    if not isinstance(table, nodes.Project):
        return select(table, used)
    names = tuple(table.names[position] for position in used)
    return nodes.Project(table.child, names, tuple(table.expressions[position] for position in used))


def _position(node: nodes.Node, lookup: _Lookup) -> nodes.Node | None:
    """The node with the lookup pushed below an operator with state; None if that is not possible.

    The output has the node's columns, followed by those that the lookup adds.
    """
    match node:
        case nodes.Stream() | nodes.Relation() | nodes.Expand() | nodes.TopK() | nodes.Over() | nodes.Alike():
            return None
        case nodes.Generate() | nodes.AssignWindows() | nodes.Lifetime() | nodes.Sessions() | nodes.Final():
            return None
        case nodes.Filter():
            below = _position(node.child, lookup)
            return None if below is None else nodes.Filter(below, node.predicate)
        case nodes.Project():
            return _place_below_project(node, lookup)
        case nodes.Join():
            return _place_below_join(node, lookup)
        case nodes.Union():
            return nodes.Union(lookup.over(node.left), lookup.over(node.right))
        case nodes.Distinct() | nodes.Except() | nodes.Intersect() | nodes.Aggregate():
            return _place_below_values(node, lookup)


def _place_below_project(node: nodes.Project, lookup: _Lookup) -> nodes.Node | None:
    positions = {
        position: expression.index
        for position, expression in enumerate(node.expressions)
        if isinstance(expression, Column)
    }
    if not lookup.read <= positions.keys():
        return None
    width = len(node.child.schema)
    below = _position(node.child, lookup.moved(positions, width))
    if below is None:
        return None
    new = columns(below)[width:]
    return nodes.Project(below, node.names + tuple(column.name for column in new), node.expressions + new)


def _place_below_join(node: nodes.Join, lookup: _Lookup) -> nodes.Node | None:
    """Push the lookup to the side of the join whose columns it reads, if that side is preserved.

    The matches of a row in a non-retroactive relation depend on when it arrives, so nothing moves across such a join.
    """
    border, size = len(node.left.schema), len(node.schema)
    if is_nonretroactive(node.left) or is_nonretroactive(node.right):
        return None
    if node.kind in ("inner", "left", "semi", "anti") and all(column < border for column in lookup.read):
        inner = lookup.moved({column: column for column in range(border)}, border)
        left = _position(node.left, inner) if is_table(node.right) else inner.over(node.left)
        if left is None or is_table(node.left):
            return None
        return _rejoined(replace(node, left=left, condition=_shifted(node, lookup)), border, size, lookup.added)
    if node.kind in ("inner", "right") and all(column >= border for column in lookup.read):
        inner = lookup.moved({column: column - border for column in range(border, size)}, size - border)
        if is_table(node.left) or is_table(node.right):
            return None
        return replace(node, right=inner.over(node.right))
    return None


def _shifted(node: nodes.Join, lookup: _Lookup) -> Expression | None:
    """The condition of a join after the lookup's columns are appended to its left input."""
    if node.condition is None:
        return None
    border = len(node.left.schema)
    both = border + len(node.right.schema)
    positions = {column: column if column < border else column + lookup.added for column in range(both)}
    return remap(node.condition, positions)


def _rejoined(node: nodes.Join, border: int, size: int, added: int) -> nodes.Node:
    """The join's columns as before, followed by those appended to its left input."""
    order = [*range(border), *range(border + added, size + added), *range(border, border + added)]
    return select(node, order)


def _place_below_values(
    node: nodes.Distinct | nodes.Except | nodes.Intersect | nodes.Aggregate, lookup: _Lookup
) -> nodes.Node | None:
    """Semi and anti joins select by value: all duplicates of a row, or a whole group, pass or none does."""
    if lookup.kind == "inner" or (lookup.condition is not None and not respects_equality(lookup.condition)):
        return None
    match node:
        case nodes.Distinct():
            return nodes.Distinct(lookup.over(node.child))
        case nodes.Except() | nodes.Intersect():
            return replace(node, left=lookup.over(node.left), right=lookup.over(node.right))
        case nodes.Aggregate():
            if not node.keys or any(column >= len(node.keys) for column in lookup.read):
                return None
            below = lookup.moved(dict(enumerate(node.keys)), len(node.child.schema))
            return replace(node, child=below.over(node.child))


def _is_reduced(node: nodes.Node, lookup: _Lookup) -> bool:
    """Whether the node contains a join with the same relations on the same columns already."""
    wanted = frozenset(column for column, _ in lookup.keys)
    while True:
        match node:
            case nodes.Filter():
                node = node.child
            case nodes.Project():
                made = [node.expressions[column] for column in wanted]
                if not all(isinstance(expression, Column) for expression in made):
                    return False
                wanted = frozenset(expression.index for expression in made if isinstance(expression, Column))
                node = node.child
            case nodes.Join() if node.kind in ("inner", "semi") and is_table(node.right):
                met = frozenset(column for column, _ in node.keys)
                if met == wanted and _relations(node.right) == _relations(lookup.table):
                    return True
                if not all(column < len(node.left.schema) for column in wanted):
                    return False
                node = node.left
            case _:
                return False


def _relations(node: nodes.Node) -> frozenset[str]:
    return frozenset(below.name for below in nodes.walk(node) if isinstance(below, nodes.Relation))

"""Candidate keys: sets of columns whose values are unique in a plan's output at every instant."""

from __future__ import annotations

from collections.abc import Iterable

from sash.plan import nodes
from sash.plan.expressions import Column
from sash.plan.patterns import is_nonretroactive

Key = frozenset[int]
Keys = frozenset[Key]


@nodes.once_per_node
def keys(node: nodes.Node) -> Keys:
    """The smallest known keys, with NULLs equal. An empty key means at most one row; no key means possible duplicates.

    >>> from sash.plan.types import BIGINT, Field
    >>> item = nodes.Relation("items", (Field("item", BIGINT),))
    >>> sorted(map(sorted, keys(nodes.Distinct(item))))
    [[0]]
    """
    match node:
        case nodes.Stream() | nodes.Union() | nodes.Expand() | nodes.Generate():
            return frozenset()
        case nodes.Relation():
            return frozenset() if node.key is None else frozenset({Key(node.key)})
        case nodes.Filter() | nodes.Lifetime() | nodes.Over():
            return keys(node.child)
        case nodes.Final():
            return frozenset()
        case nodes.Sessions():
            return keys(node.child)
        case nodes.AssignWindows():
            return frozenset(key | {len(node.schema) - 1} for key in keys(node.child))
        case nodes.TopK():
            return frozenset({Key(node.by)}) if node.limit <= 1 and not node.ranked else keys(node.child)
        case nodes.Project():
            return _projected(node)
        case nodes.Join():
            return _joined(node)
        case nodes.Aggregate():
            return frozenset({Key(range(len(node.keys)))})
        case nodes.Distinct():
            return _smallest({*keys(node.child), _all_columns(node)})
        case nodes.Except():
            return keys(node.left) if node.all else _smallest({*keys(node.left), _all_columns(node)})
        case nodes.Alike():
            number = len(node.left.schema)
            below = keys(node.left) if node.otherwise is None else (Key(),)
            return frozenset(key | {number} for key in below)
        case nodes.Intersect():
            either = {*keys(node.left), *keys(node.right)}
            return _smallest(either if node.all else {*either, _all_columns(node)})


def _all_columns(node: nodes.Node) -> Key:
    return Key(range(len(node.schema)))


def _projected(node: nodes.Project) -> Keys:
    places: dict[int, int] = {}
    for position, expression in enumerate(node.expressions):
        if isinstance(expression, Column):
            places.setdefault(expression.index, position)
    return frozenset(Key(places[column] for column in key) for key in keys(node.child) if key <= places.keys())


def _joined(node: nodes.Join) -> Keys:
    """Pairs of keys, or the key of one side alone if each of its rows matches at most one row of the other.

    A row that an outer join pads with NULLs is identified only by the side that it comes from. So is a row joined with a
    non-retroactive relation: earlier rows may have matched an older version of the same relation row.
    """
    left = keys(node.left)
    if node.kind in ("semi", "anti"):
        return left
    if node.kind == "full":
        return frozenset()
    border = len(node.left.schema)
    right = frozenset(Key(column + border for column in key) for key in keys(node.right))
    found = {a | b for a in left for b in right}
    met_left = {column for column, _ in node.keys}
    met_right = {column + border for _, column in node.keys}
    if node.kind in ("inner", "left") and any(key <= met_right for key in right) and not is_nonretroactive(node.left):
        found |= left
    if node.kind in ("inner", "right") and any(key <= met_left for key in left) and not is_nonretroactive(node.right):
        found |= right
    return _smallest(found)


def _smallest(candidates: Iterable[Key]) -> Keys:
    found = set(candidates)
    return frozenset(key for key in found if not any(other < key for other in found))

"""Relations that change: where they may stand in a plan, and what may be joined with them (paper 5, 4.1 and 5.4).

A row that may be taken back at any time cannot be joined with a relation that changes: what the row got need not be what
the relation says when it goes. The optimizer moves such a join below what makes its input strict where it can
(`push_relation_join_below_negation`); what is left is refused here. A chain of joins with retroactive relations is not:
it is strict only because of the relations themselves, whose rows the joins keep anyway.
"""

from __future__ import annotations

from dataclasses import replace

from sash.errors import UnsupportedSqlError
from sash.plan.nodes import (
    Aggregate,
    Distinct,
    Except,
    Filter,
    Intersect,
    Join,
    Node,
    Project,
    Relation,
    Stream,
    TopK,
    Union,
    walk,
    with_children,
)
from sash.plan.patterns import Pattern, is_nonretroactive, pattern
from sash.plan.tree import window_text


def changing_relation(node: Node) -> Relation | None:
    """The relation that changes which the node is, perhaps thinned; None if it is something else."""
    while isinstance(node, Filter | Project):
        node = node.child
    return node if isinstance(node, Relation) and node.changes else None


def is_strict_for(node: Node, relation: Relation) -> bool:
    """Whether rows of the node may be taken back at any time, for other reasons than a retroactive relation's updates."""
    return pattern(_fixed(node) if relation.retroactive else node) == Pattern.STR


def _fixed(node: Node) -> Node:
    """The node as if retroactive relations did not change."""
    if isinstance(node, Relation):
        return replace(node, changes=False) if node.retroactive else node
    return with_children(node, tuple(_fixed(child) for child in node.children))


def refuse_misused_relations(plan: Node) -> None:
    """Raise UnsupportedSqlError where a relation that changes stands where it cannot."""
    _refuse_unmet(plan, None)
    for node in walk(plan):
        if isinstance(node, Join):
            for side, other in ((node.right, node.left), (node.left, node.right)):
                relation = changing_relation(side)
                if relation is not None and is_strict_for(other, relation):
                    raise UnsupportedSqlError(_reason(relation, other))


def misuses_relations(plan: Node) -> bool:
    """Whether a relation that changes stands where it cannot."""
    try:
        refuse_misused_relations(plan)
    except UnsupportedSqlError:
        return True
    return False


def _reason(relation: Relation, other: Node) -> str:
    kind = "relation" if relation.retroactive else "non-retroactive relation"
    return (
        f"{kind} {relation.name} changes, so it cannot be joined with rows that may be taken back at any time (update "
        f"pattern STR, because of {_culprit(other, relation)}): what such a row got need not be what {relation.name} says "
        f"when it goes. Join {relation.name} further down, or register it with changes=False"
    )


def _culprit(node: Node, relation: Relation) -> str:
    """What to call the lowest operator that makes the node strict."""
    for child in node.children:
        if is_strict_for(child, relation):
            return _culprit(child, relation)
    match node:
        case Stream():
            return f"the window {window_text(node.window, node)} of {node.name}"
        case Relation():
            return f"the updates of relation {node.name}"
        case Join():
            found = [changing_relation(side) for side in node.children]
            names = [side.name for side in found if side is not None]
            if node.kind == "inner" and names:
                return f"the join with relation {names[0]}, which changes"
            return "a join with GROUP BY" if node.kind == "inner" else f"{node.kind.upper()} JOIN"
        case Except():
            return "EXCEPT"
        case Intersect():
            return "INTERSECT"
        case TopK():
            return "LIMIT"
        case Distinct():
            return "DISTINCT over GROUP BY"
        case Filter() | Project() | Aggregate() | Union():
            return "its input"


def _refuse_unmet(node: Node, above: Join | None) -> None:
    """A non-retroactive relation means something only to rows that come and meet it."""
    if isinstance(node, Relation) and is_nonretroactive(node):
        if above is None:
            raise UnsupportedSqlError(
                f"relation {node.name} is non-retroactive, so it can only be met by the rows of a stream: join a stream with "
                f"it (INNER, or LEFT, LEFT SEMI or LEFT ANTI with the stream on the left)"
            )
        return
    for child in node.children:
        if isinstance(node, Filter | Project):
            _refuse_unmet(child, above)
        elif isinstance(node, Join) and _meets(node, child):
            _refuse_unmet(child, node)
        else:
            _refuse_unmet(child, None)


def _meets(node: Join, side: Node) -> bool:
    """Whether rows with times come to the side, each to be joined once and for all."""
    other = node.left if side is node.right else node.right
    kinds = ("inner", "left", "semi", "anti") if side is node.right else ("inner", "right")
    return node.kind in kinds and any(isinstance(below, Stream) for below in walk(other))

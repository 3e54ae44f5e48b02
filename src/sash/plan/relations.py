"""Where relations that change may occur in a plan, and what may be joined with them (paper 5, 4.1 and 5.4).

A row that may be retracted at any time cannot be joined with a relation that changes: the relation may have changed
between the row's arrival and its retraction. Where possible, the optimizer moves such a join below the operator that
makes its input strict (`push_relation_join_below_negation`); the remaining ones are refused here. A chain of joins with
retroactive relations is allowed: it is strict only because of the relations, whose rows the joins keep anyway.
"""

from __future__ import annotations

from dataclasses import replace

from sash.errors import UnsupportedSqlError
from sash.plan import nodes
from sash.plan.patterns import Pattern, is_nonretroactive, pattern
from sash.plan.tree import window_text


def changing_relation(node: nodes.Node) -> nodes.Relation | None:
    """The changing relation that the node reads, perhaps filtered or projected; None for any other node."""
    while isinstance(node, nodes.Filter | nodes.Project):
        node = node.child
    return node if isinstance(node, nodes.Relation) and node.changes else None


def is_strict_for(node: nodes.Node, relation: nodes.Relation) -> bool:
    """Whether rows of the node may be retracted at any time, for other reasons than a retroactive relation's updates."""
    return pattern(_fixed(node) if relation.retroactive else node) == Pattern.STR


def _fixed(node: nodes.Node) -> nodes.Node:
    """The node as if retroactive relations did not change."""
    if isinstance(node, nodes.Relation):
        return replace(node, changes=False) if node.retroactive else node
    return nodes.with_children(node, tuple(_fixed(child) for child in node.children))


def refuse_misused_relations(plan: nodes.Node) -> None:
    """Raise UnsupportedSqlError if a relation that changes is used where it cannot be."""
    _refuse_unjoined(plan, None)
    for node in nodes.walk(plan):
        if isinstance(node, nodes.Join):
            for side, other in ((node.right, node.left), (node.left, node.right)):
                relation = changing_relation(side)
                if relation is not None and is_strict_for(other, relation):
                    raise UnsupportedSqlError(_reason(relation, other))


def misuses_relations(plan: nodes.Node) -> bool:
    """Whether a relation that changes is used where it cannot be."""
    try:
        refuse_misused_relations(plan)
    except UnsupportedSqlError:
        return True
    return False


def _reason(relation: nodes.Relation, other: nodes.Node) -> str:
    kind = "relation" if relation.retroactive else "non-retroactive relation"
    return (
        f"{kind} {relation.name} changes, so it cannot be joined with rows that may be retracted at any time (update "
        f"pattern STR, because of {_culprit(other, relation)}): {relation.name} may have changed by then. "
        f"Join {relation.name} further down, or register it with changes=False"
    )


def _culprit(node: nodes.Node, relation: nodes.Relation) -> str:
    """The lowest operator that makes the node strict, for messages."""
    for child in node.children:
        if is_strict_for(child, relation):
            return _culprit(child, relation)
    match node:
        case nodes.Stream():
            return f"the window {window_text(node.window, node)} of {node.name}"
        case nodes.Relation():
            return f"the updates of relation {node.name}"
        case nodes.Join():
            found = [changing_relation(side) for side in node.children]
            names = [side.name for side in found if side is not None]
            if node.kind == "inner" and names:
                return f"the join with relation {names[0]}, which changes"
            return "a join with GROUP BY" if node.kind == "inner" else f"{node.kind.upper()} JOIN"
        case nodes.Except():
            return "EXCEPT"
        case nodes.Intersect():
            return "INTERSECT"
        case nodes.TopK():
            return "LIMIT"
        case nodes.Over():
            return "OVER"
        case nodes.Alike():
            return "a set of alike queries"
        case nodes.Distinct():
            return "DISTINCT over GROUP BY"
        case nodes.Filter() | nodes.Project() | nodes.Expand() | nodes.Aggregate() | nodes.Union():
            return "its input"
        case nodes.Generate() | nodes.AssignWindows() | nodes.Lifetime() | nodes.Sessions() | nodes.Final():
            return "its input"


def _refuse_unjoined(node: nodes.Node, above: nodes.Join | None) -> None:
    """A non-retroactive relation is defined only as an input of a join with the rows of a stream."""
    if isinstance(node, nodes.Relation) and is_nonretroactive(node):
        if above is None:
            raise UnsupportedSqlError(
                f"relation {node.name} is non-retroactive, so it can only be joined with a stream: use an INNER join, or a LEFT, "
                f"LEFT SEMI or LEFT ANTI join with the stream on the left"
            )
        return
    for child in node.children:
        if isinstance(node, nodes.Filter | nodes.Project):
            _refuse_unjoined(child, above)
        elif isinstance(node, nodes.Join) and _joins_stream(node, child):
            _refuse_unjoined(child, node)
        else:
            _refuse_unjoined(child, None)


def _joins_stream(node: nodes.Join, side: nodes.Node) -> bool:
    """Whether rows of a stream are joined with the side, with matches fixed on arrival."""
    other = node.left if side is node.right else node.right
    kinds = ("inner", "left", "semi", "anti") if side is node.right else ("inner", "right")
    return node.kind in kinds and any(isinstance(below, nodes.Stream) for below in nodes.walk(other))

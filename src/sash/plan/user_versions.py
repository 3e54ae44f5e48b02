"""The versions of the functions and aggregates of users that a plan uses."""

from __future__ import annotations

from sash.plan.compound import walk as walk_expression
from sash.plan.expressions import Expression, UserCall
from sash.plan.nodes import Aggregate, Expand, Filter, Join, Node, Project, walk


def user_versions(plan: Node) -> dict[str, str]:
    """Name -> version, in order of names."""
    found: dict[str, str] = {}
    for node in walk(plan):
        if isinstance(node, Aggregate):
            codes = [call.detail.user for call in node.aggregates if call.detail is not None]
            found.update({code.name: code.version for code in codes if code is not None})
        for expression in _expressions(node):
            for part in walk_expression(expression):
                if isinstance(part, UserCall):
                    found[part.code.name] = part.code.version
    return dict(sorted(found.items()))


def _expressions(node: Node) -> tuple[Expression, ...]:
    match node:
        case Filter():
            return (node.predicate,)
        case Project():
            return node.expressions
        case Expand():
            return tuple(expression for made in node.lists for expression in made)
        case Join(condition=condition) if condition is not None:
            return (condition,)
        case _:
            return ()

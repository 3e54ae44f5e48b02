"""The versions of the functions and aggregates of users that a plan uses."""

from __future__ import annotations

from sash.plan.compound import walk as walk_expression
from sash.plan.expressions import UserCall
from sash.plan.nodes import Aggregate, Node, computed, walk


def user_versions(plan: Node) -> dict[str, str]:
    """Name -> version, in order of names."""
    found: dict[str, str] = {}
    for node in walk(plan):
        if isinstance(node, Aggregate):
            codes = [call.detail.user for call in node.aggregates if call.detail is not None]
            found.update({code.name: code.version for code in codes if code is not None})
        for expression in computed(node):
            for part in walk_expression(expression):
                if isinstance(part, UserCall):
                    found[part.code.name] = part.code.version
    return dict(sorted(found.items()))

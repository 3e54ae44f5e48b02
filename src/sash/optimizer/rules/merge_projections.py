"""Merge adjacent projections and adjacent filters, and remove projections that change nothing."""

from __future__ import annotations

from collections import Counter

from sash.optimizer.rewriting import bottom_up, filtered, named
from sash.plan.compound import walk
from sash.plan.expression_safety import may_fail
from sash.plan.expressions import Column, Expression, Literal, SparkFunction, conjuncts, runs_in_sash, substitute
from sash.plan.nodes import Filter, Node, Project


def merge_projections(plan: Node) -> Node:
    """Compose projections where no computed column would be computed twice, and conjoin filters.

    A filter that may fail stays above the filter that guards it. The answer keeps its column names.

    >>> from sash.testing.rewrites import show
    >>> show(merge_projections, "SELECT q.k FROM (SELECT * FROM s [RANGE 1 HOUR] WHERE v > 3) q WHERE q.k = 7")
    Project k#1
      Filter k#1 = 7
        Filter v#2 > 3
          Stream s [RANGE 1 HOUR]
    =>
    Project k#1
      Filter v#2 > 3 AND k#1 = 7
        Stream s [RANGE 1 HOUR]
    """
    return named(bottom_up(plan, _merge), plan.schema)


def _merge(node: Node) -> Node:
    match node:
        case Project(Project() as inner) if _computes_once(node.expressions, inner.expressions):
            expressions = tuple(substitute(expression, inner.expressions) for expression in node.expressions)
            return _merge(Project(inner.child, node.names, expressions))
        case Project() if _is_identity(node):
            return node.child
        case Filter(Filter() as inner) if not may_fail(node.predicate):
            return filtered(inner.child, [*conjuncts(inner.predicate), *conjuncts(node.predicate)])
        case _:
            return node


def _computes_once(outer: tuple[Expression, ...], inner: tuple[Expression, ...]) -> bool:
    """Whether nothing is computed twice, and no part in Sash that the other has in Spark's engine."""
    if any(map(runs_in_sash, outer)) and _has(inner, SparkFunction):
        return False
    uses = Counter(part.index for expression in outer for part in walk(expression) if isinstance(part, Column))
    return all(uses[position] <= 1 or isinstance(made, Column | Literal) for position, made in enumerate(inner))


def _has(expressions: tuple[Expression, ...], kind: type[SparkFunction]) -> bool:
    return any(isinstance(part, kind) for expression in expressions for part in walk(expression))


def _is_identity(node: Project) -> bool:
    return len(node.expressions) == len(node.child.schema) and all(
        isinstance(expression, Column) and expression.index == position
        for position, expression in enumerate(node.expressions)
    )

"""Apply the DISTINCT over a join to the join's inputs first, where that costs less (paper 5, 5.4.2).

The set of joined rows depends only on the sets of rows that are joined. If the inputs have few duplicates, the rewrite
does not pay: rows then pass through two operators instead of one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sash.optimizer.rewriting import columns, condition_columns, filtered, select, somewhere
from sash.plan.expression_safety import respects_equality
from sash.plan.expressions import Expression, columns_of, conjuncts, remap
from sash.plan.keys import keys
from sash.plan.nodes import Distinct, Filter, Join, Node, Project, Stream, mirrored, walk
from sash.plan.patterns import is_table


def push_distinct_below_join(plan: Node) -> Iterator[Node]:
    """Propose a DISTINCT of the columns that are read on both inputs, or on one, of a join of streams on equal keys.

    >>> from sash.testing.rewrites import show
    >>> show(push_distinct_below_join, "SELECT DISTINCT s.k FROM s [RANGE 1 HOUR] JOIN r [RANGE 1 HOUR] ON s.k = r.k")
    Distinct
      Project k#1
        Join inner ON k#1 = k#1
          Stream s [RANGE 1 HOUR]
          Stream r [RANGE 1 HOUR]
    =>
    Distinct
      Project k#0
        Join inner ON k#0 = k#0
          Distinct
            Project k#1
              Stream s [RANGE 1 HOUR]
          Distinct
            Project k#1
              Stream r [RANGE 1 HOUR]
    """
    return somewhere(plan, lambda node: _reduced(node) if isinstance(node, Distinct) else iter(()))


@dataclass(frozen=True)
class JoinUnderDistinct:
    """An inner join under a DISTINCT, perhaps with a filter and a projection in between.

    If one side of the join is a table, it is the right one. `read` are the join's columns that are read above it.
    """

    join: Join
    parts: list[Expression]
    names: tuple[str, ...]
    expressions: tuple[Expression, ...]

    @property
    def read(self) -> frozenset[int]:
        return frozenset().union(*map(columns_of, (*self.expressions, *self.parts)))


def join_under(node: Distinct) -> JoinUnderDistinct | None:
    """The join under the DISTINCT, if there is one."""
    top = node.child
    below = top.child if isinstance(top, Project) else top
    parts = conjuncts(below.predicate) if isinstance(below, Filter) else []
    join = below.child if isinstance(below, Filter) else below
    if not isinstance(join, Join) or join.kind != "inner":
        return None
    expressions = top.expressions if isinstance(top, Project) else columns(top)
    names = tuple(field.name for field in top.schema)
    if is_table(join.left) and not is_table(join.right):
        border, size = len(join.left.schema), len(join.schema)
        at = {column: (column + size - border) % size for column in range(size)}
        join, parts = mirrored(join), [remap(part, at) for part in parts]
        expressions = tuple(remap(expression, at) for expression in expressions)
    return JoinUnderDistinct(join, parts, names, expressions)


def _reduced(node: Distinct) -> Iterator[Node]:
    found = join_under(node)
    if found is None:
        return
    join, tested = found.join, found.parts
    if join.condition is not None:
        tested = [*tested, join.condition]
    if not join.keys or not all(map(respects_equality, (*found.expressions, *tested))):
        return
    if not (_has_stream(join.left) and _has_stream(join.right)):
        return
    border = len(join.left.schema)
    met_left, met_right = condition_columns(join)
    read_left = sorted(met_left | {column for column in found.read if column < border})
    read_right = sorted(met_right | {column - border for column in found.read if column >= border})
    left, right = select(join.left, read_left), select(join.right, read_right)
    at = {column: position for position, column in enumerate(read_left)}
    at |= {column + border: position + len(read_left) for position, column in enumerate(read_right)}
    for on_left, on_right in ((True, True), (True, False), (False, True)):
        if (on_left and keys(left)) or (on_right and keys(right)):
            continue
        reduced = Join(
            Distinct(left) if on_left else left,
            Distinct(right) if on_right else right,
            "inner",
            tuple((at[one], at[other + border] - len(read_left)) for one, other in join.keys),
            None if join.condition is None else remap(join.condition, at),
        )
        top = filtered(reduced, [remap(part, at) for part in found.parts])
        yield Distinct(Project(top, found.names, tuple(remap(made, at) for made in found.expressions)))


def _has_stream(node: Node) -> bool:
    return any(isinstance(below, Stream) for below in walk(node))

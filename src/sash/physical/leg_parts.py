"""Legs in normal form: what a leg needs of its stream, as conjuncts and expressions over the stream's own columns.

Filters and projections above a stream are substituted into one another. Where the leg joins with a table, or expands rows,
only the part below the lowest such node is; the part above it is kept as a node over columns c0 ... cn, without names and window.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sash.physical.nodes import StreamLeg
from sash.physical.shapes import calls_user, needs_spark
from sash.physical.state_names import expression_text
from sash.plan.compound import Compound, rewrite
from sash.plan.expression_safety import may_fail
from sash.plan.expressions import Column, Expression, conjuncts, substitute
from sash.plan.nodes import Expand, Filter, Join, Node, Project, Stream, Unbounded
from sash.plan.types import Field

_LARGEST = 2_000
"""The largest expression that is made by substitution, in parts; a leg with a larger one is left as it is."""


@dataclass(frozen=True)
class LegParts:
    """A leg in normal form.

    A row is accepted if all `conjuncts` hold: those that never fail first, in order of their texts; each that may fail is
    evaluated only where those before it hold. `columns` are what the leg, or its upper part `lookups`, reads.
    """

    stream: Stream
    conjuncts: tuple[Expression, ...]
    columns: tuple[Expression, ...]
    lookups: Node | None


def leg_parts(leg: StreamLeg) -> LegParts | None:
    """The leg in normal form; None if it must be computed as it is."""
    chain: list[Node] = [leg.node]
    while chain[-1].children:
        chain.append(chain[-1].children[0])
    source = chain.pop()
    assert isinstance(source, Stream)
    last = max(
        (position for position, node in enumerate(chain) if isinstance(node, Join | Expand) or calls_user(node)),
        default=-1,
    )
    upper = chain[: last + 1]
    if any(map(needs_spark, upper)):
        return None
    columns: tuple[Expression, ...] = tuple(Column(n, f.name, f.dtype) for n, f in enumerate(source.schema))
    predicates: list[Expression] = []
    for node in reversed(chain[len(upper) :]):
        if isinstance(node, Filter):
            predicates += conjuncts(substitute(node.predicate, columns))
        else:
            assert isinstance(node, Project)
            columns = tuple(substitute(expression, columns) for expression in node.expressions)
        if any(isinstance(made, Compound) and made.parts > _LARGEST for made in (*columns, *predicates)):
            return None
    names = [field.name for field in source.schema]
    texts = {expression_text(one, names): one for one in predicates}
    safe = [texts[text] for text in sorted(texts) if not may_fail(texts[text])]
    risky = [one for one in texts.values() if may_fail(one)]
    lookups = _over_scan(upper, columns) if upper else None
    return LegParts(replace(source, window=Unbounded()), (*safe, *risky), columns, lookups)


SCANNED = "scanned"
"""The name of the stream that stands for the columns below a leg's lookups."""


def _over_scan(upper: list[Node], columns: tuple[Expression, ...]) -> Node:
    """The upper part of a leg over the columns that are computed below it, without names."""
    schema = tuple(Field(f"c{n}", column.dtype) for n, column in enumerate(columns))
    made: Node = Stream(SCANNED, schema, 0, Unbounded())
    for node in reversed(upper):
        match node:
            case Filter():
                made = Filter(made, _unnamed(node.predicate))
            case Project():
                names = tuple(f"c{n}" for n in range(len(node.expressions)))
                made = Project(made, names, tuple(map(_unnamed, node.expressions)))
            case Expand():
                lists = tuple(tuple(map(_unnamed, columns)) for columns in node.lists)
                made = Expand(made, tuple(f"c{n}" for n in range(len(node.names))), lists)
            case Join():
                condition = None if node.condition is None else _unnamed(node.condition)
                made = Join(made, node.right, node.kind, node.keys, condition)
            case _:
                raise AssertionError(f"{type(node).__name__} does not run in a leg")
    return made


def _unnamed(expression: Expression) -> Expression:
    return rewrite(expression, lambda part: replace(part, name="") if isinstance(part, Column) else None)

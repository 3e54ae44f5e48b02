"""The shape of a query over one window: what is done to rows, what is summed up over them, what is done to that.

A plan is a chain of nodes above one stream. The filters and projections at its foot are flattened into expressions over
the stream's own columns, so that queries which differ only in how they are written share their summaries. The first
node that brings rows together is the core, which is merged from sub-windows; the rest runs on the merged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from sash.errors import UnsupportedSqlError
from sash.operators.scalar.evaluate import supports
from sash.plan.expressions import Column, Expression, rewrite, substitute
from sash.plan.nodes import Aggregate, Distinct, Filter, Node, Project, Stream, TopK
from sash.plan.types import Schema
from sash.window_store.answers import Tables
from sash.window_store.core import Core
from sash.window_store.ordering import order_of
from sash.window_store.rows import Rows


@dataclass(frozen=True)
class Shape:
    """A query, ready to be evaluated piece by piece."""

    stream: Stream
    core: Core
    rest: tuple[Node, ...]
    schema: Schema

    def answer(self, tables: Tables) -> pa.Table:
        """The answer, from the merged summaries."""
        rows = self.core.merged(tables)
        for node in self.rest:
            rows = _above(node, rows)
        columns = [column.cast(field.dtype) for column, field in zip(rows.columns, self.schema, strict=True)]
        return pa.Table.from_arrays(columns, schema=pa.schema([(field.name, field.dtype) for field in self.schema]))


def shape_of(plan: Node, signed: bool = False) -> Shape:
    """The shape of a bound plan; a plan that is not a chain above one stream is refused."""
    chain: list[Node] = []
    node = plan
    while not isinstance(node, Stream):
        if not isinstance(node, Filter | Project | Aggregate | Distinct | TopK):
            raise UnsupportedSqlError(
                "a snapshot reads one window: for joins, unions and set operators keep the answer of a query with "
                "engine.keep(engine.sql(...), name=...) and ask that"
            )
        chain.insert(0, node)
        node = node.child
    filters: list[Expression] = []
    columns: tuple[Expression, ...] = _identity(node.schema, named=False)
    while chain:
        match chain[0]:
            case Filter(predicate=predicate):
                filters.append(_plain(substitute(predicate, columns)))
            case Project(expressions=expressions):
                columns = tuple(_plain(substitute(part, columns)) for part in expressions)
            case _:
                break
        chain.pop(0)
    core = chain.pop(0) if chain else None
    assert core is None or isinstance(core, Aggregate | Distinct | TopK)
    _refuse([*filters, *columns])
    for above in chain:
        _check_above(above)
    return Shape(node, Core(tuple(filters), columns, core, signed), tuple(chain), plan.schema)


def _identity(schema: Schema, named: bool = True) -> tuple[Expression, ...]:
    return tuple(Column(i, field.name if named else "", field.dtype) for i, field in enumerate(schema))


def _plain(expression: Expression) -> Expression:
    """Columns without names: two ways to name a column are no two summaries."""
    return rewrite(expression, lambda part: replace(part, name="") if isinstance(part, Column) else None)


def _refuse(expressions: Sequence[Expression]) -> None:
    for expression in expressions:
        missing = supports(expression)
        if missing is not None:
            raise UnsupportedSqlError(f"a snapshot cannot evaluate {missing}: register the stream with it computed")


def _check_above(node: Node) -> None:
    match node:
        case Filter():
            _refuse([node.predicate])
        case Project():
            _refuse(node.expressions)
        case Aggregate():
            late = next((call.function for call in node.aggregates if call.function in ("first", "last")), None)
            if late is not None:
                raise UnsupportedSqlError(
                    f"{late.upper()} goes by the times of its rows, and rows made by GROUP BY, DISTINCT or LIMIT have "
                    "none: use MIN_BY or MAX_BY with a column"
                )


def _above(node: Node, rows: Rows) -> Rows:
    """A node over rows that are all there."""
    match node:
        case Filter():
            return rows.where(node.predicate)
        case Project():
            return rows.project(node.expressions)
        case TopK():
            order = order_of(rows.columns, node.order)
            return rows.take(order[node.offset : node.offset + node.limit])
        case Aggregate() | Distinct():
            core = Core((), _identity(node.children[0].schema), node)
            return core.merged(core.build(Rows(rows.columns, rows.count)))
        case _:
            raise AssertionError(f"{type(node).__name__} is not in a chain")

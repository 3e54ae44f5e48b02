"""Parses queries over a kept window, which need only the layouts of the windows.

A plan is a chain of nodes over one stream. The filters and projections at its bottom are rewritten into expressions over
the stream's own columns, so that queries which differ only in their text share their summaries. The first node that
combines rows is the core, which is merged from sub-windows. The nodes above it run on the merged rows.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from sash.errors import StoreError, UnknownNameError, UnsupportedSqlError
from sash.operators.scalar.evaluate import supports
from sash.plan.catalog import Catalog, StreamEntry
from sash.plan.compound import rewrite
from sash.plan.expressions import Column, Expression, substitute
from sash.plan.nodes import (
    Aggregate,
    AssignWindows,
    Distinct,
    Expand,
    Filter,
    Generate,
    Lifetime,
    Node,
    Over,
    Project,
    SortKey,
    Stream,
    TopK,
    walk,
)
from sash.plan.snapshot_aggregates import refuse_standing_aggregates
from sash.plan.types import Schema, type_name
from sash.sql import Query, parse_query
from sash.window_store.spans import Span, span_of
from sash.window_store.store.layout import StoreLayout
from sash.window_store.store.tables import sort_positions
from sash.window_store.summaries.base import RowBatch, Tables
from sash.window_store.summaries.core import Core


@dataclass(frozen=True)
class QueryShape:
    """A query in three parts: its stream, the core that is merged from sub-windows, and the nodes above the core.

    The rows of its answer are in `order`.
    """

    stream: Stream
    core: Core
    above: tuple[Node, ...]
    schema: Schema
    order: tuple[SortKey, ...] = ()

    def result(self, tables: Tables) -> pa.Table:
        """The answer of the query, from merged summaries."""
        rows = self.core.result(tables)
        for node in self.above:
            rows = _apply(node, rows)
        if self.order:
            rows = rows.take(sort_positions(rows.columns, self.order))
        columns = [column.cast(field.dtype) for column, field in zip(rows.columns, self.schema, strict=True)]
        return pa.Table.from_arrays(columns, schema=pa.schema([(field.name, field.dtype) for field in self.schema]))


@dataclass(frozen=True)
class ParsedQueries:
    """Queries over the kept window `name` that differ only in the lengths of their windows."""

    name: str
    shapes: tuple[QueryShape, ...]
    spans: tuple[Span, ...]


def parse_queries(
    texts: Sequence[str], layouts: Mapping[str, StoreLayout], streams: Collection[str] = ()
) -> ParsedQueries:
    """Parse queries of one pass. `layouts` are the kept windows by lower-case name, `streams` all registered streams."""
    catalog = Catalog({name: _entry(name, layout) for name, layout in layouts.items()})
    catalog.not_carried.update({name: dict(layout.not_carried) for name, layout in layouts.items()})
    parsed: list[Query] = []
    for text in texts:
        try:
            parsed.append(_checked(parse_query(text, catalog)))
        except UnknownNameError as problem:
            _refuse_unkept(text, layouts, streams, problem)
            raise
    names = {node.name.lower() for query in parsed for node in walk(query.plan) if isinstance(node, Stream)}
    if len(names) != 1:
        raise UnsupportedSqlError(
            "a snapshot reads one kept window: to combine several, keep the answer of a query over them"
        )
    name = names.pop()
    layout = layouts[name]
    shapes = tuple(shape_of(query.plan, layout.kind == "result", query.order) for query in parsed)
    spans = tuple(span_of(shape.stream.window, layout) for shape in shapes)
    if any(shape.core.summaries != shapes[0].core.summaries for shape in shapes):
        raise UnsupportedSqlError(
            "queries of one pass may differ in their windows only: take separate snapshots for other filters, groups or "
            "aggregates"
        )
    return ParsedQueries(name, shapes, spans)


def _checked(query: Query) -> Query:
    """The query; an error if it returns values that a snapshot cannot show."""
    if query.schema:
        stored = query.plan.schema
        shown = [f.dtype for f, kept in zip(query.schema, stored, strict=True) if f.dtype != kept.dtype]
        raise UnsupportedSqlError(
            f"a snapshot does not return {type_name(shown[0])}: CAST it AS STRING, or select what you need of it"
        )
    return query


def shape_of(plan: Node, signed: bool = False, order: tuple[SortKey, ...] = ()) -> QueryShape:
    """The shape of a bound plan. Raises an error unless the plan is a chain over one stream."""
    refuse_standing_aggregates(plan)
    chain: list[Node] = []
    node = plan
    while not isinstance(node, Stream):
        if isinstance(node, AssignWindows | Lifetime):
            raise UnsupportedSqlError(
                "a snapshot reads the rows of a window as they are: it takes TUMBLE, but neither HOP nor CUMULATE, and compares "
                "NOW(), the instant of the snapshot, with the time of the stream alone"
            )
        if isinstance(node, Over | Generate | Expand):
            raise UnsupportedSqlError(
                "a snapshot runs neither window functions (OVER) nor what makes several rows of one (explode, GROUPING SETS, "
                "ROLLUP, CUBE, UNPIVOT): keep the answer of a query with engine.keep(engine.sql(...), name=...) and query that"
            )
        if not isinstance(node, Filter | Project | Aggregate | Distinct | TopK):
            raise UnsupportedSqlError(
                "a snapshot reads one window: for joins, unions and set operators keep the answer of a query with "
                "engine.keep(engine.sql(...), name=...) and query that"
            )
        chain.insert(0, node)
        node = node.child
    filters: list[Expression] = []
    columns: tuple[Expression, ...] = _columns(node.schema, named=False)
    while chain:
        match chain[0]:
            case Filter(predicate=predicate):
                filters.append(_unnamed(substitute(predicate, columns)))
            case Project(expressions=expressions):
                columns = tuple(_unnamed(substitute(part, columns)) for part in expressions)
            case _:
                break
        chain.pop(0)
    core = chain.pop(0) if chain else None
    assert core is None or isinstance(core, Aggregate | Distinct | TopK)
    _check_expressions([*filters, *columns])
    for above in chain:
        _check_above(above)
    return QueryShape(node, Core(tuple(filters), columns, core, signed), tuple(chain), plan.schema, order)


def _entry(name: str, layout: StoreLayout) -> StreamEntry:
    """The catalog entry of a kept window, which may be attached under another name than its stream's."""
    time = layout.time if layout.kind != "result" else layout.schema[0].name
    return StreamEntry(layout.name if layout.name.lower() == name else name, layout.schema, time)


def _refuse_unkept(
    text: str, layouts: Mapping[str, StoreLayout], streams: Collection[str], problem: UnknownNameError
) -> None:
    """Raise an error that explains how to keep a window, if the unknown name is a stream whose window is not kept."""
    for name in streams:
        if name.lower() not in layouts and re.search(rf"\b{re.escape(name)}\b", text, re.IGNORECASE):
            raise StoreError(
                f"{name} is not kept, so there is no window to read: keep it with "
                f'engine.keep({name!r}, window="60 seconds", every="1 second"), or with the statement '
                f"KEEP {name} WINDOW '60 seconds' EVERY '1 second'"
            ) from problem


def _columns(schema: Schema, named: bool = True) -> tuple[Expression, ...]:
    return tuple(Column(i, field.name if named else "", field.dtype) for i, field in enumerate(schema))


def _unnamed(expression: Expression) -> Expression:
    """Remove the names of columns, so that an alias does not make another summary."""
    return rewrite(expression, lambda part: replace(part, name="") if isinstance(part, Column) else None)


def _check_expressions(expressions: Sequence[Expression]) -> None:
    for expression in expressions:
        missing = supports(expression)
        if missing is not None:
            raise UnsupportedSqlError(f"a snapshot cannot evaluate {missing}: compute it in the registered stream")


def _check_above(node: Node) -> None:
    match node:
        case Filter():
            _check_expressions([node.predicate])
        case Project():
            _check_expressions(node.expressions)
        case Aggregate():
            timed = next((call.function for call in node.aggregates if call.function in ("first", "last")), None)
            if timed is not None:
                raise UnsupportedSqlError(
                    f"{timed.upper()} needs the times of its rows, and the rows of GROUP BY, DISTINCT and LIMIT have none: "
                    "use MIN_BY or MAX_BY with a column"
                )


def _apply(node: Node, rows: RowBatch) -> RowBatch:
    """Apply a node to merged rows."""
    match node:
        case Filter():
            return rows.where(node.predicate)
        case Project():
            return rows.project(node.expressions)
        case TopK():
            order = sort_positions(rows.columns, node.order)
            return rows.take(order[node.offset : node.offset + node.limit])
        case Aggregate() | Distinct():
            core = Core((), _columns(node.children[0].schema), node)
            return core.result(core.build(RowBatch(rows.columns, rows.count)))
        case _:
            raise AssertionError(f"{type(node).__name__} is not in a chain")

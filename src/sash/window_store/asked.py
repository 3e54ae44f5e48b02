"""Queries over kept windows, read: their shapes and spans, from the layouts of the windows alone."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sash.errors import StoreError, UnknownNameError, UnsupportedSqlError
from sash.plan.catalog import Catalog, StreamEntry
from sash.plan.nodes import Stream, walk
from sash.sql import parse
from sash.window_store.manifest import Layout
from sash.window_store.shape import Shape, shape_of
from sash.window_store.spans import Span, span_of


@dataclass(frozen=True)
class Asked:
    """Queries that differ in their windows only, over the kept window of that name."""

    window: str
    shapes: tuple[Shape, ...]
    spans: tuple[Span, ...]


def asked(texts: Sequence[str], layouts: Mapping[str, Layout], registered: Collection[str] = ()) -> Asked:
    """Read the queries. `layouts` are of the windows that are kept, by lower-case name; `registered` are the streams
    that there are, kept or not."""
    catalog = Catalog({name: _entry(name, layout) for name, layout in layouts.items()})
    plans = []
    for text in texts:
        try:
            plans.append(parse(text, catalog))
        except UnknownNameError as problem:
            _refuse_unkept(text, layouts, registered, problem)
            raise
    names = {node.name.lower() for plan in plans for node in walk(plan) if isinstance(node, Stream)}
    if len(names) != 1:
        raise UnsupportedSqlError("a snapshot reads one kept window; keep the answer of a query to ask about more")
    name = names.pop()
    layout = layouts[name]
    shapes = tuple(shape_of(plan, layout.kind == "result") for plan in plans)
    spans = tuple(span_of(shape.stream.window, layout) for shape in shapes)
    if any(shape.core.summaries != shapes[0].core.summaries for shape in shapes):
        raise UnsupportedSqlError(
            "queries of one pass differ in their windows only: ask those with other filters, groups or aggregates apart"
        )
    return Asked(name, shapes, spans)


def _entry(name: str, layout: Layout) -> StreamEntry:
    """What the window's name means in SQL; it may have been attached under another than its stream's."""
    time = layout.time if layout.kind != "result" else layout.schema[0].name
    return StreamEntry(layout.name if layout.name.lower() == name else name, layout.schema, time)


def _refuse_unkept(
    text: str, layouts: Mapping[str, Layout], registered: Collection[str], problem: UnknownNameError
) -> None:
    """If the unknown name is of a stream whose window nobody keeps, say how to keep it."""
    for name in registered:
        if name.lower() not in layouts and re.search(rf"\b{re.escape(name)}\b", text, re.IGNORECASE):
            raise StoreError(
                f"{name} is not kept, so there is no window to look at: start keeping it with "
                f'engine.keep({name!r}, window="60 seconds", every="1 second"), or as a statement with '
                f"KEEP {name} WINDOW '60 seconds' EVERY '1 second'"
            ) from problem

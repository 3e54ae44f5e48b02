"""A catalog for the tests of the SQL front end, and plans as compact text."""

from __future__ import annotations

import pyarrow as pa

from sash.plan.catalog import Catalog, RelationEntry, StreamEntry
from sash.plan.describe import describe, describe_aggregate
from sash.plan.nodes import (
    Aggregate,
    Except,
    Expand,
    Filter,
    Generate,
    Intersect,
    Join,
    Node,
    Project,
    Range,
    Relation,
    Rows,
    SortKey,
    Stream,
    TopK,
    Window,
)
from sash.plan.types import BIGINT, DOUBLE, INT, STRING, TIMESTAMP, Field
from sash.sql import parse

SALES = StreamEntry(
    "sales",
    (
        Field("ts", TIMESTAMP),
        Field("item", INT),
        Field("price", pa.decimal128(10, 2)),
        Field("qty", BIGINT),
        Field("name", STRING),
        Field("weight", DOUBLE),
    ),
    "ts",
)
CLICKS = StreamEntry("clicks", (Field("ts", TIMESTAMP), Field("item", INT), Field("user", STRING)), "ts")
VIEWS = StreamEntry("Views", (Field("item", BIGINT), Field("seen", TIMESTAMP)), "seen")
ITEMS = RelationEntry("items", (Field("item", INT), Field("label", STRING)))
RATES = RelationEntry("rates", (Field("item", INT), Field("rate", DOUBLE)), retroactive=False, changes=True)


def catalog() -> Catalog:
    return Catalog({"sales": SALES, "clicks": CLICKS, "views": VIEWS}, {"items": ITEMS, "rates": RATES})


def plan_of(text: str) -> Node:
    return parse(text, catalog())


def tree(text: str) -> list[str]:
    """The plan of a query, one line per node, two blanks per level."""
    return lines(plan_of(text))


def lines(node: Node, depth: int = 0) -> list[str]:
    result = ["  " * depth + _line(node)]
    for child in node.children:
        result.extend(lines(child, depth + 1))
    return result


def columns(text: str) -> list[str]:
    """The output columns of a query: name and type."""
    return [str(field) for field in plan_of(text).schema]


def _line(node: Node) -> str:
    match node:
        case Stream():
            return f"Stream {node.name} {_window(node.window)}"
        case Relation():
            return f"Relation {node.name}"
        case Filter():
            return f"Filter {describe(node.predicate)}"
        case Project():
            parts = zip(node.names, (describe(e) for e in node.expressions), strict=True)
            return "Project " + ", ".join(text if text == name else f"{text} AS {name}" for name, text in parts)
        case Expand():
            lists = [", ".join(map(describe, made)) for made in node.lists]
            return f"Expand [{', '.join(node.names)}] {'; '.join(lists)}"
        case Generate():
            return f"Generate {'outer ' if node.outer else ''}{describe(node.array)}"
        case Join():
            keys = " ".join(f"{node.left.schema[a].name}#{a}={node.right.schema[b].name}#{b}" for a, b in node.keys)
            condition = "" if node.condition is None else f" IF {describe(node.condition)}"
            return f"Join {node.kind}{' ' if keys else ''}{keys}{condition}"
        case Aggregate():
            keys = ", ".join(node.child.schema[key].name for key in node.keys)
            return f"Aggregate [{keys}] {', '.join(map(describe_aggregate, node.aggregates))}".rstrip()
        case Except() | Intersect():
            return type(node).__name__ + (" ALL" if node.all else "")
        case TopK():
            order = ", ".join(_sort_key(key, node) for key in node.order)
            return f"TopK [{order}] {node.limit}" + (f" after {node.offset}" if node.offset else "")
        case _:
            return type(node).__name__


def _sort_key(key: SortKey, node: TopK) -> str:
    nulls = "" if key.nulls_first != key.descending else " NULLS " + ("FIRST" if key.nulls_first else "LAST")
    return node.schema[key.column].name + (" DESC" if key.descending else "") + nulls


def _window(window: Window) -> str:
    match window:
        case Range():
            return f"RANGE {window.length}" + (f" SLIDE {window.slide}" if window.slide else "")
        case Rows():
            return f"ROWS {window.count}" + (f" BY {window.partition}" if window.partition else "")
        case _:
            return "UNBOUNDED"

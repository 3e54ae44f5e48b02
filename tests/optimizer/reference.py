"""What a logical plan means at one instant, worked out row by row: the bag of rows over given contents of its sources."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, assert_never

from sash.plan.expressions import AggregateCall, Call, Case, Cast, Column, Expression, Literal, SparkFunction
from sash.plan.nodes import (
    Aggregate,
    Distinct,
    Except,
    Expand,
    Filter,
    Generate,
    Intersect,
    Join,
    Node,
    Project,
    Relation,
    Stream,
    TopK,
    Union,
)

Row = tuple[Any, ...]
Sources = Mapping[str, list[Row]]


def rows_of(node: Node, sources: Sources) -> list[Row]:
    """The answer, duplicates included, in any order."""
    match node:
        case Stream() | Relation():
            return sources[node.name]
        case Filter():
            return [row for row in rows_of(node.child, sources) if value(node.predicate, row) is True]
        case Project():
            return [tuple(value(e, row) for e in node.expressions) for row in rows_of(node.child, sources)]
        case Expand():
            below = rows_of(node.child, sources)
            return [tuple(value(e, row) for e in made) for row in below for made in node.lists]
        case Generate():
            made = []
            for row in rows_of(node.child, sources):
                elements = value(node.array, row) or []
                rows = list(enumerate(elements)) or ([(None, None)] if node.outer else [])
                made += [(*(row[column] for column in node.columns), *each) for each in rows]
            return made
        case Join():
            return _join(node, rows_of(node.left, sources), rows_of(node.right, sources))
        case Aggregate():
            return _aggregate(node, rows_of(node.child, sources))
        case Distinct():
            return list(dict.fromkeys(rows_of(node.child, sources)))
        case Union():
            return rows_of(node.left, sources) + rows_of(node.right, sources)
        case Except() | Intersect():
            left, right = Counter(rows_of(node.left, sources)), Counter(rows_of(node.right, sources))
            if isinstance(node, Intersect):
                both = left & right
                return list(both.elements() if node.all else both)
            return list((left - right).elements()) if node.all else [row for row in left if row not in right]
        case TopK():
            rows = sorted(rows_of(node.child, sources), key=_ascending)
            for key in reversed(node.order):
                rows.sort(key=lambda row, at=key.column: _ascending((row[at],)), reverse=key.descending)  # type: ignore[misc]
            groups: dict[Row, list[Row]] = {}
            for row in rows:
                groups.setdefault(tuple(row[n] for n in node.by), []).append(row)
            return [row for group in groups.values() for row in group[node.offset : node.offset + node.limit]]
        case _:
            assert_never(node)


def _ascending(row: Row) -> tuple[Any, ...]:
    return tuple((cell is not None, cell if cell is not None else 0) for cell in row)


def _join(node: Join, left: list[Row], right: list[Row]) -> list[Row]:
    def match(one: Row, other: Row) -> bool:
        if any(one[a] is None or one[a] != other[b] for a, b in node.keys):
            return False
        return node.condition is None or value(node.condition, one + other) is True

    pairs = [(a, b) for a, one in enumerate(left) for b, other in enumerate(right) if match(one, other)]
    met_left, met_right = {a for a, _ in pairs}, {b for _, b in pairs}
    if node.kind in ("semi", "anti"):
        return [row for place, row in enumerate(left) if (place in met_left) == (node.kind == "semi")]
    found = [left[a] + right[b] for a, b in pairs]
    nothing_left, nothing_right = (None,) * len(node.left.schema), (None,) * len(node.right.schema)
    if node.kind in ("left", "full"):
        found += [row + nothing_right for place, row in enumerate(left) if place not in met_left]
    if node.kind in ("right", "full"):
        found += [nothing_left + row for place, row in enumerate(right) if place not in met_right]
    return found


def _aggregate(node: Aggregate, rows: list[Row]) -> list[Row]:
    groups: dict[Row, list[Row]] = {} if node.keys else {(): []}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in node.keys), []).append(row)
    return [key + tuple(_call(call, group) for call in node.aggregates) for key, group in groups.items()]


def _call(call: AggregateCall, rows: list[Row]) -> Any:
    if call.function == "count_star":
        return len(rows)
    cells = [row[call.arguments[0].index] for row in rows if row[call.arguments[0].index] is not None]
    if call.distinct:
        cells = list(dict.fromkeys(cells))
    if call.function == "count":
        return len(cells)
    functions: dict[str, Callable[[list[Any]], Any]] = {"sum": sum, "min": min, "max": max}
    return functions[call.function](cells) if cells else None


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "add": lambda a, b: a + b,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: a / b,
    "not": lambda a: not a,
}


def value(expression: Expression, row: Row) -> Any:
    """The expression on one row; both sides of AND and OR are worked out, so that what can fail does."""
    match expression:
        case Column():
            return row[expression.index]
        case Literal():
            return expression.value
        case Cast():
            return value(expression.argument, row)
        case Case():
            for when, then in expression.branches:
                if value(when, row) is True:
                    return value(then, row)
            return None if expression.otherwise is None else value(expression.otherwise, row)
        case Call():
            cells = [value(argument, row) for argument in expression.arguments]
            match expression.function:
                case "and":
                    return False if False in cells else None if None in cells else True
                case "or":
                    return True if True in cells else None if None in cells else False
                case "is_null":
                    return cells[0] is None
                case "is_not_null":
                    return cells[0] is not None
                case "coalesce":
                    return next((cell for cell in cells if cell is not None), None)
                case name:
                    return None if None in cells else _FUNCTIONS[name](*cells)
        case SparkFunction():
            raise NotImplementedError(expression.sql)

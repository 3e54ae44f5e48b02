"""What a logical plan means at one instant, worked out row by row: the bag of rows over given contents of its sources."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, assert_never

from sash.plan.expressions import AggregateCall, Call, Case, Cast, Column, Expression, Literal, SparkFunction
from sash.plan.nodes import (
    Aggregate,
    Alike,
    AssignWindows,
    Distinct,
    Except,
    Expand,
    Filter,
    Final,
    Generate,
    Intersect,
    Join,
    Lifetime,
    Node,
    Over,
    Project,
    Relation,
    Sessions,
    SortKey,
    Stream,
    TimeWindows,
    TopK,
    Union,
)
from sash.plan.window_calls import Bound, WindowCall

Row = tuple[Any, ...]
Sources = Mapping[str, list[Row]]

NOW = 1
"""The instant, for rows that are valid from a time and until one."""


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
            return [row for group in _by(node.by, rows_of(node.child, sources)) for row in _first(node, group)]
        case AssignWindows():
            below = rows_of(node.child, sources)
            return [(*row, *window) for row in below for window in _windows(node.windows, row[node.time])]
        case Lifetime():
            return [row for row in rows_of(node.child, sources) if _is_valid(node, row)]
        case Sessions():
            groups = _by(node.keys, rows_of(node.child, sources))
            return [row for group in groups for row in _sessions(node, group)]
        case Over():
            return [row for group in _by(node.partition, rows_of(node.child, sources)) for row in _over(node, group)]
        case Final():
            return rows_of(node.child, sources)
        case Alike():
            raise NotImplementedError("queries are made alike after they are optimized")
        case _:
            assert_never(node)


def _by(columns: Iterable[int], rows: Iterable[Row]) -> list[list[Row]]:
    """The rows, grouped by the columns."""
    groups: dict[Row, list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[column] for column in columns), []).append(row)
    return list(groups.values())


def _rank(order: Sequence[SortKey]) -> Callable[[Row], tuple[Any, ...]]:
    """Where a row is in the order."""

    def place(key: SortKey, cell: Any) -> tuple[int, int]:
        if cell is None:
            return (0 if key.nulls_first else 2, 0)
        return (1, -cell if key.descending else cell)

    return lambda row: tuple(place(key, row[key.column]) for key in order)


def _every(columns: Iterable[int]) -> list[SortKey]:
    return [SortKey(column) for column in columns]


def _first(node: TopK, rows: list[Row]) -> list[Row]:
    rank = _rank(node.order)
    if node.ranked:
        ranks = sorted({rank(row) for row in rows} if node.ranked == "dense_rank" else map(rank, rows))
        return [row for row in rows if ranks.index(rank(row)) < node.limit]
    ordered = sorted(rows, key=_rank([*node.order, *_every(range(len(node.schema)))]))
    return ordered[node.offset : node.offset + node.limit]


def _windows(windows: TimeWindows, time: int | None) -> list[tuple[int, int]]:
    if time is None:
        return []
    lengths = range(windows.step, windows.size + 1, windows.step) if windows.cumulative else (windows.size,)
    every = windows.size if windows.cumulative else windows.step
    starts = range(windows.origin - 10 * every, time + 1, every)
    return [(start, start + length) for start in starts for length in lengths if start <= time < start + length]


def _is_valid(node: Lifetime, row: Row) -> bool:
    start, end = (None if each is None else value(each, row) for each in (node.start, node.end))
    begun = node.start is None or (start is not None and start <= NOW)
    return begun and (node.end is None or (end is not None and end > NOW))


def _sessions(node: Sessions, rows: list[Row]) -> list[Row]:
    """The rows of equal keys, labelled by the first time of their session."""
    made: list[Row] = []
    label = last = 0
    for row in sorted(rows, key=lambda row: row[node.time]):
        if not made or row[node.time] - last > node.gap:
            label = row[node.time]
        last = row[node.time]
        made.append((*row, label))
    return made


def _over(node: Over, rows: list[Row]) -> list[Row]:
    """The rows of one partition, with the values of the calls."""
    columns = []
    for call in node.calls:
        places = sorted(range(len(rows)), key=lambda at, call=call: _rank([*call.order, *_every(node.ties)])(rows[at]))  # type: ignore[misc]
        ordered = [rows[at] for at in places]
        found = dict(zip(places, (_windowed(call, ordered, at) for at in range(len(rows))), strict=True))
        columns.append([found[at] for at in range(len(rows))])
    return [(*row, *(column[at] for column in columns)) for at, row in enumerate(rows)]


def _windowed(call: WindowCall, rows: list[Row], at: int) -> Any:
    """The value of a call for the row at this place of its ordered partition."""
    ranks = [_rank(call.order)(row) for row in rows]
    match call.function:
        case "row_number":
            return at + 1
        case "rank":
            return ranks.index(ranks[at]) + 1
        case "dense_rank":
            return len({*ranks[: at + 1]})
        case "lag" | "lead":
            other = at + (call.parameter if call.function == "lead" else -call.parameter)
            return rows[other][call.arguments[0].index] if 0 <= other < len(rows) else None
    start = _bound(call.frame.start, ranks, at, 0)
    frame = rows[max(start, 0) : _bound(call.frame.end, ranks, at, len(rows) - 1) + 1]
    if call.aggregate is not None:
        return _call(call.aggregate, frame)
    cells = [row[call.arguments[0].index] for row in frame]
    return None if not cells else cells[0] if call.function == "first_value" else cells[-1]


def _bound(bound: Bound, ranks: list[Any], at: int, unbounded: int) -> int:
    match bound.kind:
        case "unbounded":
            return unbounded
        case "row":
            return max(at + bound.offset, -1)
        case "peer":
            peers = [place for place, rank in enumerate(ranks) if rank == ranks[at]]
            return peers[-1] if unbounded else peers[0]
        case "value":
            raise NotImplementedError(bound)


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
    groups = _by(node.keys, rows) if node.keys else [rows]
    return [
        (*(group[0][key] for key in node.keys), *(_call(call, group) for call in node.aggregates)) for group in groups
    ]


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
                case "array":
                    return cells
                case "coalesce":
                    return next((cell for cell in cells if cell is not None), None)
                case name:
                    return None if None in cells else _FUNCTIONS[name](*cells)
        case SparkFunction():
            raise NotImplementedError(expression.sql)

"""The plan of window functions: what they read as columns, and one node per partitioning, in an order that saves stages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sash.plan.compound import rewrite
from sash.plan.describe import describe
from sash.plan.expressions import AggregateCall, Column, Expression
from sash.plan.nodes import Filter, Node, Over, Project, SortKey, Stream
from sash.plan.row_times import has_times, with_time
from sash.plan.types import Schema
from sash.plan.window_calls import Bound, Frame, WindowCall
from sash.sql.coercion import coerce
from sash.sql.frames import BoundEnd
from sash.sql.windows import WINDOWS, BoundWindow, WindowCollector


def over(node: Node, windows: WindowCollector) -> tuple[Node, Callable[[Expression], Expression]]:
    """The node with a column for every window function, and what puts these columns into expressions.

    Ties are broken by the rows' time, where they have one, and then by all columns of the node. Rows that are equal in all of
    these may differ in window functions with another partition, which are computed before: then these break the tie, so that
    which values go together does not depend on the order of arrival.
    """
    found = [_with_common_types(window) for window in windows.found]
    width = len(node.schema)
    time: list[int] = []
    if has_times(node):
        place = _time_column(node)
        if place is None:
            node, place = with_time(node), width
        time = [place]
    inputs = _Inputs(node)
    calls = [inputs.call(window) for window in found]
    groups: dict[frozenset[int], list[int]] = {}
    for number, window in enumerate(found):
        groups.setdefault(frozenset(map(inputs.place, window.partition)), []).append(number)
    node = inputs.node()
    ties = tuple(dict.fromkeys((*time, *range(width))))
    places: dict[int, int] = {}
    for partition in _in_few_stages(list(groups)):
        numbers = groups[partition]
        own = tuple(calls[number] for number in numbers)
        for offset, number in enumerate(numbers):
            places[number] = len(node.schema) + offset
        used = ties if any(call.depends_on_ties for call in own) else ()
        node = Over(node, tuple(sorted(partition)), used, tuple(windows.names[number] for number in numbers), own)
        ties += tuple(range(len(node.schema) - len(own), len(node.schema)))
    return node, lambda expression: _placed(expression, places, node.schema)


def _placed(expression: Expression, places: dict[int, int], schema: Schema) -> Expression:
    def change(part: Expression) -> Expression | None:
        if isinstance(part, Column) and part.index >= WINDOWS:
            place = places[part.index - WINDOWS]
            return Column(place, schema[place].name, part.dtype)
        return None

    return rewrite(expression, change)


def _with_common_types(window: BoundWindow) -> BoundWindow:
    """The function with its order and the bounds of its frame in one type, so that they can be compared."""
    limits = [end.limit for end in (window.frame.start, window.frame.end) if end.limit is not None]
    if not limits:
        return window
    (key,) = window.order
    widest = key.expression
    for limit in limits:
        widest = limit if limit.dtype != widest.dtype else widest
    dtype = widest.dtype

    def common(end: BoundEnd) -> BoundEnd:
        return end if end.limit is None else replace(end, limit=coerce(end.limit, dtype))

    frame = replace(window.frame, start=common(window.frame.start), end=common(window.frame.end))
    return replace(window, frame=frame, order=(replace(key, expression=coerce(key.expression, dtype)),))


def _time_column(node: Node) -> int | None:
    """The column that has the time of the node's rows, if there is one."""
    match node:
        case Stream():
            return node.time
        case Filter():
            return _time_column(node.child)
        case Project():
            below = _time_column(node.child)
            for position, expression in enumerate(node.expressions):
                if isinstance(expression, Column) and expression.index == below:
                    return position
            return None
        case _:
            return None


class _Inputs:
    """The columns that window functions read; what is not a column already is computed by a projection."""

    def __init__(self, below: Node) -> None:
        self._below = below
        self._columns: list[Expression] = [Column(i, f.name, f.dtype) for i, f in enumerate(below.schema)]

    def place(self, expression: Expression) -> int:
        """The position of the expression."""
        if isinstance(expression, Column):
            return expression.index
        if expression not in self._columns:
            self._columns.append(expression)
        return self._columns.index(expression)

    def column(self, expression: Expression) -> Column:
        """The column that has the expression's values."""
        return Column(self.place(expression), describe(expression), expression.dtype)

    def node(self) -> Node:
        """The input with all these columns."""
        if len(self._columns) == len(self._below.schema):
            return self._below
        names = [field.name for field in self._below.schema]
        names += [describe(expression) for expression in self._columns[len(names) :]]
        return Project(self._below, tuple(names), tuple(self._columns))

    def call(self, window: BoundWindow) -> WindowCall:
        """The function over columns."""
        aggregate = None
        if window.aggregate is not None:
            one = window.aggregate
            arguments = tuple(self.column(argument) for argument in one.arguments)
            aggregate = AggregateCall(
                one.function, arguments, one.dtype, one.distinct, one.parameter, one.precision, one.detail
            )
        return WindowCall(
            window.function,
            tuple(self.column(argument) for argument in window.arguments),
            window.dtype,
            tuple(SortKey(self.place(key.expression), key.descending, key.nulls_first) for key in window.order),
            Frame(self._bound(window.frame.start), self._bound(window.frame.end)),
            window.parameter,
            None if window.present is None else self.column(window.present),
            aggregate,
        )

    def _bound(self, end: BoundEnd) -> Bound:
        return Bound(end.kind, end.offset, None if end.limit is None else self.place(end.limit))


def _in_few_stages(partitions: list[frozenset[int]]) -> list[frozenset[int]]:
    """The partitionings in an order in which as many as possible in a row have a column in common; those without any last."""
    pending = [partition for partition in partitions if partition]
    ordered: list[frozenset[int]] = []
    common: frozenset[int] = frozenset()
    while pending:
        best = max(pending, key=lambda partition: (len(partition & common) > 0, len(partition & common)))
        common = (best & common) or best
        ordered.append(best)
        pending.remove(best)
    return ordered + [partition for partition in partitions if not partition]

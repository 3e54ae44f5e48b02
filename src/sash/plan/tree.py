"""A logical plan as text: one node per line, with its inputs indented below it and columns as name#position."""

from __future__ import annotations

from dataclasses import replace

from sash.plan import nodes
from sash.plan.compound import rewrite
from sash.plan.describe import describe, describe_aggregate
from sash.plan.expressions import AggregateCall, Column, Expression
from sash.plan.types import Schema
from sash.plan.window_calls import Bound, WindowCall
from sash.time import DAY, HOUR, MICROSECOND, MILLISECOND, MINUTE, SECOND

_UNITS = (
    *((DAY, "DAY"), (HOUR, "HOUR"), (MINUTE, "MINUTE"), (SECOND, "SECOND")),
    *((MILLISECOND, "MILLISECOND"), (MICROSECOND, "MICROSECOND")),
)


MOST_LISTS = 16
"""The number of lists of an Expand that are shown."""


def more_lists(lists: tuple[object, ...]) -> str:
    """The number of lists of an Expand that are not shown."""
    return f"; and {len(lists) - MOST_LISTS:,} more" if len(lists) > MOST_LISTS else ""


def tree(node: nodes.Node) -> str:
    """The plan as text, top down.

    >>> from sash.plan.types import BIGINT, Field
    >>> print(tree(nodes.Distinct(nodes.Relation("items", (Field("item", BIGINT),)))))
    Distinct
      Relation items
    """
    return "\n".join(_lines(node, 0))


def _lines(node: nodes.Node, depth: int) -> list[str]:
    below = [line for child in node.children for line in _lines(child, depth + 1)]
    return ["  " * depth + label(node), *below]


def label(node: nodes.Node) -> str:
    """The line of one node."""
    match node:
        case nodes.Stream():
            return f"Stream {node.name} {window_text(node.window, node)}"
        case nodes.Relation():
            return f"Relation {node.name}{_updates_text(node)}"
        case nodes.Filter():
            return f"Filter {_text(node.predicate, node.schema)}"
        case nodes.Project():
            columns = zip(node.names, node.expressions, strict=True)
            return f"Project {', '.join(_named(name, made, node.child.schema) for name, made in columns)}"
        case nodes.Expand():
            return f"Expand {'; '.join([_expanded(made, node) for made in node.lists[:MOST_LISTS]])}{more_lists(node.lists)}"
        case nodes.Generate():
            return f"Generate {'outer ' if node.outer else ''}{_text(node.array, node.child.schema)}"
        case nodes.AssignWindows():
            return f"AssignWindows {node.schema[node.time].name}#{node.time} {assignment_text(node.windows)}"
        case nodes.Final():
            return "Final (rows are emitted when windows close, and stay)"
        case nodes.Sessions():
            by = ", ".join(f"{node.schema[key].name}#{key}" for key in node.keys)
            gap = duration_text(node.gap) if node.gaps is None else f"{node.schema[node.gaps].name}#{node.gaps}"
            return f"Sessions {node.schema[node.time].name}#{node.time} BY {by} GAP {gap}{' EMIT ON CLOSE' if node.emits else ''}"
        case nodes.Lifetime():
            return f"Lifetime {lifetime_text(*(None if e is None else _text(e, node.schema) for e in (node.start, node.end)))}"
        case nodes.Join():
            return _join_label(node)
        case nodes.Aggregate():
            by = ", ".join(f"{node.child.schema[key].name}#{key}" for key in node.keys)
            calls = ", ".join(
                f"{_call_text(call, node.child.schema)} AS {name}"
                for name, call in zip(node.names, node.aggregates, strict=True)
            )
            return f"Aggregate {' '.join(part for part in (calls, f'BY {by}' if by else '') if part)}"
        case nodes.Distinct():
            return "Distinct"
        case nodes.Union():
            return "Union all"
        case nodes.Except() | nodes.Intersect():
            return type(node).__name__ + (" all" if node.all else "")
        case nodes.Alike():
            return _alike_label(node)
        case nodes.Over():
            return f"Over {describe_over(node.partition, node.ties, node.calls, node.child.schema)}"
        case nodes.TopK():
            order = ", ".join(f"{node.schema[key.column].name}#{key.column}{sort_direction(key)}" for key in node.order)
            offset = f" OFFSET {node.offset}" if node.offset else ""
            each = " OF EACH " + ", ".join(f"{node.schema[n].name}#{n}" for n in node.by) if node.by else ""
            ranks = f" {RANKS[node.ranked]}" if node.ranked else ""
            return f"TopK {node.limit}{ranks}{offset}{each}{f' BY {order}' if order else ''}"


RANKS = {"": "", "rank": "RANKS", "dense_rank": "DENSE RANKS"}
"""How a plan names the rows that a TopK keeps, if it does not keep a number of rows."""


def describe_over(
    partition: tuple[int, ...], ties: tuple[int, ...], calls: tuple[WindowCall, ...], schema: Schema
) -> str:
    """Window functions as SQL-like text: the calls, the partition, and the columns that break ties."""
    parts = [", ".join(_window_call(call, schema) for call in calls)]
    if partition:
        parts.append("PARTITION BY " + ", ".join(schema[column].name for column in partition))
    if ties:
        parts.append("TIES BY " + ", ".join(schema[column].name for column in ties))
    return " ".join(parts)


def _window_call(call: WindowCall, schema: Schema) -> str:
    arguments = [column.name for column in call.arguments] + ([str(call.parameter)] if call.parameter else [])
    text = f"{call.function}({', '.join(arguments)})" if call.aggregate is None else describe_aggregate(call.aggregate)
    if call.present is not None:
        text += (
            " IGNORE NULLS" if call.present == call.arguments[0] else f" FILTER (WHERE {call.present.name} IS NOT NULL)"
        )
    over = []
    if call.order:
        over.append("ORDER BY " + ", ".join(f"{schema[k.column].name}{sort_direction(k)}" for k in call.order))
    if call.aggregate is not None or call.function in ("first_value", "last_value", "nth_value"):
        if not call.frame.is_whole:
            unit = "ROWS" if "row" in (call.frame.start.kind, call.frame.end.kind) else "RANGE"
            ends = _bound(call.frame.start, "PRECEDING", schema), _bound(call.frame.end, "FOLLOWING", schema)
            over.append(f"{unit} BETWEEN {ends[0]} AND {ends[1]}")
        elif call.order:
            over.append("ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING")
    return f"{text} OVER ({' '.join(over)})"


def _bound(bound: Bound, side: str, schema: Schema) -> str:
    if bound.kind == "unbounded":
        return f"UNBOUNDED {side}"
    if bound.kind == "peer" or (bound.kind == "row" and not bound.offset):
        return "CURRENT ROW"
    if bound.column is not None:
        return schema[bound.column].name
    return f"{abs(bound.offset)} {'PRECEDING' if bound.offset < 0 else 'FOLLOWING'}"


def _expanded(made: tuple[Expression, ...], node: nodes.Expand) -> str:
    columns = zip(node.names, made, strict=True)
    return ", ".join(_named(name, expression, node.child.schema) for name, expression in columns)


def _updates_text(node: nodes.Relation) -> str:
    if not node.changes:
        return ""
    by = "" if node.key is None else " by " + ", ".join(node.schema[column].name for column in node.key)
    return f" (changes{by})" if node.retroactive else f" (non-retroactive{by})"


def _join_label(node: nodes.Join) -> str:
    pairs = [
        f"{node.left.schema[left].name}#{left} = {node.right.schema[right].name}#{right}" for left, right in node.keys
    ]
    on = f" ON {' AND '.join(pairs)}" if pairs else ""
    both = node.left.schema + node.right.schema
    condition = "" if node.condition is None else f" WHERE {_text(node.condition, both)}"
    return f"Join {node.kind}{on}{condition}"


def _alike_label(node: nodes.Alike) -> str:
    pairs = [
        f"{node.left.schema[left].name}#{left} = {node.right.schema[right].name}#{right}" for left, right in node.keys
    ]
    condition = [] if node.condition is None else [_text(node.condition, node.schema)]
    otherwise = "" if node.otherwise is None else f" OTHERWISE {', '.join(map(describe, node.otherwise))}"
    return f"Alike {' AND '.join((*pairs, *condition))}{otherwise}"


def _named(name: str, expression: Expression, schema: Schema) -> str:
    text = _text(expression, schema)
    kept = isinstance(expression, Column) and schema[expression.index].name == name
    return text if kept else f"{text} AS {name}"


def _text(expression: Expression, schema: Schema) -> str:
    return describe(rewrite(expression, lambda part: _placed(part, schema) if isinstance(part, Column) else None))


def _call_text(call: AggregateCall, schema: Schema) -> str:
    return describe_aggregate(replace(call, arguments=tuple(_placed(column, schema) for column in call.arguments)))


def _placed(column: Column, schema: Schema) -> Column:
    return replace(column, name=f"{schema[column.index].name}#{column.index}")


def assignment_text(windows: nodes.TimeWindows) -> str:
    """The windows of an assignment.

    >>> assignment_text(nodes.TimeWindows(600_000_000, 300_000_000))
    'SIZE 10 MINUTES EVERY 5 MINUTES'
    """
    after = f" AFTER {duration_text(windows.origin)}" if windows.origin else ""
    size, step = duration_text(windows.size), duration_text(windows.step)
    return f"UP TO {size} BY {step}{after}" if windows.cumulative else f"SIZE {size} EVERY {step}{after}"


def lifetime_text(start: str | None, end: str | None) -> str:
    """When rows are valid."""
    parts = (f"FROM {start}" if start else "", f"UNTIL {end}" if end else "")
    return " ".join(part for part in parts if part)


def sort_direction(key: nodes.SortKey) -> str:
    """The direction of a sort key and the position of its NULLs, where they are not the default."""
    default = key.nulls_first != key.descending
    nulls = "" if default else f" NULLS {'FIRST' if key.nulls_first else 'LAST'}"
    return f"{' DESC' if key.descending else ''}{nulls}"


def window_text(window: nodes.Window, stream: nodes.Stream) -> str:
    """The window as it is written in a query."""
    match window:
        case nodes.Aligned():
            if window.length == window.step:
                return f"[until the end of its {duration_text(window.length)}]"
            return f"[until {duration_text(window.length)} after a multiple of {duration_text(window.step)}]"
        case nodes.Range():
            slide = "" if window.slide is None else f" SLIDE {duration_text(window.slide)}"
            return f"[RANGE {duration_text(window.length)}{slide}]"
        case nodes.Rows():
            names = ", ".join(stream.schema[column].name for column in window.partition)
            return f"[{f'PARTITION BY {names} ' if names else ''}ROWS {window.count}]"
        case nodes.Unbounded():
            return "[RANGE UNBOUNDED]"


def duration_text(microseconds: int) -> str:
    """A duration in the largest unit that divides it.

    >>> duration_text(90_000_000)
    '90 SECONDS'
    """
    size, unit = next((size, unit) for size, unit in _UNITS if microseconds % size == 0)
    count = microseconds // size
    return f"{count} {unit}{'' if count == 1 else 'S'}"

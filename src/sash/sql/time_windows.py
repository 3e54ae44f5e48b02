"""Assignment of rows to windows of time: TUMBLE, HOP and CUMULATE as Flink writes them, `window` as Spark does.

A window that is declared for a stream alone decides how long its rows are valid. Without one, a row is valid until the end
of the window that it is assigned to, so that windows are open, with partial results, until they end.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from sash.errors import TypeMismatchError, UnsupportedSqlError, WindowError
from sash.plan.expressions import Call, Column, Expression, Literal
from sash.plan.nodes import WINDOW_END, WINDOW_START, AssignWindows, Filter, Lifetime, Node, Project, TimeWindows
from sash.plan.types import BIGINT, BOOLEAN, DATE, TIMESTAMP, TIMESTAMP_NTZ, type_name
from sash.sql.coercion import coerce
from sash.sql.dialect import LONGEST, UNITS, decimal_of, scaled
from sash.sql.emit import emits
from sash.sql.interval_literals import constant_interval
from sash.sql.scope import Scope
from sash.sql.source import SqlText
from sash.sql.undeclared import reads_undeclared, with_aligned_window

WINDOW_TIME = "window_time"
MOST_WINDOWS = 10_000
"""The largest number of windows that a row may be in."""

_ARGUMENTS = {
    "TUMBLE": "TUMBLE(TABLE stream, DESCRIPTOR(time), size [, offset])",
    "HOP": "HOP(TABLE stream, DESCRIPTOR(time), slide, size [, offset])",
    "CUMULATE": "CUMULATE(TABLE stream, DESCRIPTOR(time), step, size [, offset])",
}


def bind_assignment(source: SqlText, node: exp.Expr, child: Node, scope: Scope) -> Node:
    """The rows of a table function, with window_start, window_end and window_time after their own columns."""
    name, arguments = node.name, node.expressions[1:]
    least = 2 if name == "TUMBLE" else 3
    if not least <= len(arguments) <= least + 1 or not isinstance(arguments[0], exp.Column):
        raise source.error(UnsupportedSqlError, f"write {_ARGUMENTS[name]}", node)
    time = scope.resolve(source, arguments[0])
    lengths = [duration(source, argument) for argument in arguments[1:least]]
    origin = duration(source, arguments[least]) if len(arguments) > least else 0
    size, step = lengths[-1], lengths[0]
    windows = checked(source, node, TimeWindows(size, step, origin, cumulative=name == "CUMULATE"))
    made = assigned(source, arguments[0], child, time, windows)
    end = Column(len(made.schema) - 1, WINDOW_END, made.schema[-1].dtype)
    return _with_columns(made, {WINDOW_TIME: Call("timestamp_add_micros", (end, Literal(-1, BIGINT)), end.dtype)})


def checked(source: SqlText, node: exp.Expr, windows: TimeWindows) -> TimeWindows:
    """The windows, which must be such that every time is in at least one, and in not too many."""
    if windows.size <= 0 or windows.step <= 0:
        raise source.error(WindowError, "the length of a window, and its slide or step, must be greater than 0", node)
    if windows.step > windows.size:
        raise source.error(WindowError, "a window must be at least as long as its slide or step", node)
    if windows.cumulative and windows.size % windows.step:
        raise source.error(WindowError, "the size of CUMULATE must be a multiple of its step", node)
    if windows.most > MOST_WINDOWS:
        raise source.error(
            WindowError, f"a row may be in {MOST_WINDOWS:,} windows, not in {windows.most:,}: use a longer slide", node
        )
    return replace(windows, origin=windows.origin % (windows.size if windows.cumulative else windows.step))


def assigned(source: SqlText, at: exp.Expr, child: Node, time: Expression, windows: TimeWindows) -> Node:
    """The rows of `child` once per window of their `time`, with the windows' starts and ends as last columns."""
    if time.dtype == DATE:
        time = coerce(time, TIMESTAMP)
    if time.dtype not in (TIMESTAMP, TIMESTAMP_NTZ):
        raise source.error(
            TypeMismatchError,
            f"windows are of a TIMESTAMP, not of {type_name(time.dtype)}: declare the column as TIMESTAMP, or write "
            "timestamp_micros(...)",
            at,
        )
    own = len(child.schema)
    position, added = (time.index, False) if isinstance(time, Column) else (own, True)
    if added:
        child = _with_columns(child, {"_time": time})
    aligned = with_aligned_window(child, position, windows, closing=emits())
    ends = aligned is None and reads_undeclared(child)
    child = child if aligned is None else aligned
    made: Node
    if windows.most == 1:
        moment = Column(position, child.schema[position].name, time.dtype)
        if aligned is None:
            child = Filter(child, Call("is_not_null", (moment,), BOOLEAN))
        arguments = (moment, Literal(windows.size, BIGINT), Literal(windows.origin, BIGINT))
        bounds = {name: Call(name, arguments, time.dtype) for name in (WINDOW_START, WINDOW_END)}
        made = _with_columns(child, bounds)
    else:
        made = AssignWindows(child, position, windows)
        ends = ends or aligned is not None
    if aligned is not None and emits():
        end = Column(len(made.schema) - 1, WINDOW_END, time.dtype)
        made = Lifetime(made, end, Call("timestamp_add_micros", (end, Literal(1, BIGINT)), time.dtype))
    elif ends:
        made = Lifetime(made, end=Column(len(made.schema) - 1, WINDOW_END, time.dtype))
    if added:
        kept = [*range(own), own + 1, own + 2]
        columns = tuple(Column(n, made.schema[n].name, made.schema[n].dtype) for n in kept)
        made = Project(made, tuple(column.name for column in columns), columns)
    return made


def _with_columns(node: Node, added: dict[str, Expression] | dict[str, Call]) -> Node:
    """The node with computed columns after its own."""
    own = tuple(Column(n, field.name, field.dtype) for n, field in enumerate(node.schema))
    return Project(node, (*(column.name for column in own), *added), (*own, *added.values()))


def duration(source: SqlText, node: exp.Expr) -> int:
    """A constant length of time in microseconds: `INTERVAL '10' MINUTES`, or a text as `'1 hour 30 minutes'`."""
    if isinstance(node, exp.Literal) and node.is_string:
        found = _duration_of(str(node.this))
    else:
        interval = constant_interval(source, node)
        months = interval is None or interval.months
        found = None if interval is None or months else interval.days * UNITS["DAY"] + interval.microseconds
    if found is None:
        raise source.error(
            UnsupportedSqlError,
            "the length of a window is a constant of weeks or shorter units, such as INTERVAL '10' MINUTES or '10 minutes'",
            node,
        )
    if abs(found) > LONGEST:
        raise source.error(WindowError, "a window of this length does not fit in 64 bits", node)
    return found


def _duration_of(text: str) -> int | None:
    """The microseconds of pairs of a number and a unit; None if the text is something else.

    >>> _duration_of("1 hour 30 minutes") == 90 * UNITS["MINUTE"]
    True
    """
    words = text.lower().split()
    if words[:1] == ["interval"]:
        words = words[1:]
    total = 0
    for amount, word in zip(words[::2], words[1::2], strict=False):
        scale = UNITS.get(word.upper().removesuffix("S"))
        number = decimal_of(amount)
        length = None if number is None or scale is None else scaled(number, scale)
        if length is None:
            return None
        total += length
    return total if words and len(words) % 2 == 0 else None

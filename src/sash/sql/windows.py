"""Window functions (OVER): their arguments, orders and frames, as Spark has them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from sash.errors import TypeMismatchError, UnknownNameError, UnsupportedSqlError
from sash.plan.compound import rewrite
from sash.plan.expressions import Case, Column, Expression, Literal, columns_of
from sash.plan.types import BOOLEAN, DOUBLE, INT, is_integer
from sash.plan.window_calls import RANKING
from sash.sql.aggregates import AGGREGATES, AggregateCollector
from sash.sql.coercion import coerce
from sash.sql.frames import BoundFrame, bind_frame
from sash.sql.functions import call
from sash.sql.naming import spark_name
from sash.sql.ordering import SortItem, refuse_variants, sort_items
from sash.sql.row_aggregates import BoundAggregate
from sash.sql.source import SqlText, did_you_mean

if TYPE_CHECKING:
    from sash.sql.expressions import ExpressionBinder

WINDOWS = 1 << 30
"""The columns of window functions, before it is known where they will be, are numbered from here."""

_AGGREGATES = 1 << 29
_PICKED = {"first": "first_value", "last": "last_value"}
_SHIFTS = ("lag", "lead")


@dataclass(frozen=True)
class SortExpression:
    """One expression of the ORDER BY of a window."""

    expression: Expression
    descending: bool
    nulls_first: bool


@dataclass(frozen=True)
class BoundWindow:
    """A window function whose arguments, partition and order are expressions over the rows below it."""

    function: str
    arguments: tuple[Expression, ...]
    dtype: pa.DataType
    partition: tuple[Expression, ...]
    order: tuple[SortExpression, ...]
    frame: BoundFrame
    parameter: int = 0
    present: Expression | None = None
    aggregate: BoundAggregate | None = None

    def over(self, change: Callable[[Expression], Expression]) -> BoundWindow:
        """The function with all its expressions changed."""
        aggregate = self.aggregate
        return replace(
            self,
            arguments=tuple(map(change, self.arguments)),
            partition=tuple(map(change, self.partition)),
            order=tuple(replace(key, expression=change(key.expression)) for key in self.order),
            frame=self.frame.over(change),
            present=None if self.present is None else change(self.present),
            aggregate=None
            if aggregate is None
            else replace(aggregate, arguments=tuple(map(change, aggregate.arguments))),
        )


@dataclass
class WindowCollector:
    """The window functions of one SELECT, and its named windows."""

    source: SqlText
    clauses: Sequence[exp.Expr]
    found: list[BoundWindow] = field(default_factory=list)
    names: list[str] = field(default_factory=list)

    def add(self, window: BoundWindow, name: str) -> Column:
        """The column of the function; equal functions share one."""
        if window not in self.found:
            self.found.append(window)
            self.names.append(name)
        return Column(WINDOWS + self.found.index(window), name, window.dtype)

    @property
    def expressions(self) -> list[Expression]:
        """All expressions of the functions."""
        found: list[Expression] = []

        def note(part: Expression) -> Expression:
            found.append(part)
            return part

        for window in self.found:
            window.over(note)
        return found

    def change(self, change: Callable[[Expression], Expression]) -> None:
        """Change the expressions of all functions."""
        self.found = [window.over(change) for window in self.found]

    def named(self, name: exp.Expr) -> exp.Expr:
        """The definition of a named window."""
        known = {clause.this.name.lower(): clause for clause in self.clauses}
        if name.name.lower() not in known:
            hint = did_you_mean(name.name, known) or ": define it with WINDOW name AS (...)"
            raise self.source.error(UnknownNameError, f"there is no window {name.name}{hint}", name)
        return known[name.name.lower()]


@dataclass(frozen=True)
class _Definition:
    """What is inside the parentheses of OVER."""

    partition: list[exp.Expr]
    order: exp.Expr | None
    spec: exp.Expr | None


def bind_window(binder: ExpressionBinder, windows: WindowCollector, node: exp.Expr) -> Expression:
    """The column of a window function, or the expression over such columns that it stands for."""
    source = binder.source
    inner = replace(binder, windows=None, clause="a window function", aliases={}, first={})
    definition = _definition(windows, node, 0)
    partition = tuple(dict.fromkeys(inner.bind(part) for part in definition.partition))
    refuse_variants(source, partition, "PARTITION BY", node)
    items = [] if definition.order is None else sort_items(source, definition.order, inner.bind)
    order = _without_constants(items)
    function, ignore_nulls, condition = _unwrapped(source, node.this)
    written = function.name.lower() if isinstance(function, exp.Anonymous) else ""
    name = spark_name(node)
    if written in RANKING or written in _SHIFTS or written == "nth_value" or AGGREGATES.get(written) in _PICKED:
        frame = bind_frame(inner, definition.spec, order)
        made = _own_function(inner, function, written, ignore_nulls, definition, frame)
        if condition is not None:
            if made.function not in ("first_value", "last_value", "nth_value"):
                raise source.error(UnsupportedSqlError, f"Sash does not run FILTER for {written}", condition)
            made = _filtered(made, replace(inner, clause="FILTER").predicate(condition))
        return windows.add(replace(made, partition=partition, order=order), name)
    frame = bind_frame(inner, definition.spec, order)
    collector = AggregateCollector(_AGGREGATES, inner.aggregates)
    bound = replace(inner, aggregates=collector).bind(node.this)
    if not collector.found:
        raise source.error(
            UnsupportedSqlError, f"{function.sql(dialect='spark')} is not a window function or an aggregate", node
        )
    columns = [
        windows.add(
            BoundWindow(call.function, (), call.dtype, partition, order, frame, aggregate=call),
            name if len(collector.found) == 1 else f"{name} {number}",
        )
        for number, call in enumerate(collector.found)
    ]
    return rewrite(
        bound,
        lambda part: (
            columns[part.index - _AGGREGATES]
            if isinstance(part, Column) and _AGGREGATES <= part.index < WINDOWS
            else None
        ),
    )


def _without_constants(items: list[SortItem]) -> tuple[SortExpression, ...]:
    """The order without expressions that are equal to earlier ones; a constant orders nothing, but asks for an order."""
    found: dict[Expression, SortExpression] = {}
    for item in items:
        found.setdefault(item.expression, SortExpression(item.expression, item.descending, item.nulls_first))
    return tuple(found.values())


def _definition(windows: WindowCollector, node: exp.Expr, depth: int) -> _Definition:
    """The partition, order and frame of a window, of which some may come from a named one."""
    name = node.args.get("alias")
    own = _Definition(node.args.get("partition_by") or [], node.args.get("order"), node.args.get("spec"))
    if name is None:
        return own
    if depth > len(windows.clauses):
        raise windows.source.error(UnsupportedSqlError, f"the window {name.name} is defined by itself", node)
    base = _definition(windows, windows.named(name), depth + 1)
    if own.partition and base.partition:
        raise windows.source.error(
            UnsupportedSqlError, f"the window {name.name} has a PARTITION BY already: remove one of them", node
        )
    if own.order is not None and base.order is not None:
        raise windows.source.error(
            UnsupportedSqlError, f"the window {name.name} has an ORDER BY already: remove one of them", node
        )
    return _Definition(own.partition or base.partition, own.order or base.order, own.spec or base.spec)


def _filtered(window: BoundWindow, condition: Expression) -> BoundWindow:
    """The function of the rows for which the condition is true."""
    if window.present is not None:
        condition = call("and", [condition, call("is_not_null", [window.present])])
    return replace(window, present=Case(((condition, Literal(True, BOOLEAN)),), None, BOOLEAN))


def _unwrapped(source: SqlText, node: exp.Expr) -> tuple[exp.Expr, bool, exp.Expr | None]:
    """The function without the clauses around it, whether NULLs are ignored, and the condition of FILTER."""
    ignore, condition = False, None
    while isinstance(node, exp.IgnoreNulls | exp.RespectNulls | exp.Filter):
        ignore |= isinstance(node, exp.IgnoreNulls)
        condition = node.expression.this if isinstance(node, exp.Filter) else condition
        node = node.this
    if isinstance(node, exp.Anonymous) and node.expressions:
        last = node.expressions[-1]
        if isinstance(last, exp.IgnoreNulls | exp.RespectNulls):
            ignore |= isinstance(last, exp.IgnoreNulls)
            plain = exp.Anonymous(this=node.this, expressions=[*node.expressions[:-1], last.this])
            plain.meta.update(node.meta)
            return plain, ignore, condition
    return node, ignore, condition


def _own_function(
    binder: ExpressionBinder,
    node: exp.Expr,
    written: str,
    ignore_nulls: bool,
    definition: _Definition,
    frame: BoundFrame,
) -> BoundWindow:
    """A function that is not an aggregate; partition and order are left to the caller."""
    source = binder.source
    arguments = [binder.bind(argument) for argument in node.expressions]
    needs_order = written in RANKING or written in _SHIFTS or written == "nth_value"
    if needs_order and definition.order is None:
        raise source.error(UnsupportedSqlError, f"{written} needs an ORDER BY in its OVER clause", node)
    if written in RANKING:
        return _ranking(source, node, written, ignore_nulls, arguments, definition)
    if written in _SHIFTS:
        if definition.spec is not None:
            raise source.error(UnsupportedSqlError, f"{written} takes no frame: remove it", definition.spec)
        return _shift(source, node, written, ignore_nulls, arguments, frame)
    function = _PICKED.get(AGGREGATES.get(written, ""), "nth_value")
    parameter = 0
    if function == "nth_value":
        _arity(source, node, written, arguments, 2, 3)
        parameter = _constant(source, node, written, arguments.pop(1), 1)
    _arity(source, node, written, arguments, 1, 2)
    if len(arguments) == 2:
        flag = arguments.pop()
        if not isinstance(flag, Literal) or flag.dtype != BOOLEAN:
            raise source.error(TypeMismatchError, f"the second argument of {written} is true to ignore NULLs", node)
        ignore_nulls |= bool(flag.value)
    present = arguments[0] if ignore_nulls else None
    return BoundWindow(function, (arguments[0],), arguments[0].dtype, (), (), frame, parameter, present)


def _ranking(
    source: SqlText,
    node: exp.Expr,
    written: str,
    ignore_nulls: bool,
    arguments: list[Expression],
    definition: _Definition,
) -> BoundWindow:
    if ignore_nulls:
        raise source.error(UnsupportedSqlError, f"Sash does not run IGNORE NULLS for {written}", node)
    spec = definition.spec
    if spec is not None and (
        spec.args.get("start"),
        spec.args.get("end") or "CURRENT ROW",
        spec.text("kind").upper(),
    ) != (
        *("UNBOUNDED", "CURRENT ROW"),
        "ROWS",
    ):
        raise source.error(UnsupportedSqlError, f"{written} takes no frame: remove it", spec)
    _arity(source, node, written, arguments, 0, 1 if written == "ntile" else 0)
    parameter = 0
    if written == "ntile":
        parameter = _constant(source, node, written, arguments[0], 1) if arguments else 1
    dtype = DOUBLE if written in ("percent_rank", "cume_dist") else INT
    return BoundWindow(written, (), dtype, (), (), BoundFrame(), parameter)


def _shift(
    source: SqlText, node: exp.Expr, written: str, ignore_nulls: bool, arguments: list[Expression], frame: BoundFrame
) -> BoundWindow:
    _arity(source, node, written, arguments, 1, 3)
    value = arguments[0]
    distance = _constant(source, node, written, arguments[1], -(2**31)) if len(arguments) > 1 else 1
    if distance < 0:
        written, distance = {"lag": "lead", "lead": "lag"}[written], -distance
    operands = [value]
    if len(arguments) > 2 and not (isinstance(arguments[2], Literal) and arguments[2].value is None):
        operands.append(coerce(arguments[2], value.dtype))
    return BoundWindow(
        written, tuple(operands), value.dtype, (), (), BoundFrame(), distance, value if ignore_nulls else None
    )


def _arity(source: SqlText, node: exp.Expr, written: str, arguments: list[Expression], least: int, most: int) -> None:
    if not least <= len(arguments) <= most:
        wanted = str(least) if least == most else f"{least} to {most}"
        raise source.error(
            TypeMismatchError, f"{written} takes {wanted} argument{'s' * (most != 1)}, not {len(arguments)}", node
        )


def _constant(source: SqlText, node: exp.Expr, written: str, expression: Expression, least: int) -> int:
    if isinstance(expression, Literal) and is_integer(expression.dtype) and expression.value is not None:
        number = int(expression.value)
        if least <= number < 2**31:
            return number
    problem = f"{written} needs a whole number" + (f" of at least {least}" if least > 0 else "") + " that is a constant"
    raise source.error(TypeMismatchError, problem, node)


def has_window(expression: Expression) -> bool:
    """Whether the expression has a window function in it."""
    return any(index >= WINDOWS for index in columns_of(expression))

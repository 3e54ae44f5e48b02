"""Frames of window functions: ROWS and RANGE, with their bounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from sash.errors import TypeMismatchError, UnsupportedSqlError
from sash.plan.expressions import Expression, Literal
from sash.plan.types import BIGINT, DATE, STRING, is_integer, is_numeric, type_name
from sash.plan.window_calls import BoundKind
from sash.sql.coercion import coerce
from sash.sql.functions import call, cast_of
from sash.sql.interval_literals import add_interval, constant_interval

if TYPE_CHECKING:
    from sash.sql.expressions import ExpressionBinder
    from sash.sql.windows import SortExpression


@dataclass(frozen=True)
class BoundEnd:
    """One end of a frame; `limit` is the value in the order up to which it reaches, if it goes by value."""

    kind: BoundKind = "unbounded"
    offset: int = 0
    limit: Expression | None = None


@dataclass(frozen=True)
class BoundFrame:
    """A frame whose bounds by value are expressions."""

    start: BoundEnd = BoundEnd()
    end: BoundEnd = BoundEnd()

    def over(self, change: Callable[[Expression], Expression]) -> BoundFrame:
        """The frame with its expressions changed."""

        def changed(end: BoundEnd) -> BoundEnd:
            return end if end.limit is None else replace(end, limit=change(end.limit))

        return BoundFrame(changed(self.start), changed(self.end))


def bind_frame(binder: ExpressionBinder, spec: exp.Expr | None, order: Sequence[SortExpression]) -> BoundFrame:
    """The frame that is written, or the one that SQL defines for a window without one."""
    current = BoundEnd("peer") if order else BoundEnd()
    if spec is None:
        return BoundFrame(BoundEnd(), current)
    source = binder.source
    if spec.args.get("exclude") is not None:
        raise source.error(UnsupportedSqlError, "Sash does not run EXCLUDE in a frame, and Spark has none either", spec)
    source.refuse_all_but(spec, "kind", "start", "start_side", "end", "end_side")
    kind = str(spec.args.get("kind")).upper()
    if kind not in ("ROWS", "RANGE"):
        raise source.error(
            UnsupportedSqlError,
            f"Sash does not run {kind} frames, and Spark has none either; write ROWS or RANGE",
            spec,
        )
    ends = []
    for name in ("start", "end"):
        value, side = spec.args.get(name), str(spec.args.get(f"{name}_side") or "").upper()
        value = "CURRENT ROW" if value is None else value
        if value == "UNBOUNDED":
            if side == ("FOLLOWING" if name == "start" else "PRECEDING"):
                raise source.error(UnsupportedSqlError, f"a frame cannot {name} with UNBOUNDED {side}", spec)
            ends.append(BoundEnd())
        elif value == "CURRENT ROW":
            ends.append(BoundEnd("row") if kind == "ROWS" else current)
        elif not isinstance(value, exp.Expr):
            raise source.error(UnsupportedSqlError, f"Sash does not run a frame with {value}", spec)
        elif kind == "ROWS":
            ends.append(BoundEnd("row", _rows(binder, value) * (-1 if side == "PRECEDING" else 1)))
        else:
            ends.append(BoundEnd("value", 0, _limit(binder, value, side == "PRECEDING", order, spec)))
    start, end = ends
    if start.kind == end.kind == "row" and start.offset > end.offset:
        raise source.error(UnsupportedSqlError, "a frame must not start after its end", spec)
    return BoundFrame(start, end)


def _rows(binder: ExpressionBinder, node: exp.Expr) -> int:
    bound = binder.bind(node)
    if isinstance(bound, Literal) and is_integer(bound.dtype) and bound.value is not None and 0 <= bound.value < 2**31:
        return int(bound.value)
    raise binder.source.error(
        TypeMismatchError, "a ROWS frame takes whole numbers that are constants, not negative", node
    )


def _limit(
    binder: ExpressionBinder, node: exp.Expr, preceding: bool, order: Sequence[SortExpression], spec: exp.Expr
) -> Expression:
    """The value up to which a frame reaches from the current row: its value in the order, plus or minus the offset."""
    source = binder.source
    if len(order) != 1:
        raise source.error(
            UnsupportedSqlError, "a RANGE frame with an offset needs exactly one expression in ORDER BY; use ROWS", spec
        )
    (key,) = order
    backward = preceding != key.descending
    interval = constant_interval(source, node)
    if interval is not None:
        if not pa.types.is_temporal(key.expression.dtype):
            raise source.error(
                TypeMismatchError, f"an INTERVAL needs a time in ORDER BY, not {type_name(key.expression.dtype)}", node
            )
        return add_interval(key.expression, interval.negated() if backward else interval)
    offset = binder.bind(node)
    known = (
        isinstance(offset, Literal)
        and offset.value is not None
        and (is_numeric(offset.dtype) or offset.dtype == STRING)
    )
    if not known or (isinstance(offset, Literal) and is_numeric(offset.dtype) and offset.value < 0):
        raise source.error(
            TypeMismatchError, "a RANGE frame takes a number or an INTERVAL that is a constant, not negative", node
        )
    value = key.expression
    if value.dtype == DATE:
        return call("date_sub" if backward else "date_add", [value, offset])
    if not is_numeric(value.dtype):
        raise source.error(
            TypeMismatchError,
            f"a RANGE frame with a number needs a number or a DATE in ORDER BY, not {type_name(value.dtype)}",
            node,
        )
    offset = cast_of(offset, value.dtype, lenient=False)
    if is_integer(value.dtype):
        value = coerce(value, BIGINT)
    return call("subtract" if backward else "add", [value, offset])

"""Constants in a query: numbers, strings, dates, times and intervals, with Spark's types."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime

import pyarrow as pa
from sqlglot import exp

from sash.errors import SqlSyntaxError, TypeMismatchError, UnsupportedSqlError, excerpt
from sash.plan.expressions import Call, Expression, Literal
from sash.plan.types import BIGINT, DATE, DOUBLE, INT, TIMESTAMP, TIMESTAMP_NTZ, type_name
from sash.sql.coercion import MAX_PRECISION, coerce
from sash.sql.dialect import UNITS, decimal_of, scaled
from sash.sql.source import SqlText

_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
_DAYS = {"DAY": 1, "WEEK": 7}
_MOST_MONTHS = 2**31 - 1
_MOST_DAYS = 106_751_991
_MOST_MICROSECONDS = 2**63 - 1
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:\d\d)?)?")


def number_literal(source: SqlText, node: exp.Expr, text: str) -> Literal:
    """An INT, BIGINT, DECIMAL or DOUBLE, depending on its notation.

    >>> number_literal(SqlText("1.50"), exp.Literal.number("1.50"), "1.50").dtype
    Decimal128Type(decimal128(3, 2))
    """
    value = decimal_of(text)
    if "e" in text.lower() and re.fullmatch(r"-?[0-9.]+[eE][+-]?[0-9]+", text):
        number = float(text)
        if math.isinf(number):
            raise source.error(TypeMismatchError, f"{excerpt(text)} does not fit DOUBLE", node)
        return Literal(number, DOUBLE)
    if value is None:
        raise source.error(SqlSyntaxError, f"{excerpt(text)} is not a number", node)
    if "." not in text and len(text) <= MAX_PRECISION:
        integer = int(text)
        if -(2**31) <= integer < 2**31:
            return Literal(integer, INT)
        if -(2**63) <= integer < 2**63:
            return Literal(integer, BIGINT)
    _, digits, exponent = value.as_tuple()
    scale = -int(exponent)
    precision = max(len(digits), scale)
    if precision > MAX_PRECISION:
        raise source.error(TypeMismatchError, f"{excerpt(text)} has more than {MAX_PRECISION} digits", node)
    return Literal(value, pa.decimal128(precision, scale))


def moment_literal(text: str, dtype: pa.DataType) -> Literal | None:
    """DATE '...' and TIMESTAMP '...' (UTC unless it has a zone) as constants.

    None for other types, and for rarer notations of a time, which are parsed by a cast.
    """
    if dtype not in (DATE, TIMESTAMP, TIMESTAMP_NTZ):
        return None
    text = text.strip()
    wanted = "2026-01-31" if dtype == DATE else "2026-01-31 12:30:00"
    refusal = TypeMismatchError(f"{excerpt(text)!r} is no {type_name(dtype)}: write it as {wanted}")
    if not (_DATE if dtype == DATE else _MOMENT).fullmatch(text):
        if re.match(r"[+-]?\d{4}", text):
            return None
        raise refusal
    try:
        if dtype == DATE:
            return Literal(date.fromisoformat(text), DATE)
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise refusal from None
    if dtype == TIMESTAMP_NTZ:
        return Literal(moment.replace(tzinfo=None), dtype)
    try:
        return Literal(moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC), dtype)
    except OverflowError:
        return None


@dataclass(frozen=True)
class Interval:
    """A constant interval: calendar months, whole days, and microseconds."""

    months: int = 0
    days: int = 0
    microseconds: int = 0

    def plus(self, other: Interval, sign: int = 1) -> Interval:
        """The sum, or with sign -1 the difference."""
        return Interval(
            self.months + sign * other.months,
            self.days + sign * other.days,
            self.microseconds + sign * other.microseconds,
        )

    def negated(self) -> Interval:
        """The negated interval."""
        return Interval().plus(self, -1)


def constant_interval(source: SqlText, node: exp.Expr) -> Interval | None:
    """The interval that a node denotes; None if the node is not an interval."""
    total, sign = Interval(), 1
    while True:
        match node:
            case exp.Paren():
                node = node.this
            case exp.Neg():
                node, sign = node.this, -sign
            case exp.Add() | exp.Sub():
                right = constant_interval(source, node.expression)
                if right is None:
                    return None
                total = total.plus(right, sign if isinstance(node, exp.Add) else -sign)
                node = node.this
            case exp.Interval():
                return total.plus(_interval(source, node), sign)
            case _:
                return None


def _interval(source: SqlText, node: exp.Interval) -> Interval:
    amount, unit = node.this, node.args.get("unit")
    if isinstance(amount, exp.Neg) and isinstance(amount.this, exp.Literal):
        text = f"-{amount.this.name}"
    else:
        text = amount.name if isinstance(amount, exp.Literal) else ""
    word = unit.name.upper() if isinstance(unit, exp.Var) else ""
    singular = word if word in UNITS or word in _MONTHS else word.removesuffix("S")
    number = decimal_of(text)
    scale = _MONTHS.get(singular) or _DAYS.get(singular) or UNITS.get(singular)
    total = None if number is None or scale is None else scaled(number, scale)
    if total is None:
        raise source.error(
            UnsupportedSqlError, "an interval is a constant whole number and a unit, such as INTERVAL 5 MINUTES", node
        )
    if abs(total) > (_MOST_MONTHS if singular in _MONTHS else _MOST_DAYS if singular in _DAYS else _MOST_MICROSECONDS):
        raise source.error(TypeMismatchError, "the interval is longer than Spark's longest", node)
    if singular in _MONTHS:
        return Interval(months=total)
    return Interval(days=total) if singular in _DAYS else Interval(microseconds=total)


def add_interval(moment: Expression, interval: Interval) -> Expression:
    """A DATE or TIMESTAMP moved by an interval, as Spark does it: days keep a DATE a DATE, shorter parts do not."""
    if not pa.types.is_temporal(moment.dtype):
        raise TypeMismatchError(f"an interval is added to a DATE or TIMESTAMP, not to {type_name(moment.dtype)}")
    if abs(interval.months) > _MOST_MONTHS:
        raise TypeMismatchError("the interval is longer than Spark's longest")
    if interval.months:
        if interval.days or interval.microseconds:
            raise TypeMismatchError("an interval may have years and months, or shorter units, but not both")
        return _add_months(moment, interval.months)
    if moment.dtype == DATE:
        if not interval.microseconds and abs(interval.days) <= _MOST_DAYS:
            return Call("date_add", (moment, Literal(interval.days, INT)), DATE)
        moment = coerce(moment, TIMESTAMP)
    total = interval.days * UNITS["DAY"] + interval.microseconds
    if abs(total) > _MOST_MICROSECONDS or abs(interval.days) > _MOST_DAYS:
        raise TypeMismatchError("the interval is longer than Spark's longest")
    return Call("timestamp_add_micros", (moment, Literal(total, BIGINT)), moment.dtype)


def _add_months(moment: Expression, months: int) -> Expression:
    """The same time of day, months later."""
    date_part = coerce(moment, DATE)
    moved = Call("add_months", (date_part, Literal(months, INT)), DATE)
    if moment.dtype == DATE:
        return moved
    midnight, now = (Call("unix_micros", (coerce(part, TIMESTAMP),), BIGINT) for part in (date_part, moment))
    time_of_day = Call("subtract", (now, midnight), BIGINT)
    return Call("timestamp_add_micros", (coerce(moved, moment.dtype), time_of_day), moment.dtype)


def backslash_pattern(pattern: object, escape: object) -> str:
    r"""A LIKE pattern with any ESCAPE character as one with backslashes.

    >>> backslash_pattern("10!%_", "!")
    '10\\%_'
    """
    if not isinstance(pattern, str) or not isinstance(escape, str) or len(escape) != 1:
        raise TypeMismatchError("ESCAPE takes a string of one character")
    result = []
    position = 0
    while position < len(pattern):
        character = pattern[position]
        if character == escape:
            position += 1
            following = pattern[position : position + 1]
            if following not in ("%", "_", escape) or not following:
                raise TypeMismatchError(f"in LIKE, {escape} must be followed by %, _ or {escape}")
            result.append("\\" + following if following in "%_\\" else following)
        else:
            result.append("\\\\" if character == "\\" else character)
        position += 1
    return "".join(result)

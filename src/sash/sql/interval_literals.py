"""Constant intervals: literals, sums of them, and a DATE or TIMESTAMP moved by one."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from sash.errors import TypeMismatchError, UnsupportedSqlError
from sash.plan.expressions import Call, Expression, Literal
from sash.plan.interval_text import parsed
from sash.plan.sql_types import (
    DAY_TIME_FIELDS,
    INTERVALS,
    YEAR_MONTH_FIELDS,
    SqlType,
    YearMonthInterval,
    common_interval,
    day_time,
    year_month,
)
from sash.plan.types import BIGINT, DATE, INT, TIMESTAMP, type_name
from sash.sql.coercion import coerce
from sash.sql.dialect import UNITS, decimal_of, scaled
from sash.sql.intervals import add_months
from sash.sql.source import SqlText

_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
_DAYS = {"DAY": 1, "WEEK": 7}
_FIELDS = {"QUARTER": "MONTH", "WEEK": "DAY", "MILLISECOND": "SECOND", "MICROSECOND": "SECOND"}
"""The fields of units that are not fields themselves."""
_MOST_MONTHS = 2**31 - 1
_MOST_DAYS = 106_751_991
_MOST_MICROSECONDS = 2**63 - 1
_PARTS = re.compile(r"\s*(?:interval\s+)?((?:[+-]?\s*[\d.]+\s+[a-z]+\s*)+)", re.IGNORECASE)
_PART = re.compile(r"([+-]?)\s*([\d.]+)\s+([a-z]+)", re.IGNORECASE)
_REFUSAL = (
    "an interval is a constant whole number and a unit, such as INTERVAL 5 MINUTES, or such as INTERVAL '1 12:30:00' DAY TO "
    "SECOND; multiply one by other values"
)


@dataclass(frozen=True)
class Interval:
    """A constant interval: calendar months, whole days, and microseconds."""

    months: int = 0
    days: int = 0
    microseconds: int = 0
    dtype: SqlType | None = None
    """The type, which has the fields that are written; None if there is none, because of months beside days."""

    def plus(self, other: Interval, sign: int = 1) -> Interval:
        """The sum, or with sign -1 the difference."""
        return Interval(
            self.months + sign * other.months,
            self.days + sign * other.days,
            self.microseconds + sign * other.microseconds,
            other.dtype if self == Interval() else common_interval(self.dtype, other.dtype),
        )

    def negated(self) -> Interval:
        """The negated interval."""
        return Interval().plus(self, -1)

    @property
    def literal(self) -> Literal:
        """The interval as a value."""
        if self.dtype is None:
            raise TypeMismatchError("an interval may have years and months, or shorter units, but not both")
        value = (
            self.months if isinstance(self.dtype, YearMonthInterval) else self.days * UNITS["DAY"] + self.microseconds
        )
        limit = _MOST_MONTHS if isinstance(self.dtype, YearMonthInterval) else _MOST_MICROSECONDS
        if not -limit - 1 <= value <= limit:
            raise TypeMismatchError("the interval is longer than Spark's longest")
        return Literal(value, self.dtype)


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
    sign = -1 if isinstance(amount, exp.Neg) else 1
    written = amount.this if isinstance(amount, exp.Neg) else amount
    if not isinstance(written, exp.Literal):
        raise source.error(UnsupportedSqlError, _REFUSAL, node)
    if isinstance(unit, exp.IntervalSpan):
        made = _span(written.name, f"INTERVAL {unit.this.name} TO {unit.expression.name}".upper())
    elif unit is None:
        made = _parts(written.name)
    else:
        made = _single(written.name, unit.name if isinstance(unit, exp.Var) else "")
    if made is None:
        raise source.error(UnsupportedSqlError, _REFUSAL, node)
    limits = (made.months, _MOST_MONTHS), (made.days, _MOST_DAYS), (made.microseconds, _MOST_MICROSECONDS)
    if any(abs(value) > most for value, most in limits):
        raise source.error(TypeMismatchError, "the interval is longer than Spark's longest", node)
    return made if sign == 1 else made.negated()


def _single(text: str, unit: str) -> Interval | None:
    """A number of one unit."""
    word = unit.upper()
    singular = word if word in UNITS or word in _MONTHS else word.removesuffix("S")
    number = decimal_of(text)
    scale = _MONTHS.get(singular) or _DAYS.get(singular) or UNITS.get(singular)
    total = None if number is None or scale is None else scaled(number, scale)
    if total is None:
        return None
    field = _FIELDS.get(singular, singular)
    if singular in _MONTHS:
        place = YEAR_MONTH_FIELDS.index(field)
        return Interval(months=total, dtype=year_month(place, place))
    place = DAY_TIME_FIELDS.index(field)
    if singular in _DAYS:
        return Interval(days=total, dtype=day_time(place, place))
    return Interval(microseconds=total, dtype=day_time(place, place))


def _parts(text: str) -> Interval | None:
    """Several numbers and units in one text, such as '1 day 2 hours'."""
    found = _PARTS.fullmatch(text)
    if found is None:
        return None
    total = Interval()
    for sign, number, unit in _PART.findall(found[1]):
        part = _single(sign + number, unit)
        if part is None:
            return None
        total = total.plus(part)
    return total


def _span(text: str, name: str) -> Interval | None:
    """An interval from one field to another, such as '1 12:30:00'."""
    dtype = INTERVALS.get(name)
    value = None if dtype is None else parsed(text, name)
    if dtype is None or value is None:
        return None
    if isinstance(dtype, YearMonthInterval):
        return Interval(months=value, dtype=dtype)
    days = int(value / UNITS["DAY"])
    return Interval(days=days, microseconds=value - days * UNITS["DAY"], dtype=dtype)


def add_interval(moment: Expression, interval: Interval) -> Expression:
    """A DATE or TIMESTAMP moved by an interval, as Spark does it: days keep a DATE a DATE, shorter parts do not."""
    if not pa.types.is_temporal(moment.dtype):
        raise TypeMismatchError(f"an interval is added to a DATE or TIMESTAMP, not to {type_name(moment.dtype)}")
    if abs(interval.months) > _MOST_MONTHS:
        raise TypeMismatchError("the interval is longer than Spark's longest")
    if interval.months:
        if interval.days or interval.microseconds:
            raise TypeMismatchError("an interval may have years and months, or shorter units, but not both")
        return add_months(moment, Literal(interval.months, INT))
    if moment.dtype == DATE:
        if interval.dtype in (None, day_time(0, 0)) and not interval.microseconds and abs(interval.days) <= _MOST_DAYS:
            return Call("date_add", (moment, Literal(interval.days, INT)), DATE)
        moment = coerce(moment, TIMESTAMP)
    total = interval.days * UNITS["DAY"] + interval.microseconds
    if abs(total) > _MOST_MICROSECONDS or abs(interval.days) > _MOST_DAYS:
        raise TypeMismatchError("the interval is longer than Spark's longest")
    return Call("timestamp_add_micros", (moment, Literal(total, BIGINT)), moment.dtype)

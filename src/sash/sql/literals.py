"""Constants in a query: numbers, strings, dates and times, with Spark's types."""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime

import pyarrow as pa
from sqlglot import exp

from sash.errors import SqlSyntaxError, TypeMismatchError, excerpt
from sash.plan.expressions import Literal
from sash.plan.types import BIGINT, DATE, DOUBLE, INT, TIMESTAMP, TIMESTAMP_NTZ, type_name
from sash.sql.coercion import MAX_PRECISION
from sash.sql.dialect import decimal_of
from sash.sql.source import SqlText

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

"""Expressions and aggregates as readable text: `price > 4`, `upper(name)`, `sum(price)`."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

from sash.plan.compound import fold
from sash.plan.expressions import (
    TIMED,
    AggregateCall,
    Call,
    Case,
    Cast,
    Column,
    Expression,
    Lambda,
    Literal,
    SparkFunction,
    Variable,
)
from sash.plan.types import type_name

INFIX = {
    "or": (1, "OR"),
    "and": (2, "AND"),
    "eq": (4, "="),
    "ne": (4, "<>"),
    "lt": (4, "<"),
    "le": (4, "<="),
    "gt": (4, ">"),
    "ge": (4, ">="),
    "eq_null_safe": (4, "<=>"),
    "like": (4, "LIKE"),
    "ilike": (4, "ILIKE"),
    "rlike": (4, "RLIKE"),
    "bit_or": (5, "|"),
    "bit_xor": (6, "^"),
    "bit_and": (7, "&"),
    "add": (8, "+"),
    "subtract": (8, "-"),
    "multiply": (9, "*"),
    "divide": (9, "/"),
    "modulo": (9, "%"),
    "int_divide": (9, "DIV"),
}
"""Operator -> its precedence and its symbol."""

COMPARISONS = {name: sign for name, (binding, sign) in INFIX.items() if binding == 4}
"""The symbols of comparisons."""

_ASSOCIATIVE = frozenset({"and", "or"})
"""Operators whose long chains are balanced trees, which are written without parentheses."""

_NOT = 3
_TEST = 4
_SIGN = 10
_TIGHT = 11


def describe(expression: Expression) -> str:
    """The expression as SQL-like text.

    >>> import pyarrow as pa
    >>> describe(Call("gt", (Column(0, "price", pa.int32()), Literal(4, pa.int32())), pa.bool_()))
    'price > 4'
    """
    return fold(expression, _text)[1]


def describe_aggregate(aggregate: AggregateCall) -> str:
    """The aggregate as SQL-like text."""
    if aggregate.function == "count_star":
        return "count(*)"
    arguments = [argument.name for argument in aggregate.arguments]
    if aggregate.detail is not None and aggregate.detail.user is not None:
        condition = f" FILTER (WHERE {arguments.pop()})" if aggregate.detail.filtered else ""
        distinct = "DISTINCT " if aggregate.distinct else ""
        arguments += map(str, aggregate.detail.user.settings)
        return f"{aggregate.detail.user.name}({distinct}{', '.join(arguments)}){condition}"
    if aggregate.function in TIMED and len(arguments) == 2:
        return f"{aggregate.function}({arguments[0]}) FILTER (WHERE {arguments[1]})"
    if aggregate.parameter is not None:
        arguments.append(f"{aggregate.parameter:g}")
    return f"{aggregate.function}({'DISTINCT ' if aggregate.distinct else ''}{', '.join(arguments)})"


_Text = tuple[int, str]
"""The precedence of the outermost operator, and the text."""


def _text(expression: Expression, parts: list[_Text]) -> _Text:
    match expression:
        case Column():
            return _TIGHT, expression.name or f"#{expression.index}"
        case Literal():
            return _TIGHT, _constant(expression.value)
        case Cast():
            word = "try_cast" if expression.lenient else "cast"
            return _TIGHT, f"{word}({parts[0][1]} AS {type_name(expression.dtype)})"
        case Case():
            texts = [text for _, text in parts]
            default = "" if expression.otherwise is None else f" ELSE {texts.pop()}"
            branches = "".join(f" WHEN {when} THEN {then}" for when, then in zip(texts[::2], texts[1::2], strict=True))
            return _TIGHT, f"CASE{branches}{default} END"
        case Variable():
            return _TIGHT, expression.name
        case Lambda():
            names = ", ".join(variable.name for variable in expression.variables)
            return 0, f"{names if len(expression.variables) == 1 else f'({names})'} -> {parts[0][1]}"
        case SparkFunction():
            return _TIGHT, expression.sql.format(*(_within(part, _TIGHT) for part in parts))
        case Call():
            if expression.function == "get_field" and isinstance(expression.arguments[1], Literal):
                return _TIGHT, f"{_within(parts[0], _TIGHT)}.{expression.arguments[1].value}"
            return _call(expression.function, parts)


def _within(part: _Text, outer: int) -> str:
    """The text as an operand of an operator, in parentheses if that binds more tightly."""
    level, text = part
    return f"({text})" if level < outer else text


def _call(name: str, arguments: list[_Text]) -> _Text:
    if name in INFIX and len(arguments) == 2:
        level, sign = INFIX[name]
        left, right = arguments
        return level, f"{_within(left, level)} {sign} {_within(right, level if name in _ASSOCIATIVE else level + 1)}"
    if arguments:
        first = arguments[0]
        match name:
            case "not":
                return _NOT, f"NOT {_within(first, _NOT)}"
            case "negate":
                return _SIGN, f"-{_within(first, _TIGHT)}"
            case "get_item":
                return _TIGHT, f"{_within(first, _TIGHT)}[{arguments[1][1]}]"
            case "is_null":
                return _TEST, f"{_within(first, _TEST + 1)} IS NULL"
            case "is_not_null":
                return _TEST, f"{_within(first, _TEST + 1)} IS NOT NULL"
            case "in":
                choices = ", ".join(text for _, text in arguments[1:])
                return _TEST, f"{_within(first, _TEST + 1)} IN ({choices})"
    return _TIGHT, f"{name}({', '.join(text for _, text in arguments)})"


def _constant(value: Any) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case str():
            return "'" + value.replace("'", "''") + "'"
        case bytes():
            return f"X'{value.hex().upper()}'"
        case datetime():
            return f"TIMESTAMP '{value.replace(tzinfo=None).isoformat(sep=' ')}'"
        case date():
            return f"DATE '{value.isoformat()}'"
        case _:
            return str(value)

"""Expressions and aggregates as readable text: `price > 4`, `upper(name)`, `sum(price)`."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

from sash.plan.expressions import AggregateCall, Call, Case, Cast, Column, Expression, Literal, SparkFunction
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
    return _text(expression, 0)


def describe_aggregate(aggregate: AggregateCall) -> str:
    """The aggregate as SQL-like text."""
    if aggregate.function == "count_star":
        return "count(*)"
    arguments = [argument.name for argument in aggregate.arguments]
    if aggregate.parameter is not None:
        arguments.append(f"{aggregate.parameter:g}")
    return f"{aggregate.function}({'DISTINCT ' if aggregate.distinct else ''}{', '.join(arguments)})"


def _text(expression: Expression, outer: int) -> str:
    match expression:
        case Column():
            return expression.name or f"#{expression.index}"
        case Literal():
            return _constant(expression.value)
        case Cast():
            word = "try_cast" if expression.lenient else "cast"
            return f"{word}({_text(expression.argument, 0)} AS {type_name(expression.dtype)})"
        case Case():
            branches = "".join(f" WHEN {_text(when, 0)} THEN {_text(then, 0)}" for when, then in expression.branches)
            default = "" if expression.otherwise is None else f" ELSE {_text(expression.otherwise, 0)}"
            return f"CASE{branches}{default} END"
        case SparkFunction():
            return expression.sql.format(*(_text(argument, _TIGHT) for argument in expression.arguments))
        case Call():
            level, text = _call(expression)
            return f"({text})" if level < outer else text


def _call(call: Call) -> tuple[int, str]:
    """The precedence of the outermost operator, and the text."""
    name, arguments = call.function, call.arguments
    if name in INFIX and len(arguments) == 2:
        level, sign = INFIX[name]
        left, right = arguments
        return level, f"{_text(left, level)} {sign} {_text(right, level + 1)}"
    first = arguments[0] if arguments else None
    if first is not None:
        match name:
            case "not":
                return _NOT, f"NOT {_text(first, _NOT)}"
            case "negate":
                return _SIGN, f"-{_text(first, _TIGHT)}"
            case "is_null":
                return _TEST, f"{_text(first, _TEST + 1)} IS NULL"
            case "is_not_null":
                return _TEST, f"{_text(first, _TEST + 1)} IS NOT NULL"
            case "in":
                choices = ", ".join(_text(choice, 0) for choice in arguments[1:])
                return _TEST, f"{_text(first, _TEST + 1)} IN ({choices})"
    return _TIGHT, f"{name}({', '.join(_text(argument, 0) for argument in arguments)})"


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

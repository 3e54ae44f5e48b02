"""The functions that operators of the syntax denote."""

from __future__ import annotations

from sqlglot import exp

INFIX: dict[type[exp.Expr], str] = {
    exp.Add: "add",
    exp.Sub: "subtract",
    exp.Mul: "multiply",
    exp.Div: "divide",
    exp.Mod: "modulo",
    exp.IntDiv: "int_divide",
    exp.EQ: "eq",
    exp.NEQ: "ne",
    exp.LT: "lt",
    exp.LTE: "le",
    exp.GT: "gt",
    exp.GTE: "ge",
    exp.NullSafeEQ: "eq_null_safe",
    exp.BitwiseAnd: "bit_and",
    exp.BitwiseOr: "bit_or",
    exp.BitwiseXor: "bit_xor",
    exp.DPipe: "concat",
    exp.RegexpLike: "rlike",
    exp.Like: "like",
    exp.ILike: "ilike",
}
"""Operators of two operands, `this` and `expression`."""

EXTRACTS = {
    **{part: part for part in ("year", "month", "day", "hour", "minute", "quarter", "dayofweek")},
    "dow": "dayofweek",
    "doy": "dayofyear",
    "week": "weekofyear",
}
"""The parts of EXTRACT(part FROM moment)."""

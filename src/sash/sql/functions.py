"""Sash's library of scalar functions: canonical name -> argument and result types, as in Spark 4 with ANSI mode.

The functions are evaluated in operators/scalar.
"""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from sash.errors import TypeMismatchError
from sash.plan.expressions import Cast, Expression
from sash.plan.types import BIGINT, BINARY, BOOLEAN, DATE, DOUBLE, INT, NULL, STRING, TIMESTAMP
from sash.sql import function_rules as rules
from sash.sql import nested_rules
from sash.sql.signatures import (
    aes,
    conditional,
    csv_texts,
    dates,
    formats,
    json,
    lists,
    numbers,
    sketches,
    strings,
    variants,
)
from sash.sql.signatures.base import Signature


def call(name: str, arguments: rules.Arguments) -> Expression:
    """The typed call of a function of the library.

    >>> from sash.plan.expressions import Literal
    >>> call("add", [Literal(1, INT), Literal(2, BIGINT)]).dtype
    DataType(int64)
    """
    signature = FUNCTIONS[name]
    if len(arguments) < signature.least or (signature.most is not None and len(arguments) > signature.most):
        least, most = signature.least, signature.most
        wants = (
            f"{least} or more"
            if most is None
            else f"{least} {'or' if most == least + 1 else 'to'} {most}"
            if most > least
            else str(least)
        )
        raise TypeMismatchError(f"{name} takes {wants} argument{'' if wants == '1' else 's'}, not {len(arguments)}")
    return signature.rule(name, arguments)


FUNCTIONS: dict[str, Signature] = {
    **{name: Signature(2, 2, rules.arithmetic) for name in ("add", "subtract", "multiply", "divide", "modulo")},
    **{name: Signature(2, 2, rules.arithmetic) for name in ("int_divide", "pmod")},
    **{name: Signature(2, 2, rules.comparison) for name in ("eq", "ne", "lt", "le", "gt", "ge", "eq_null_safe")},
    **{name: Signature(2, 2, rules.logical) for name in ("and", "or")},
    "not": Signature(1, 1, rules.logical),
    "negate": Signature(1, 1, rules.same_number),
    "abs": Signature(1, 1, rules.same_number),
    **{name: Signature(1, 1, rules.of_anything(BOOLEAN)) for name in ("is_null", "is_not_null")},
    "is_nan": Signature(1, 1, rules.of_types((DOUBLE,), BOOLEAN)),
    **{name: Signature(2, 2, rules.of_types((STRING,), BOOLEAN)) for name in ("like", "ilike", "rlike")},
    "in": Signature(2, None, rules.in_list),
    "coalesce": Signature(1, None, rules.merge),
    **{name: Signature(2, None, rules.merge) for name in ("greatest", "least")},
    "nullif": Signature(2, 2, rules.nullif),
    "nvl2": Signature(3, 3, rules.nvl2),
    "round": Signature(1, 2, rules.rounded),
    **{name: Signature(1, 1, rules.of_types((DOUBLE,), DOUBLE)) for name in ("sqrt", "exp", "ln", "log10", "log2")},
    "sign": Signature(1, 1, rules.sign),
    "pow": Signature(2, 2, rules.of_types((DOUBLE,), DOUBLE)),
    **{name: Signature(1, 1, rules.of_types((STRING,), STRING)) for name in ("upper", "lower", "initcap")},
    "reverse": Signature(1, 1, rules.reversed_value),
    **{name: Signature(1, 2, rules.of_types((STRING,), STRING)) for name in ("trim", "ltrim", "rtrim")},
    "concat": Signature(1, None, rules.concat),
    "concat_ws": Signature(2, None, rules.of_types((STRING,), STRING)),
    "replace": Signature(2, 3, rules.of_types((STRING,), STRING)),
    **{name: Signature(2, 2, rules.of_types((STRING, INT), STRING)) for name in ("repeat",)},
    "instr": Signature(2, 2, rules.of_types((STRING,), INT)),
    **{name: Signature(2, 2, rules.of_types((STRING,), BOOLEAN)) for name in ("starts_with", "ends_with", "contains")},
    "split_part": Signature(3, 3, rules.of_types((STRING, STRING, INT), STRING)),
    "ascii": Signature(1, 1, rules.of_types((STRING,), INT)),
    "translate": Signature(3, 3, rules.of_types((STRING,), STRING)),
    **{
        name: Signature(1, 1, rules.of_types((DATE,), INT))
        for name in ("year", "month", "day", "quarter", "weekofyear", "dayofweek", "dayofyear")
    },
    **{name: Signature(1, 1, rules.of_types((TIMESTAMP,), INT)) for name in ("hour", "minute", "second")},
    **{name: Signature(2, 2, rules.of_types((DATE, INT), DATE)) for name in ("date_add", "date_sub")},
    "datediff": Signature(2, 2, rules.of_types((DATE,), INT)),
    "date_trunc": Signature(2, 2, rules.date_trunc),
    **{name: Signature(1, 1, rules.unix_time) for name in ("unix_seconds", "unix_millis", "unix_micros")},
    **{
        name: Signature(1, 1, rules.of_types((BIGINT,), TIMESTAMP)) for name in ("timestamp_micros", "timestamp_millis")
    },
    "timestamp_seconds": Signature(1, 1, rules.seconds),
    "last_day": Signature(1, 1, rules.of_types((DATE,), DATE)),
    "add_months": Signature(2, 2, rules.add_months),
    **{name: Signature(2, 2, rules.bitwise) for name in ("bit_and", "bit_or", "bit_xor")},
    "crc32": Signature(1, 1, rules.digest((), BIGINT)),
    "md5": Signature(1, 1, rules.digest((), STRING)),
    "sha2": Signature(2, 2, rules.digest((INT,), STRING)),
    "hex": Signature(1, 1, rules.hexadecimal),
    "array": Signature(0, None, nested_rules.array),
    "named_struct": Signature(2, None, nested_rules.named_struct),
    "map": Signature(2, None, nested_rules.map_of),
    "map_from_arrays": Signature(2, 2, nested_rules.map_from_arrays),
    "map_from_entries": Signature(1, 1, nested_rules.map_from_entries),
    "map_concat": Signature(0, None, nested_rules.map_concat),
    **{name: Signature(1, 1, nested_rules.map_part) for name in ("map_keys", "map_values", "map_entries")},
    "map_contains_key": Signature(2, 2, nested_rules.map_contains_key),
    "size": Signature(1, 1, nested_rules.size),
    **{name: Signature(2, 2, nested_rules.element_at) for name in ("element_at", "try_element_at", "get")},
    "array_contains": Signature(2, 2, nested_rules.array_contains),
    **{
        name: Signature(1, 1, rules.of_types((BIGINT,), BIGINT))
        for name in ("bitmap_bit_position", "bitmap_bucket_number")
    },
    "bitmap_count": Signature(1, 1, rules.bitmap),
    "hmac": Signature(2, 3, rules.of_types((BINARY, BINARY, STRING), BINARY)),
    "jaro_winkler_similarity": Signature(2, 2, rules.of_types((STRING,), DOUBLE)),
    "raise_error": Signature(1, 1, rules.of_types((STRING,), NULL)),
    "assert_true": Signature(1, 2, rules.of_types((BOOLEAN, STRING), NULL)),
    **aes.SIGNATURES,
    **conditional.SIGNATURES,
    **csv_texts.SIGNATURES,
    **dates.SIGNATURES,
    **formats.SIGNATURES,
    **json.SIGNATURES,
    **lists.SIGNATURES,
    **numbers.SIGNATURES,
    **sketches.SIGNATURES,
    **strings.SIGNATURES,
    **variants.SIGNATURES,
}

ALIASES: dict[str, str] = {
    **dates.ALIASES,
    **formats.ALIASES,
    **numbers.ALIASES,
    **strings.ALIASES,
    "array_size": "size",
    "cardinality": "size",
    "ceiling": "ceil",
    "char_length": "length",
    "character_length": "length",
    "date_diff": "datediff",
    "dateadd": "date_add",
    "dayofmonth": "day",
    "endswith": "ends_with",
    "if_null": "coalesce",
    "ifnull": "coalesce",
    "isnan": "is_nan",
    "isnotnull": "is_not_null",
    "isnull": "is_null",
    "lcase": "lower",
    "len": "length",
    "mod": "modulo",
    "negative": "negate",
    "nvl": "coalesce",
    "power": "pow",
    "regexp": "rlike",
    "regexp_like": "rlike",
    "sign": "sign",
    "signum": "sign",
    "startswith": "starts_with",
    "substr": "substring",
    "ucase": "upper",
}
"""Other names of the same functions."""

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
    exp.BitwiseLeftShift: "shiftleft",
    exp.BitwiseRightShift: "shiftright",
    exp.DPipe: "concat",
    exp.RegexpLike: "rlike",
    exp.Like: "like",
    exp.ILike: "ilike",
}
"""Operators with the operands `this` and `expression` -> the function they denote."""

OPERATORS = frozenset(
    {"add", "subtract", "multiply", "divide", "modulo", "negate", "int_divide", "eq", "ne", "lt", "le", "gt", "ge"}
    | {"eq_null_safe", "and", "or", "not", "in", "is_not_null", "is_nan", "is_null"}
    | {"bit_and", "bit_or", "bit_xor", "bit_not"}
)
"""Canonical names of functions that are written as operators."""


def canonical_name(written: str) -> str | None:
    """The canonical name of a function as users write it; None if it is not in the library.

    >>> canonical_name("CEILING")
    'ceil'
    """
    name = written.lower()
    if name in ALIASES:
        return ALIASES[name]
    return name if name in FUNCTIONS and name not in OPERATORS else None


def cast_of(argument: Expression, dtype: pa.DataType, lenient: bool = False) -> Expression:
    """CAST or TRY_CAST."""
    return argument if argument.dtype == dtype else Cast(argument, dtype, lenient)

"""The function library: every scalar function by its canonical name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from sash.operators.scalar import arithmetic, comparisons, dates, mathematics, nested, patterns, strings
from sash.operators.scalar.arrays import Datum, apply_kernel
from sash.time import MILLISECOND, SECOND

MANY = 1 << 30


@dataclass(frozen=True)
class Function:
    """The implementation of a function.

    `run` gets at least one array among its arguments (constants stay Arrow scalars) and the type of its result. A
    strict function is NULL if an argument is, so it never sees an argument of type VOID or a NULL constant. One that
    fails may raise on a value, so it runs only on rows that need it.
    """

    run: Callable[[Sequence[Datum], pa.DataType], Datum]
    least: int
    most: int
    strict: bool = True
    fails: bool = False


def _one(run: Callable[[Sequence[Datum], pa.DataType], Datum], fails: bool = False) -> Function:
    return Function(run, 1, 1, fails=fails)


def _two(run: Callable[[Sequence[Datum], pa.DataType], Datum], fails: bool = False) -> Function:
    return Function(run, 2, 2, fails=fails)


FUNCTIONS: dict[str, Function] = {
    **{name: _two(partial(arithmetic.binary, name), fails=True) for name in ("add", "subtract", "multiply", "divide")},
    "modulo": _two(arithmetic.modulo, fails=True),
    "pmod": _two(arithmetic.pmod, fails=True),
    "int_divide": _two(arithmetic.int_divide, fails=True),
    "negate": _one(partial(apply_kernel, "negate_checked"), fails=True),
    "abs": _one(partial(apply_kernel, "abs_checked"), fails=True),
    **{f"bit_{name}": _two(partial(arithmetic.bitwise, name)) for name in ("and", "or", "xor")},
    **{name: _two(partial(comparisons.comparison, name)) for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    "eq_null_safe": Function(comparisons.eq_null_safe, 2, 2, strict=False),
    "is_null": Function(partial(apply_kernel, "is_null"), 1, 1, strict=False),
    "is_not_null": Function(partial(apply_kernel, "is_valid"), 1, 1, strict=False),
    "is_nan": Function(comparisons.is_nan, 1, 1, strict=False),
    "not": _one(partial(apply_kernel, "invert")),
    "in": Function(comparisons.is_in, 2, MANY, strict=False),
    "single_value": Function(comparisons.single_value, 2, 2, strict=False, fails=True),
    "nullif": Function(comparisons.nullif, 2, 2, strict=False),
    "greatest": Function(partial(comparisons.extreme, "max"), 1, MANY, strict=False),
    "least": Function(partial(comparisons.extreme, "min"), 1, MANY, strict=False),
    "ceil": _one(partial(mathematics.toward, "ceil"), fails=True),
    "floor": _one(partial(mathematics.toward, "floor"), fails=True),
    "round": Function(mathematics.round_number, 1, 2, fails=True),
    **{name: _one(partial(mathematics.function, name)) for name in ("sign", "sqrt", "exp")},
    **{name: _one(partial(mathematics.logarithm, name)) for name in ("ln", "log10", "log2")},
    "pow": _two(partial(mathematics.function, "power")),
    "upper": _one(partial(strings.change_case, "upper")),
    "lower": _one(partial(strings.change_case, "lower")),
    **{name: Function(partial(strings.trim, name), 1, 2) for name in ("trim", "ltrim", "rtrim")},
    "length": _one(strings.length),
    "substring": Function(strings.substring, 2, 3),
    "left": _two(strings.left),
    "right": _two(strings.right),
    "concat": Function(strings.concat, 0, MANY),
    "concat_ws": Function(strings.concat_ws, 1, MANY, strict=False),
    "lpad": Function(partial(strings.pad, "left"), 2, 3),
    "rpad": Function(partial(strings.pad, "right"), 2, 3),
    "repeat": _two(strings.repeat),
    "reverse": _one(strings.reverse),
    "ascii": _one(strings.first_code),
    "initcap": _one(strings.initcap),
    "translate": Function(strings.translate, 3, 3),
    "like": _two(patterns.like(ignore_case=False), fails=True),
    "ilike": _two(patterns.like(ignore_case=True), fails=True),
    "rlike": _two(patterns.match_regexes, fails=True),
    "starts_with": _two(patterns.find("starts_with")),
    "ends_with": _two(patterns.find("ends_with")),
    "contains": _two(patterns.find("match_substring")),
    "instr": _two(patterns.positions),
    "replace": Function(patterns.replace, 2, 3),
    "split_part": Function(patterns.split_parts, 3, 3, fails=True),
    **{name: _one(partial(dates.field, name), fails=True) for name in ("year", "month", "day", "quarter")},
    **{name: _one(partial(dates.field, name), fails=True) for name in ("hour", "minute", "second")},
    "weekofyear": _one(partial(dates.field, "iso_week"), fails=True),
    "dayofyear": _one(partial(dates.field, "day_of_year"), fails=True),
    "dayofweek": _one(dates.day_of_week, fails=True),
    "date_add": _two(partial(dates.date_add, 1), fails=True),
    "date_sub": _two(partial(dates.date_add, -1), fails=True),
    "datediff": _two(dates.date_diff, fails=True),
    "date_trunc": _two(dates.date_trunc, fails=True),
    "to_date": _one(dates.to_date, fails=True),
    "last_day": _one(dates.last_day, fails=True),
    "add_months": _two(dates.add_months, fails=True),
    "unix_timestamp": _one(dates.unix_timestamp, fails=True),
    "unix_seconds": _one(partial(dates.unix_time, SECOND)),
    "unix_millis": _one(partial(dates.unix_time, MILLISECOND)),
    "unix_micros": _one(partial(dates.unix_time, 1)),
    "timestamp_seconds": _one(partial(dates.timestamp_from, SECOND), fails=True),
    "timestamp_millis": _one(partial(dates.timestamp_from, MILLISECOND), fails=True),
    "timestamp_micros": _one(partial(dates.timestamp_from, 1), fails=True),
    "timestamp_add_micros": _two(dates.add_micros, fails=True),
    "window_start": Function(partial(dates.window_bound, False), 3, 3),
    "window_end": Function(partial(dates.window_bound, True), 3, 3),
    "md5": _one(strings.md5),
    "sha2": _two(strings.sha2),
    "crc32": _one(strings.crc32),
    "hex": _one(strings.hexadecimal),
    "array": Function(nested.array, 0, MANY, strict=False),
    "struct": Function(nested.struct, 0, MANY, strict=False),
    "map": Function(nested.map_of, 0, MANY, strict=False, fails=True),
    "map_from_arrays": _two(nested.map_from_arrays, fails=True),
    "map_from_entries": _one(nested.map_from_entries, fails=True),
    "map_keys": _one(partial(nested.map_part, 0)),
    "map_values": _one(partial(nested.map_part, 1)),
    "map_entries": _one(nested.map_entries),
    "map_contains_key": _two(nested.map_contains_key),
    "size": _one(nested.size),
    "get_field": _two(nested.get_field),
    "get_item": _two(nested.get_item, fails=True),
    "get": _two(nested.get),
    "element_at": _two(partial(nested.element_at, False), fails=True),
    "try_element_at": _two(partial(nested.element_at, True), fails=True),
    "array_contains": _two(nested.array_contains),
}

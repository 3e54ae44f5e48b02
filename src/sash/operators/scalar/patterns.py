"""Searching in strings: LIKE, regular expressions, substrings, and functions based on them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sash.errors import EvaluationError, excerpt
from sash.operators.scalar import arrays
from sash.operators.scalar.arrays import Array, Datum, kernel

_BAD_ESCAPE = re.compile(r"(?:[^\\]|\\[\\%_])*\\(?:[^\\%_]|$)", re.DOTALL)


def like(ignore_case: bool) -> Callable[[Sequence[Datum], pa.DataType], Array]:
    """LIKE or ILIKE, with the backslash as the escape."""

    def match(values: Array, pattern: str) -> Array:
        if _BAD_ESCAPE.match(pattern):
            raise EvaluationError(
                f"LIKE '{excerpt(pattern)}': a backslash may stand only before %, _ or another backslash; double it"
            )
        return kernel("match_like", values, options=pc.MatchSubstringOptions(pattern, ignore_case=ignore_case))

    return _with_parameters(match, pa.bool_())


def find(name: str) -> Callable[[Sequence[Datum], pa.DataType], Array]:
    """starts_with, ends_with or contains ("match_substring")."""
    return _with_parameters(
        lambda values, part: kernel(name, values, options=pc.MatchSubstringOptions(part)), pa.bool_()
    )


def position(values: Array, part: str) -> Array:
    """INSTR: the position of the first occurrence, or 0; non-ASCII text in Python, once per distinct value."""
    plain = kernel("string_is_ascii", values)
    if arrays.holds_any(kernel("invert", plain)):
        return arrays.map_distinct(values, lambda text: text.find(part) + 1, pa.int32())
    found = kernel("find_substring", values, options=pc.MatchSubstringOptions(part))
    return kernel("add", found, pa.scalar(1, found.type))


def replace(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """Every occurrence of the second argument replaced by the third; without a third, dropped."""
    replacement = arguments[2] if len(arguments) > 2 else pa.scalar("")

    def run(values: Array, old: str, new: str) -> Array:
        if not old:
            return values
        found = arrays.numbers(kernel("count_substring", values, options=pc.MatchSubstringOptions(old))).astype(
            np.int64
        )
        arrays.refuse_long_text("replace", found * len(new.encode()))
        return kernel("replace_substring", values, options=pc.ReplaceSubstringOptions(old, new))

    return arrays.for_each_parameter(run, arrays.broadcast_all(arguments)[0], [arguments[1], replacement], dtype)


def split_part(values: Array, delimiter: str, part: int) -> Array:
    """The part-th piece between delimiters, from the end if negative; '' if there is none."""
    if part == 0:
        raise EvaluationError("SPLIT_PART needs a part number other than 0: 1 is the first part, -1 the last")
    if not delimiter:
        empty = kernel("if_else", kernel("is_valid", values), pa.scalar(""), pa.scalar(None, pa.string()))
        return values if part in (1, -1) else empty
    lists: Any = kernel("split_pattern", values, options=pc.SplitPatternOptions(delimiter))
    starts = arrays.numbers(lists.offsets).astype(np.int64)
    chosen = starts[:-1] + part - 1 if part > 0 else starts[1:] + part
    outside = (chosen < starts[:-1]) | (chosen >= starts[1:])
    found = kernel("coalesce", lists.values.take(pa.array(chosen, mask=outside)), pa.scalar(""))
    return kernel("if_else", kernel("is_null", values), pa.scalar(None, pa.string()), found)


def _with_parameters(
    function: Callable[..., Array], dtype: pa.DataType
) -> Callable[[Sequence[Datum], pa.DataType], Array]:
    def run(arguments: Sequence[Datum], _: pa.DataType) -> Array:
        return arrays.for_each_parameter(function, arrays.broadcast_all(arguments)[0], arguments[1:], dtype)

    return run


positions = _with_parameters(position, pa.int32())
split_parts = _with_parameters(split_part, pa.string())

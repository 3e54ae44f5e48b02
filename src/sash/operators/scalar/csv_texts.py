"""TO_CSV: a struct as one line of CSV, as Spark's library (univocity) writes it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

import pyarrow as pa

from sash.operators.scalar.arrays import Array, Datum, broadcast_all, kernel, map_distinct, nullify
from sash.operators.scalar.casts import cast
from sash.operators.scalar.datetime_formatting import format_moments
from sash.operators.scalar.function import Function, one
from sash.plan.types import STRING, TIMESTAMP
from sash.state.nested import fields

_BLANKS = "".join(map(chr, range(0x21)))
_SPECIAL = re.compile(r'[",\n\r]')
_ESCAPED = re.compile(r'["\\]')
_EMPTY = '""'
_COMMENT = "#"


def _to_csv(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    (values,) = broadcast_all(arguments)
    parts = [
        map_distinct(_text(part), partial(_field, first=not place), STRING).to_pylist()
        for place, part in enumerate(fields(values))
    ]
    made: Array = pa.array([",".join(each or "" for each in row) for row in zip(*parts, strict=True)], STRING)
    return nullify(made, kernel("is_null", values))


def _text(values: Array) -> Array:
    dtype = values.type
    if pa.types.is_timestamp(dtype):
        zone = "XXX" if dtype == TIMESTAMP else ""
        return format_moments(values.view(TIMESTAMP), f"yyyy-MM-dd'T'HH:mm:ss.SSS{zone}")
    if pa.types.is_null(dtype):
        return values.cast(STRING)
    if pa.types.is_decimal(dtype) and dtype.scale > 6:  # Java writes small numbers with an exponent
        return map_distinct(values, str, STRING)
    return cast(values, STRING)


def _field(text: str, first: bool) -> str:
    """A value without blanks around it, in quotes where it needs them, or where the line would be a comment."""
    begun = text.lstrip(_BLANKS)
    bare = begun.rstrip(_BLANKS)
    if not bare:
        return _EMPTY
    if _SPECIAL.search(begun) or (first and text[0] == _COMMENT):
        return f'"{_ESCAPED.sub(_escaped, bare)}"'
    return bare


def _escaped(found: re.Match[str]) -> str:
    return f"\\{found[0]}"


FUNCTIONS: dict[str, Function] = {"to_csv": one(_to_csv)}

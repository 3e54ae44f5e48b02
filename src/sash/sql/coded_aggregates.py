"""Binds the aggregates that are classes of Sash's own: sketches and bitmaps."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from sash.errors import TypeMismatchError
from sash.plan.expressions import Cast, Expression, Literal
from sash.plan.sql_types import VARIANT
from sash.plan.types import BIGINT, BINARY, DOUBLE, FLOAT, NULL, STRING, is_integer, is_numeric, type_name
from sash.plan.user_code import UserCode
from sash.sql.coercion import coerce
from sash.sql.row_aggregates import BoundAggregate, bind_user

_VERSION = "1"
_Settings = tuple[int | float, ...]
_Bind = Callable[[str, Expression, Sequence[Expression]], tuple[Expression, _Settings]]
_RESULTS = {"schema_of_variant_agg": STRING}
_HLL_SIZES = (4, 21)
_THETA_SIZES = (5, 26)
_KLL_SIZES = (8, 65_535)


def bind_coded(
    function: str, arguments: Sequence[Expression], distinct: bool, condition: Expression | None
) -> BoundAggregate:
    """The typed aggregate. DISTINCT makes no difference to sets."""
    library, bind = CODED[function]
    if not arguments:
        raise TypeMismatchError(f"{function} needs at least 1 argument")
    value, settings = bind(function, arguments[0], arguments[1:])
    code = UserCode(function, _VERSION, _RESULTS.get(function, BINARY), library=library, settings=settings)
    counts = function.startswith(("count_min_", "kll_"))
    return bind_user(code, [value], distinct and counts, condition)


def _hll(function: str, value: Expression, rest: Sequence[Expression]) -> tuple[Expression, _Settings]:
    return _hashed(function, value), _size(function, rest, "lgConfigK", _HLL_SIZES)


def _theta(function: str, value: Expression, rest: Sequence[Expression]) -> tuple[Expression, _Settings]:
    known = coerce(value, DOUBLE) if pa.types.is_floating(value.dtype) else _hashed(function, value)
    return known, _size(function, rest, "lgNomEntries", _THETA_SIZES)


def _hashed(function: str, value: Expression) -> Expression:
    if is_integer(value.dtype) or value.dtype == NULL:
        return coerce(value, BIGINT)
    if value.dtype == STRING:
        return value
    hint = ": use HEX" if value.dtype == BINARY else "; cast it"
    raise TypeMismatchError(f"{function} takes integers or STRING, not {type_name(value.dtype)}{hint}")


def _size(function: str, rest: Sequence[Expression], name: str, allowed: tuple[int, int]) -> _Settings:
    least, most = allowed
    if not rest:
        return ()
    size = rest[0]
    if len(rest) == 1 and isinstance(size, Literal) and is_integer(size.dtype) and least <= (size.value or 0) <= most:
        return (int(size.value),)
    raise TypeMismatchError(f"{function} takes one more argument, {name}, a whole number from {least} to {most}")


def _sketch(function: str, value: Expression) -> Expression:
    if value.dtype not in (BINARY, NULL):
        raise TypeMismatchError(f"{function} takes BINARY, not {type_name(value.dtype)}")
    return coerce(value, BINARY)


def _hll_union(function: str, value: Expression, rest: Sequence[Expression]) -> tuple[Expression, _Settings]:
    if not rest:
        return _sketch(function, value), ()
    allowed = rest[0]
    if len(rest) > 1 or not (isinstance(allowed, Literal) and isinstance(allowed.value, bool)):
        raise TypeMismatchError(f"{function} takes one more argument, TRUE or FALSE")
    return _sketch(function, value), (allowed.value,)


def _theta_union(function: str, value: Expression, rest: Sequence[Expression]) -> tuple[Expression, _Settings]:
    return _sketch(function, value), _size(function, rest, "lgNomEntries", _THETA_SIZES)


def _one_sketch(function: str, value: Expression, rest: Sequence[Expression]) -> tuple[Expression, _Settings]:
    if rest:
        raise TypeMismatchError(f"{function} takes 1 argument, not {1 + len(rest)}")
    return _sketch(function, value), ()


def _kll(place: int, dtype: pa.DataType, allowed: Callable[[pa.DataType], bool]) -> _Bind:
    def bind(function: str, value: Expression, rest: Sequence[Expression]) -> tuple[Expression, _Settings]:
        if not allowed(value.dtype) and value.dtype != NULL:
            raise TypeMismatchError(f"{function} does not take {type_name(value.dtype)}: cast it to {type_name(dtype)}")
        return coerce(value, dtype), (place, *_size(function, rest, "k", _KLL_SIZES))

    return bind


def _variant(function: str, value: Expression, rest: Sequence[Expression]) -> tuple[Expression, _Settings]:
    if rest:
        raise TypeMismatchError(f"{function} takes 1 argument, not {1 + len(rest)}")
    if value.dtype != VARIANT:
        raise TypeMismatchError(f"{function} takes a VARIANT, not {type_name(value.dtype)}: use parse_json")
    return value, ()


def _position(function: str, value: Expression, rest: Sequence[Expression]) -> tuple[Expression, _Settings]:
    if rest:
        raise TypeMismatchError(f"{function} takes 1 argument, not {1 + len(rest)}")
    if not is_numeric(value.dtype) and value.dtype != NULL:
        raise TypeMismatchError(f"{function} takes BIGINT, not {type_name(value.dtype)}")
    return coerce(value, BIGINT), ()


def _count_min(function: str, value: Expression, rest: Sequence[Expression]) -> tuple[Expression, _Settings]:
    if len(rest) != 3:
        raise TypeMismatchError(f"{function} takes 4 arguments, not {1 + len(rest)}")
    error, confidence, seed = map(_constant, rest)
    if error is None or error <= 0:
        raise TypeMismatchError(f"the second argument of {function}, the relative error, is a number greater than 0")
    if confidence is None or not 0 < confidence < 1:
        raise TypeMismatchError(f"the third argument of {function}, the confidence, is a number between 0 and 1")
    if not isinstance(seed, int):
        raise TypeMismatchError(f"the fourth argument of {function}, the seed, is a whole number")
    known = coerce(value, BIGINT) if is_integer(value.dtype) or value.dtype == NULL else value
    if known.dtype not in (BIGINT, STRING, BINARY):
        raise TypeMismatchError(f"{function} takes integers, STRING or BINARY, not {type_name(value.dtype)}")
    return known, (float(error), float(confidence), seed)


def _constant(expression: Expression) -> int | float | None:
    """The number, whose fraction makes it a float."""
    while isinstance(expression, Cast) and is_numeric(expression.dtype):
        expression = expression.argument
    if not isinstance(expression, Literal) or expression.value is None or not is_numeric(expression.dtype):
        return None
    return int(expression.value) if is_integer(expression.dtype) else float(expression.value)


_KLL_VALUES: dict[str, tuple[pa.DataType, Callable[[pa.DataType], bool]]] = {
    "bigint": (BIGINT, is_integer),
    "double": (DOUBLE, is_numeric),
    "float": (FLOAT, lambda dtype: dtype == FLOAT),
}
"""By kind of sketch, in the order of the kinds in operators/scalar/kll.py: the type of the values, and what is cast to it."""

CODED: dict[str, tuple[str, _Bind]] = {
    "bitmap_and_agg": ("bitmaps:BitmapAnd", _one_sketch),
    "bitmap_construct_agg": ("bitmaps:BitmapConstruct", _position),
    "bitmap_or_agg": ("bitmaps:BitmapOr", _one_sketch),
    "count_min_sketch": ("count_min:CountMin", _count_min),
    "hll_sketch_agg": ("sketches:HllSketch", _hll),
    "hll_union_agg": ("sketches:HllUnion", _hll_union),
    **{
        f"kll_sketch_agg_{kind}": ("kll:KllSketch", _kll(place, dtype, allowed))
        for place, (kind, (dtype, allowed)) in enumerate(_KLL_VALUES.items())
    },
    **{
        f"kll_merge_agg_{kind}": ("kll:KllMerge", _kll(place, BINARY, BINARY.equals))
        for place, kind in enumerate(_KLL_VALUES)
    },
    "schema_of_variant_agg": ("variant_schemas:VariantSchema", _variant),
    "theta_intersection_agg": ("sketches:ThetaIntersection", _one_sketch),
    "theta_sketch_agg": ("sketches:ThetaSketch", _theta),
    "theta_union_agg": ("sketches:ThetaUnion", _theta_union),
}
"""By function: the module and the class, and how arguments become the column and the settings."""

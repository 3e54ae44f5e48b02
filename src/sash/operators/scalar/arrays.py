"""Building blocks of scalar functions: Arrow kernels, NumPy views, and loops over distinct values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sash.errors import EvaluationError

Array: TypeAlias = "pa.Array[Any]"
Datum: TypeAlias = "pa.Array[Any] | pa.Scalar[Any]"
Numbers: TypeAlias = npt.NDArray[Any]

LONGEST_TEXT = 2**28
"""The longest text that a function makes, in bytes."""
MOST_TEXT = 2**31 - 1
"""The most text in one column of a batch, in bytes: Arrow's limit."""
_CALENDAR = ("-32767-01-01", "32767-12-31")


def kernel(name: str, *arguments: Datum, options: pc.FunctionOptions | None = None) -> Array:
    """Arrow's compute function `name`; at least one argument is an array, so the result is one."""
    result: Array = pc.call_function(name, list(arguments), options)
    return result


def apply_kernel(name: str, arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """A function of the library that is one of Arrow's compute functions."""
    return kernel(name, *arguments)


def rows_of(arguments: Sequence[Datum]) -> int:
    """The number of rows of a call's arguments."""
    return next((len(argument) for argument in arguments if isinstance(argument, pa.Array)), 1)


def broadcast(datum: Datum, rows: int) -> Array:
    """The datum as an array."""
    if isinstance(datum, pa.Array):
        return datum
    constant: Any = datum
    repeated: Array = pa.repeat(constant, rows)
    return repeated


def nulls(rows: int, dtype: Any) -> Array:
    """An array of NULLs of a type."""
    result: Array = pa.nulls(rows, dtype)
    return result


def broadcast_all(arguments: Sequence[Datum]) -> list[Array]:
    """All arguments as arrays of one length."""
    rows = rows_of(arguments)
    return [broadcast(argument, rows) for argument in arguments]


def holds_any(mask: Array) -> bool:
    """Whether a boolean array is true anywhere."""
    return bool(pc.call_function("any", [mask]).as_py())


def nullify(values: Array, mask: Array) -> Array:
    """NULL where the mask is true."""
    if not holds_any(mask):
        return values
    return kernel("if_else", kernel("coalesce", mask, pa.scalar(False)), pa.scalar(None, values.type), values)


def null_mask(arguments: Sequence[Datum]) -> Array:
    """True where any argument is NULL."""
    masks = [kernel("is_null", argument) for argument in broadcast_all(arguments)]
    result = masks[0]
    for mask in masks[1:]:
        result = kernel("or", result, mask)
    return result


def numbers(values: Array) -> Numbers:
    """A NumPy view of a numeric, date or timestamp array; NULLs read as zero."""
    dtype = values.type
    if pa.types.is_timestamp(dtype):
        values = values.view(pa.int64())
    elif pa.types.is_date32(dtype):
        values = values.view(pa.int32())
    if values.null_count:
        zero = False if pa.types.is_boolean(values.type) else 0
        values = kernel("coalesce", values, pa.scalar(zero, values.type))
    return np.asarray(values.to_numpy(zero_copy_only=False))


def from_numbers(result: Numbers, dtype: pa.DataType, unknown: Sequence[Datum] | Array) -> Array:
    """An array of `result`, NULL where the mask `unknown` is true, or where any array in it is NULL."""
    mask = unknown if isinstance(unknown, pa.Array) else null_mask(unknown)
    physical = pa.int32() if pa.types.is_date32(dtype) else pa.int64() if pa.types.is_timestamp(dtype) else dtype
    built: Array = pa.array(result, type=physical, mask=mask.to_numpy(zero_copy_only=False), from_pandas=False)
    return built if physical == dtype else built.view(dtype)


def refuse_long_text(function: str, sizes: Numbers) -> None:
    """Raise EvaluationError if texts of these sizes, in bytes, are too long for a value or together for a column."""
    longest = int(sizes.max(initial=0))
    if longest > LONGEST_TEXT:
        raise EvaluationError(f"{function}: the result has more than {LONGEST_TEXT:,} bytes; make shorter text")
    if int(sizes.sum()) > MOST_TEXT:
        raise EvaluationError(
            f"{function}: the results of one batch have more than {MOST_TEXT:,} bytes; make shorter text"
        )


def within_calendar(values: Array) -> Array:
    """The dates or timestamps; EvaluationError outside of the years of Arrow's calendar."""
    unit = "D" if pa.types.is_date32(values.type) else "us"
    first, last = (int(np.datetime64(day, "D").astype(f"M8[{unit}]").astype(np.int64)) for day in _CALENDAR)
    found: Any = pc.call_function("min_max", [values.view(pa.int32() if unit == "D" else pa.int64())])
    least, most = (found[name].as_py() for name in ("min", "max"))
    if least is not None and not first <= least <= most <= last:
        raise EvaluationError("a date is not within the years -32767 to 32767, which Sash's functions of dates are for")
    return values


def limits(dtype: pa.DataType) -> tuple[int, int]:
    """The smallest and the largest value of an integer type."""
    half = 1 << (dtype.bit_width - 1)
    return -half, half - 1


def scatter(pieces: Sequence[Array], positions: Sequence[Numbers], rows: int, dtype: pa.DataType) -> Array:
    """The array of `rows` rows that has piece i at the positions places[i], and NULL where there is none."""
    if not pieces:
        return nulls(rows, dtype)
    source = np.full(rows, -1, dtype=np.int64)
    source[np.concatenate(positions)] = np.arange(sum(len(piece) for piece in pieces))
    indices: Any = pa.array(source, mask=source < 0)
    result: Array = pa.concat_arrays(list(pieces)).take(indices)
    return result


def for_each_parameter(
    function: Callable[..., Array], values: Datum, parameters: Sequence[Datum], dtype: pa.DataType
) -> Array:
    """`function(values, *parameters)` with the parameters as Python values.

    Parameters are usually constants. If they are columns, the function runs once per distinct combination.
    """
    constants = [parameter.as_py() for parameter in parameters if not isinstance(parameter, pa.Array)]
    if len(constants) == len(parameters):
        assert isinstance(values, pa.Array)
        return function(values, *constants)
    arrays = broadcast_all([values, *parameters])
    encoded = [array.dictionary_encode() for array in arrays[1:]]
    known = ~null_mask(arrays).to_numpy(zero_copy_only=False)
    rows = np.flatnonzero(known)
    dictionaries = [each.dictionary.to_pylist() for each in encoded]
    sizes = tuple(len(dictionary) for dictionary in dictionaries)
    codes = np.ravel_multi_index([numbers(each.indices)[rows] for each in encoded], sizes) if len(rows) else rows
    combinations, group, counts = np.unique(codes, return_inverse=True, return_counts=True)
    order = rows[np.argsort(group, kind="stable")]
    positions = np.split(order, np.cumsum(counts)[:-1]) if len(rows) else []
    pieces = []
    for position, combination in zip(positions, combinations, strict=True):
        chosen = np.unravel_index(combination, sizes)
        parameter = (dictionary[int(code)] for dictionary, code in zip(dictionaries, chosen, strict=True))
        pieces.append(function(arrays[0].take(position), *parameter))
    return scatter(pieces, positions, len(arrays[0]), dtype)


def map_distinct(values: Array, function: Callable[[Any], Any], dtype: pa.DataType) -> Array:
    """Apply a Python function to each distinct value, for operations without an Arrow kernel."""
    encoded = values.dictionary_encode()
    results: Array = pa.array([function(value) for value in encoded.dictionary.to_pylist()], dtype)
    return results.take(encoded.indices)


def map_rows(
    function: Callable[..., Any], arguments: Sequence[Datum], dtype: pa.DataType, *, nulls: bool = False
) -> Array:
    """A Python function of each distinct combination of arguments, for operations without an Arrow kernel.

    Dates and timestamps are passed as days and microseconds since 1970. A row with a NULL is NULL, unless the function
    takes None (`nulls`).
    """
    rows = rows_of(arguments)
    varying = [index for index, argument in enumerate(arguments) if isinstance(argument, pa.Array)]
    values: list[Any] = [
        None if isinstance(each, pa.Array) else plain_values(broadcast(each, 1))[0] for each in arguments
    ]
    if not nulls and any(values[index] is None for index in range(len(values)) if index not in varying):
        return pa.nulls(rows, dtype)
    encoded = [_encoded(broadcast(arguments[index], rows)) for index in varying]
    dictionaries, codes = [each[0] for each in encoded], [each[1] for each in encoded]
    combinations, which = _distinct(codes, [len(dictionary) for dictionary in dictionaries])
    results = []
    for chosen in combinations:
        for index, dictionary, code in zip(varying, dictionaries, chosen, strict=True):
            values[index] = dictionary[code]
        known = nulls or not any(value is None for value in values)
        results.append(function(*values) if known else None)
    return from_plain(results, dtype).take(pa.array(which))


def _encoded(values: Array) -> tuple[list[Any], Numbers]:
    """The distinct values, and the number of that of each row; Arrow does not encode nested ones."""
    if not pa.types.is_nested(values.type):
        encoded = values.dictionary_encode("encode")
        return plain_values(encoded.dictionary), numbers(encoded.indices).astype(np.int64)
    found: dict[str, int] = {}
    plain = values.to_pylist()
    codes = [found.setdefault(repr(value), len(found)) for value in plain]
    distinct: list[Any] = [None] * len(found)
    for code, value in zip(codes, plain, strict=True):
        distinct[code] = value
    return distinct, np.array(codes, np.int64)


def _distinct(codes: Sequence[Numbers], sizes: Sequence[int]) -> tuple[list[list[int]], Numbers]:
    """The distinct combinations of codes, and the number of that of each row."""
    if len(codes) == 1:
        return [[code] for code in range(sizes[0])], codes[0]
    which, parts = codes[0], [np.arange(sizes[0])]
    for code, size in zip(codes[1:], sizes[1:], strict=True):
        found, which = np.unique(which * size + code, return_inverse=True)
        parts = [*(part[found // size] for part in parts), found % size]
    return np.stack(parts, axis=1).tolist(), which.reshape(-1)


def plain_values(values: Array) -> list[Any]:
    """Python values; dates and timestamps as integers, which Python's own types could not all hold."""
    if pa.types.is_timestamp(values.type):
        values = values.view(pa.int64())
    elif pa.types.is_date32(values.type):
        values = values.view(pa.int32())
    plain: list[Any] = values.to_pylist()
    return plain


def from_plain(values: Sequence[Any], dtype: pa.DataType) -> Array:
    """An array of Python values; those of dates and timestamps are integers."""
    physical = pa.int32() if pa.types.is_date32(dtype) else pa.int64() if pa.types.is_timestamp(dtype) else dtype
    built: Array = pa.array(values, physical)
    return built if physical == dtype else built.view(dtype)

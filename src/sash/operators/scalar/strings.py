"""Functions of strings, digests and hexadecimal text; positions and lengths count characters (code points), from 1."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sash.operators.scalar import arrays
from sash.operators.scalar.arrays import Array, Datum, kernel

_SHA2 = {0: "sha256", 224: "sha224", 256: "sha256", 384: "sha384", 512: "sha512"}


def change_case(name: str, arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """upper or lower; non-ASCII text by Python's full case mappings, which are those of Java."""
    mapping: Callable[[str], str] = str.upper if name == "upper" else str.lower
    (values,) = arrays.broadcast_all(arguments)
    plain = kernel("string_is_ascii", values)
    if pc.call_function("all", [plain]).as_py() is not False:
        return kernel(f"ascii_{name}", values)
    return arrays.map_distinct(values, mapping, dtype)


def trim(name: str, arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """trim, ltrim or rtrim: removes blanks, or the characters in the second argument."""
    characters = arguments[1] if len(arguments) > 1 else pa.scalar(" ")
    return arrays.for_each_parameter(
        lambda values, set_: kernel(f"utf8_{name}", values, options=pc.TrimOptions(set_)),
        arrays.broadcast_all(arguments)[0],
        [characters],
        dtype,
    )


def length(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """The number of characters of a string, or bytes of a binary."""
    (values,) = arguments
    return kernel("binary_length" if pa.types.is_binary(values.type) else "utf8_length", values)


def substring(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """SUBSTRING(s, position, length): a negative position counts from the end, 0 is 1."""
    values, position = arguments[0], arguments[1]
    count = arguments[2] if len(arguments) > 2 else pa.scalar(2**31 - 1)
    return arrays.for_each_parameter(_slice, arrays.broadcast_all(arguments)[0], [position, count], values.type)


def left(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """The first n characters."""
    values, count = arguments
    return arrays.for_each_parameter(
        lambda some, n: _slice(some, 1, n), arrays.broadcast_all(arguments)[0], [count], values.type
    )


def right(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """The last n characters."""
    values, count = arguments
    return arrays.for_each_parameter(
        lambda some, n: _slice(some, -n if n > 0 else 1, max(n, 0)),
        arrays.broadcast_all(arguments)[0],
        [count],
        values.type,
    )


def concat(arguments: Sequence[Datum], dtype: pa.DataType) -> Datum:
    """All arguments, one after the other."""
    if not arguments:
        return pa.scalar("")
    separator = pa.scalar(b"" if pa.types.is_binary(dtype) else "", dtype)
    return kernel("binary_join_element_wise", *arguments, separator)


def concat_ws(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """The arguments that are not NULL, with the first one between them."""
    separator, *parts = arrays.broadcast_all(arguments)
    parts = [part for part in parts if not pa.types.is_null(part.type)]
    if pa.types.is_null(separator.type):
        return arrays.nulls(arrays.rows_of(arguments), dtype)
    if not parts:
        return kernel("if_else", kernel("is_null", separator), pa.scalar(None, dtype), pa.scalar(""))
    # Arrow drops a row without values to join.
    nothing = kernel("is_null", kernel("coalesce", *parts))
    parts[0] = kernel("if_else", nothing, pa.scalar("", dtype), parts[0])
    return kernel("binary_join_element_wise", *parts, separator, options=pc.JoinOptions("skip"))


def pad(side: str, arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """lpad ("left") or rpad ("right") to n characters, cutting what is longer."""
    filling = arguments[2] if len(arguments) > 2 else pa.scalar(" ")

    def run(values: Array, width: int, filling: str) -> Array:
        cut = _slice(values, 1, width)
        if not filling or width <= 0:
            return cut
        missing = width - arrays.numbers(kernel("utf8_length", cut)).astype(np.int64)
        lengths, which = np.unique(missing, return_inverse=True)
        arrays.refuse_long_text(f"{side[0]}pad", np.maximum(missing, 0) * max(map(len, map(str.encode, filling))))
        longest = filling * (int(lengths.max(initial=0)) // len(filling) + 1)
        paddings = pa.array([longest[:size] for size in lengths.tolist()], pa.string()).take(which.reshape(-1))
        parts = (paddings, cut) if side == "left" else (cut, paddings)
        return kernel("binary_join_element_wise", *parts, pa.scalar(""))

    return arrays.for_each_parameter(run, arrays.broadcast_all(arguments)[0], [arguments[1], filling], dtype)


def repeat(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """The string n times; none if n is negative."""
    values, count = arrays.broadcast_all(arguments)
    times = kernel(
        "max_element_wise", count, pa.scalar(0, count.type), options=pc.ElementWiseAggregateOptions(skip_nulls=False)
    )
    sizes = arrays.numbers(kernel("binary_length", values)).astype(np.int64) * arrays.numbers(times).astype(np.int64)
    arrays.refuse_long_text("repeat", sizes)
    return kernel("binary_repeat", values, times.cast(pa.int64()))


def reverse(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """The characters backwards."""
    return kernel("utf8_reverse", *arguments)


def first_code(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """ASCII: the code point of the first character, 0 if there is none."""
    first = kernel("utf8_slice_codeunits", arrays.broadcast_all(arguments)[0], options=pc.SliceOptions(0, 1))
    return arrays.map_distinct(first, lambda character: ord(character) if character else 0, dtype)


def initcap(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """Every word that follows a blank capitalised, the rest in lower case; Python, once per distinct value."""
    return arrays.map_distinct(arrays.broadcast_all(arguments)[0], _capitalise, dtype)


def translate(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """Characters of the second argument replaced by their partners in the third, or dropped; once per distinct value."""

    def run(values: Array, old: str, new: str) -> Array:
        table: dict[int, str | None] = {}
        for index, character in enumerate(old):
            table.setdefault(ord(character), new[index] if index < len(new) else None)
        return arrays.map_distinct(values, lambda text: text.translate(table), dtype)

    return arrays.for_each_parameter(run, arrays.broadcast_all(arguments)[0], arguments[1:], dtype)


def _slice(values: Array, position: int, count: int) -> Array:
    name = "binary_slice" if pa.types.is_binary(values.type) else "utf8_slice_codeunits"
    if count <= 0:
        return kernel(name, values, options=pc.SliceOptions(0, 0))
    start = position - 1 if position > 0 else position
    stop = start + count
    # A slice that starts from the end and reaches it has no stop.
    open_ended = start < 0 <= stop
    options = pc.SliceOptions(start) if open_ended else pc.SliceOptions(start, stop)
    return kernel(name, values, options=options)


def _capitalise(text: str) -> str:
    return " ".join(word[:1].title() + word[1:] for word in text.lower().split(" "))


def md5(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """The MD5 digest as hexadecimal text."""
    return arrays.map_distinct(
        arrays.broadcast_all(arguments)[0],
        lambda value: hashlib.md5(_bytes(value), usedforsecurity=False).hexdigest(),
        dtype,
    )


def sha1(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """The SHA-1 digest as hexadecimal text."""
    return arrays.map_distinct(
        arrays.broadcast_all(arguments)[0],
        lambda value: hashlib.sha1(_bytes(value), usedforsecurity=False).hexdigest(),
        dtype,
    )


def sha2(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """The SHA-2 digest as hexadecimal text; NULL for an invalid number of bits."""

    def run(values: Array, bits: int) -> Array:
        if bits not in _SHA2:
            return arrays.nulls(len(values), dtype)
        return arrays.map_distinct(values, lambda value: hashlib.new(_SHA2[bits], _bytes(value)).hexdigest(), dtype)

    return arrays.for_each_parameter(run, arrays.broadcast_all(arguments)[0], arguments[1:], dtype)


def crc32(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """The CRC-32 checksum."""
    return arrays.map_distinct(arrays.broadcast_all(arguments)[0], lambda value: zlib.crc32(_bytes(value)), dtype)


def hexadecimal(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """HEX of the two's complement of an integer, or of the bytes of text and binary."""
    (values,) = arrays.broadcast_all(arguments)
    if pa.types.is_integer(values.type):
        return arrays.map_distinct(values, lambda value: f"{value & (2**64 - 1):X}", dtype)
    return arrays.map_distinct(values, lambda value: _bytes(value).hex().upper(), dtype)


def _bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value

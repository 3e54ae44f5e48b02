"""Digests and hexadecimal text; Python, once per distinct value."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Sequence

import pyarrow as pa

from sash.operators.scalar.arrays import Array, Datum, broadcast_all, for_each_parameter, map_distinct, nulls

_SHA2 = {0: "sha256", 224: "sha224", 256: "sha256", 384: "sha384", 512: "sha512"}


def md5(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """The MD5 digest as hexadecimal text."""
    return map_distinct(
        broadcast_all(arguments)[0], lambda value: hashlib.md5(_bytes(value), usedforsecurity=False).hexdigest(), dtype
    )


def sha2(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """The SHA-2 digest as hexadecimal text; NULL for an invalid number of bits."""

    def run(values: Array, bits: int) -> Array:
        if bits not in _SHA2:
            return nulls(len(values), dtype)
        return map_distinct(values, lambda value: hashlib.new(_SHA2[bits], _bytes(value)).hexdigest(), dtype)

    return for_each_parameter(run, broadcast_all(arguments)[0], arguments[1:], dtype)


def crc32(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """The CRC-32 checksum."""
    return map_distinct(broadcast_all(arguments)[0], lambda value: zlib.crc32(_bytes(value)), dtype)


def hexadecimal(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """HEX of the two's complement of an integer, or of the bytes of text and binary."""
    (values,) = broadcast_all(arguments)
    if pa.types.is_integer(values.type):
        return map_distinct(values, lambda value: f"{value & (2**64 - 1):X}", dtype)
    return map_distinct(values, lambda value: _bytes(value).hex().upper(), dtype)


def _bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value

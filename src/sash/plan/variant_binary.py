"""VARIANT as Spark, Parquet and Iceberg encode it: a value, and metadata with the names of its fields.

The first two bits of a value's first byte are its kind, the other six bits its type, or how its sizes are written. All
numbers are little-endian. An object has the positions of its names in the metadata, the offsets of its values, and the
values; a list the same without names.
"""

from __future__ import annotations

import base64
import struct
import uuid
from decimal import Decimal
from itertools import pairwise
from typing import Any

from sash.plan.json_reader import JsonNumber, JsonObject, TypedScalar
from sash.plan.variant_numbers import decimal, double, scalar_of

_PRIMITIVE, _SHORT, _OBJECT, _LIST = range(4)
_INTEGERS = {3: 1, 4: 2, 5: 4, 6: 8}
_DECIMALS = {8: 4, 9: 8, 10: 16}
_TIMES = {11: ("d", 4), 12: ("t", 8), 13: ("n", 8)}
_DOUBLE, _FLOAT, _BINARY, _LONG_TEXT, _UUID = 7, 14, 15, 16, 20
_VERSION = 1
_MOST_SHORT = 63
_DIGITS = {4: 9, 8: 18, 16: 38}


class VariantError(ValueError):
    """The bytes are no variant, or one with a type that is not known."""


def decode_variant(value: bytes, metadata: bytes) -> Any:
    """The value: objects, lists, texts, numbers, and scalars of other types."""
    try:
        return _Decoder(value, _names(metadata)).at(0)
    except (IndexError, struct.error, UnicodeDecodeError):
        raise VariantError("these bytes are no variant") from None


def _names(metadata: bytes) -> list[str]:
    if metadata[0] & 0x0F != _VERSION:
        raise VariantError(f"variants of version {metadata[0] & 0x0F} cannot be read")
    width = (metadata[0] >> 6) + 1
    count = _unsigned(metadata, 1, width)
    starts = [_unsigned(metadata, 1 + width * (place + 1), width) for place in range(count + 1)]
    data = 1 + width * (count + 2)
    return [metadata[data + first : data + last].decode() for first, last in pairwise(starts)]


def _unsigned(data: bytes, at: int, width: int) -> int:
    if at + width > len(data):
        raise IndexError
    return int.from_bytes(data[at : at + width], "little")


class _Decoder:
    def __init__(self, data: bytes, names: list[str]) -> None:
        self._data = data
        self._names = names

    def at(self, place: int) -> Any:
        """The value that begins at this byte."""
        data = self._data
        kind, info = data[place] & 3, data[place] >> 2
        match kind:
            case 1:
                return self._text(place + 1, info)
            case 2:
                return self._object(place + 1, large=info >> 4 & 1, id_width=(info >> 2 & 3) + 1, width=(info & 3) + 1)
            case 3:
                return self._list(place + 1, large=info >> 2 & 1, width=(info & 3) + 1)
        return self._scalar(place + 1, info)

    def _text(self, place: int, length: int) -> str:
        return self._part(place, length).decode()

    def _part(self, place: int, length: int) -> bytes:
        if place + length > len(self._data):
            raise IndexError
        return self._data[place : place + length]

    def _list(self, place: int, large: int, width: int) -> list[Any]:
        count, offsets = self._count(place, large)
        values = offsets + width * (count + 1)
        return [self.at(values + _unsigned(self._data, offsets + width * each, width)) for each in range(count)]

    def _object(self, place: int, large: int, id_width: int, width: int) -> JsonObject:
        count, ids = self._count(place, large)
        offsets = ids + id_width * count
        values = offsets + width * (count + 1)
        pairs = []
        for each in range(count):
            name = self._names[_unsigned(self._data, ids + id_width * each, id_width)]
            pairs.append((name, self.at(values + _unsigned(self._data, offsets + width * each, width))))
        pairs.sort(key=lambda pair: pair[0].encode("utf-16-be"))
        return JsonObject(pairs)

    def _count(self, place: int, large: int) -> tuple[int, int]:
        """The number of parts, and the byte after it."""
        width = 4 if large else 1
        return _unsigned(self._data, place, width), place + width

    def _scalar(self, place: int, info: int) -> Any:
        data = self._data
        if info <= 2:
            return (None, True, False)[info]
        if info in _INTEGERS:
            return JsonNumber(
                str(int.from_bytes(self._part(place, _INTEGERS[info]), "little", signed=True)), whole=True
            )
        if info in _DECIMALS:
            number = int.from_bytes(self._part(place + 1, _DECIMALS[info]), "little", signed=True)
            return decimal(Decimal((number < 0, tuple(map(int, str(abs(number)))), -data[place])))
        if info == _DOUBLE:
            return double(struct.unpack_from("<d", data, place)[0])
        if info in _TIMES:
            letter, width = _TIMES[info]
            return TypedScalar(letter, str(int.from_bytes(self._part(place, width), "little", signed=True)))
        if info == _FLOAT:
            return TypedScalar("f", repr(float(struct.unpack_from("<f", data, place)[0])))
        if info == _BINARY:
            found = self._part(place + 4, _unsigned(data, place, 4))
            return TypedScalar("b", base64.b64encode(found).decode())
        if info == _LONG_TEXT:
            return self._text(place + 4, _unsigned(data, place, 4))
        if info == _UUID:
            return TypedScalar("u", uuid.UUID(bytes=self._part(place, 16)).hex)
        raise VariantError(f"a variant has a value of the type {info}, which is not known")


def encode_variant(value: Any) -> tuple[bytes, bytes]:
    """The bytes of a value, and those of its metadata."""
    encoder = _Encoder()
    data = encoder.of(value)
    return data, encoder.metadata()


class _Encoder:
    def __init__(self) -> None:
        self._ids: dict[str, int] = {}

    def metadata(self) -> bytes:
        """The names in the order in which they were met."""
        names = [name.encode() for name in self._ids]
        ends = [0]
        for name in names:
            ends.append(ends[-1] + len(name))
        width = _width(max(ends[-1], len(names)))
        parts = [len(names), *ends]
        sizes = b"".join(part.to_bytes(width, "little") for part in parts)
        return bytes([_VERSION | (width - 1) << 6]) + sizes + b"".join(names)

    def of(self, value: Any) -> bytes:
        """The bytes of one value."""
        match value:
            case None:
                return bytes([0])
            case bool():
                return bytes([(1 if value else 2) << 2])
            case str():
                return _text(value.encode())
            case JsonNumber():
                return _number(value)
            case TypedScalar():
                return _typed(value)
            case list():
                data, offsets = _joined([self.of(each) for each in value])
                width, large = _width(offsets[-1]), len(value) > 255
                head = bytes([_LIST | (width - 1 | large << 2) << 2]) + len(value).to_bytes(4 if large else 1, "little")
                return head + b"".join(each.to_bytes(width, "little") for each in offsets) + data
            case JsonObject():
                return self._object(value)
        raise TypeError(f"no value of a variant: {value!r}")

    def _object(self, value: JsonObject) -> bytes:
        ids = [self._ids.setdefault(name, len(self._ids)) for name, _ in value.pairs]
        data, offsets = _joined([self.of(each) for _, each in value.pairs])
        width, large = _width(offsets[-1]), len(ids) > 255
        id_width = _width(max(ids, default=0))
        info = width - 1 | (id_width - 1) << 2 | large << 4
        head = bytes([_OBJECT | info << 2]) + len(ids).to_bytes(4 if large else 1, "little")
        head += b"".join(each.to_bytes(id_width, "little") for each in ids)
        return head + b"".join(each.to_bytes(width, "little") for each in offsets) + data


def _joined(parts: list[bytes]) -> tuple[bytes, list[int]]:
    offsets = [0]
    for part in parts:
        offsets.append(offsets[-1] + len(part))
    return b"".join(parts), offsets


def _width(most: int) -> int:
    """The number of bytes for numbers up to this one."""
    return max(1, (most.bit_length() + 7) // 8)


def _text(data: bytes) -> bytes:
    if len(data) <= _MOST_SHORT:
        return bytes([_SHORT | len(data) << 2]) + data
    return bytes([_LONG_TEXT << 2]) + len(data).to_bytes(4, "little") + data


def _number(number: JsonNumber) -> bytes:
    value = scalar_of(number)
    if isinstance(value, float):
        return _packed(_DOUBLE, "<d", value)
    if isinstance(value, int):
        info, width = next((i, w) for i, w in _INTEGERS.items() if -(1 << 8 * w - 1) <= value < 1 << 8 * w - 1)
        return bytes([info << 2]) + value.to_bytes(width, "little", signed=True)
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    unscaled: int = int("".join(map(str, digits))) * 10 ** max(exponent, 0)
    scale = max(-exponent, 0)
    info, width = next((i, w) for i, w in _DECIMALS.items() if max(len(str(unscaled)), scale) <= _DIGITS[w])
    return bytes([info << 2, scale]) + (-unscaled if sign else unscaled).to_bytes(width, "little", signed=True)


def _packed(info: int, form: str, number: float) -> bytes:
    return bytes([info << 2]) + struct.pack(form, number)


def _typed(value: TypedScalar) -> bytes:
    match value.kind:
        case "e":
            return _packed(_DOUBLE, "<d", float(value.text))
        case "f":
            return _packed(_FLOAT, "<f", float(value.text))
        case "b":
            data = base64.b64decode(value.text)
            return bytes([_BINARY << 2]) + len(data).to_bytes(4, "little") + data
        case "u":
            return bytes([_UUID << 2]) + uuid.UUID(hex=value.text).bytes
    info, size = next((info, size) for info, (letter, size) in _TIMES.items() if letter == value.kind)
    return bytes([info << 2]) + int(value.text).to_bytes(size, "little", signed=True)

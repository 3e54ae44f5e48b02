"""Bytes and text in other notations: base 64, base 32, hexadecimal, character sets, URLs, and UTF-8 itself."""

from __future__ import annotations

import base64
import binascii
from typing import Any
from urllib.parse import quote_plus

from sash.errors import EvaluationError, excerpt
from sash.operators.scalar.function import Function, by_value

_ALPHABET = {
    byte: value for value, byte in enumerate(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
}
_HEX = frozenset("0123456789abcdefABCDEF")
_SPACE = frozenset(b" \t\n\x0b\x0c\r")
_PLAIN_IN_URLS = "*"
_CHARSETS = {
    "US-ASCII": "ascii",
    "ISO-8859-1": "latin-1",
    "UTF-8": "utf-8",
    "UTF-16": "utf-16",
    "UTF-16BE": "utf-16-be",
    "UTF-16LE": "utf-16-le",
    "UTF-32": "utf-32-be",
}


def as_bytes(value: str | bytes) -> bytes:
    """The bytes of text in UTF-8, or of a binary."""
    return value.encode() if isinstance(value, str) else value


def _to_base64(value: str | bytes) -> str:
    return base64.b64encode(as_bytes(value)).decode()


def _from_base64(text: str) -> bytes:
    """Java's MIME decoder: it skips what is not of the alphabet, and stops at the padding."""
    result, bits, shift = bytearray(), 0, 18
    data, position = text.encode(), 0
    while position < len(data):
        byte = data[position]
        position += 1
        if byte == ord("="):
            second = position < len(data) and data[position] == ord("=")
            position += shift == 6 and position < len(data)
            if shift == 18 or (shift == 6 and not second):
                raise _malformed("unbase64", text)
            break
        if byte in _ALPHABET:
            bits |= _ALPHABET[byte] << shift
            shift -= 6
            if shift < 0:
                result += bits.to_bytes(3, "big")
                bits, shift = 0, 18
    if shift == 12 or any(byte in _ALPHABET for byte in data[position:]):
        raise _malformed("unbase64", text)
    result += bits.to_bytes(3, "big")[: {6: 1, 0: 2}.get(shift, 0)]
    return bytes(result)


def _malformed(function: str, text: str) -> EvaluationError:
    return EvaluationError(f"{function}: '{excerpt(text)}' is malformed; check it first")


def _from_hex(text: str) -> bytes | None:
    if not _HEX.issuperset(text):
        return None
    return bytes.fromhex(text if len(text) % 2 == 0 else "0" + text)


def _to_binary(text: str, format_: str = "hex") -> bytes:
    found = _try_to_binary(text, format_)
    if found is None:
        raise EvaluationError(
            f"to_binary: '{excerpt(text)}' is not of the format {format_}; use try_to_binary to get NULL instead"
        )
    return found


def _try_to_binary(text: str, format_: str = "hex") -> bytes | None:
    match format_.lower():
        case "hex":
            return _from_hex(text)
        case "utf-8" | "utf8":
            return text.encode()
        case "base64":
            return _from_strict_base64(text.encode())
    raise EvaluationError(f"to_binary has the formats 'hex', 'utf-8' and 'base64', not '{excerpt(format_)}'")


def _from_strict_base64(data: bytes) -> bytes | None:
    """Base 64 with blanks, and padded or not; None for anything else."""
    data = bytes(byte for byte in data if byte not in _SPACE)
    body = data.rstrip(b"=")
    padding = len(data) - len(body)
    if not all(byte in _ALPHABET for byte in body) or len(body) % 4 == 1:
        return None
    if padding and (padding > 2 or len(data) % 4):
        return None
    return base64.b64decode(body + b"=" * (-len(body) % 4))


def _encode(text: str, charset: str) -> bytes:
    codec = _codec("encode", charset)
    try:
        return (
            b"\xfe\xff" + text.encode("utf-16-be")
            if codec == "utf-16" and text
            else text.encode(codec if text else "ascii")
        )
    except UnicodeEncodeError:
        raise EvaluationError(f"encode: '{excerpt(text)}' has characters that {charset} has not") from None


def _decode(value: str | bytes, charset: str) -> str:
    data, codec = as_bytes(value), _codec("decode", charset)
    if codec == "utf-16" and data[:2] not in (b"\xfe\xff", b"\xff\xfe"):
        codec = "utf-16-be"
    if codec == "utf-32-be" and data[:4] in (b"\x00\x00\xfe\xff", b"\xff\xfe\x00\x00"):
        codec = "utf-32"
    try:
        return data.decode(codec)
    except UnicodeDecodeError:
        raise EvaluationError(f"decode: the bytes are not text in {charset}") from None


def _codec(function: str, charset: str) -> str:
    codec = _CHARSETS.get(charset.upper())
    if codec is None:
        raise EvaluationError(f"{function}: the character sets are {', '.join(_CHARSETS)}, not '{excerpt(charset)}'")
    return codec


def _url_encode(text: str) -> str:
    # Java encodes the tilde, Python does not.
    return quote_plus(text, safe=_PLAIN_IN_URLS).replace("~", "%7E")


def _url_decode(text: str) -> str:
    found = _try_url_decode(text)
    if found is None:
        raise EvaluationError(f"url_decode: '{excerpt(text)}' is malformed; use try_url_decode to get NULL instead")
    return found


def _try_url_decode(text: str) -> str | None:
    """Text of the type application/x-www-form-urlencoded; None if an escape is malformed."""
    pieces = text.replace("+", " ").split("%")
    result = [pieces[0].encode()]
    for piece in pieces[1:]:
        if len(piece) < 2 or not _HEX.issuperset(piece[:2]):
            return None
        result.append(bytes.fromhex(piece[:2]) + piece[2:].encode())
    return b"".join(result).decode("utf-8", "replace")


def _is_valid_utf8(value: str | bytes) -> bool:
    try:
        as_bytes(value).decode()
    except UnicodeDecodeError:
        return False
    return True


def _make_valid_utf8(value: str | bytes) -> str:
    return as_bytes(value).decode("utf-8", "replace")


def _validate_utf8(value: str | bytes) -> str:
    if not _is_valid_utf8(value):
        raise EvaluationError("validate_utf8: the text is not UTF-8; use try_validate_utf8 to get NULL instead")
    return as_bytes(value).decode()


def _try_validate_utf8(value: str | bytes) -> str | None:
    return as_bytes(value).decode() if _is_valid_utf8(value) else None


def _to_base32(value: str | bytes) -> str:
    return base64.b32encode(as_bytes(value)).decode()


def _from_base32(text: str) -> bytes:
    try:
        return base64.b32decode(text)
    except binascii.Error:
        raise _malformed("from_base32", text) from None


def _bits(value: int) -> str:
    return f"{value & (2**64 - 1):b}"


def _character(code: int) -> str:
    """CHR: the Latin-1 character of the lowest byte; none if the number is negative."""
    return "" if code < 0 else chr(code & 0xFF)


def _size(unit: int) -> Any:
    return lambda value: len(as_bytes(value)) * unit


FUNCTIONS: dict[str, Function] = {
    "base64": by_value(_to_base64, 1),
    "unbase64": by_value(_from_base64, 1, fails=True),
    "to_base32": by_value(_to_base32, 1),
    "from_base32": by_value(_from_base32, 1, fails=True),
    "unhex": by_value(_from_hex, 1),
    "to_binary": by_value(_to_binary, 1, 2, fails=True),
    "try_to_binary": by_value(_try_to_binary, 1, 2, fails=True),
    "encode": by_value(_encode, 2, fails=True),
    "decode": by_value(_decode, 2, fails=True),
    "url_encode": by_value(_url_encode, 1),
    "url_decode": by_value(_url_decode, 1, fails=True),
    "try_url_decode": by_value(_try_url_decode, 1),
    "is_valid_utf8": by_value(_is_valid_utf8, 1),
    "make_valid_utf8": by_value(_make_valid_utf8, 1),
    "validate_utf8": by_value(_validate_utf8, 1, fails=True),
    "try_validate_utf8": by_value(_try_validate_utf8, 1),
    "bin": by_value(_bits, 1),
    "chr": by_value(_character, 1),
    "octet_length": by_value(_size(1), 1),
    "bit_length": by_value(_size(8), 1),
}

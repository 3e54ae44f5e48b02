"""Numbers as text by a format, and back."""

from __future__ import annotations

import pyarrow as pa

from sash.errors import TypeMismatchError
from sash.plan import types
from sash.plan.expressions import Call, Cast, Expression, Literal
from sash.plan.types import BINARY, INT, STRING, TIMESTAMP
from sash.sql.coercion import coerce, implicit, is_decimal
from sash.sql.function_rules import Arguments
from sash.sql.signatures.base import Signature


def _format_number(name: str, arguments: Arguments) -> Expression:
    number, format_ = arguments
    if not types.is_numeric(number.dtype):
        number = implicit(number, types.DOUBLE, name)
    if format_.dtype != STRING:
        format_ = implicit(format_, INT, name)
    return Call(name, (number, format_), STRING)


def _to_number(name: str, arguments: Arguments) -> Expression:
    """The format is a constant: it gives the type of the result."""
    text, format_ = arguments
    if not isinstance(format_, Literal) or not isinstance(format_.value, str):
        raise TypeMismatchError(f"the second argument of {name} is a constant, such as '999.99'")
    whole, _, fraction = format_.value.upper().replace("D", ".").partition(".")
    scale = sum(character in "09" for character in fraction)
    precision = sum(character in "09" for character in whole) + scale
    if not 1 <= precision <= 38:
        raise TypeMismatchError(f"'{format_.value}' is not a format of numbers: it has no digits, or more than 38")
    return Call(name, (implicit(text, STRING, name), format_), pa.decimal128(precision, scale))


def _to_char(name: str, arguments: Arguments) -> Expression:
    """Of a number by a format, of a date or time by a pattern, of bytes by their notation."""
    value, format_ = arguments
    if pa.types.is_temporal(value.dtype):
        return Call("date_format", (implicit(value, TIMESTAMP, name), implicit(format_, STRING, name)), STRING)
    if value.dtype == BINARY:
        return _of_bytes(name, value, format_)
    if not is_decimal(value.dtype):
        digits = {types.TINYINT: 3, types.SMALLINT: 5, types.INT: 10, types.BIGINT: 20}.get(value.dtype)
        if digits is None and value.dtype not in (types.NULL, STRING, types.FLOAT, types.DOUBLE):
            raise TypeMismatchError(f"{name} takes a number, a time or BINARY, not {types.type_name(value.dtype)}")
        value = coerce(value, pa.decimal128(digits, 0) if digits else pa.decimal128(38, 18))
    return Call("to_char", (value, implicit(format_, STRING, name)), STRING)


def _of_bytes(name: str, value: Expression, format_: Expression) -> Expression:
    match format_.value.lower() if isinstance(format_, Literal) and isinstance(format_.value, str) else None:
        case "base64":
            return Call("base64", (value,), STRING)
        case "hex":
            return Call("hex", (value,), STRING)
        case "utf-8":
            return Cast(value, STRING)
    raise TypeMismatchError(f"the formats of bytes of {name} are 'base64', 'hex' and 'utf-8'")


SIGNATURES: dict[str, Signature] = {
    "format_number": Signature(2, 2, _format_number),
    "to_number": Signature(2, 2, _to_number),
    "try_to_number": Signature(2, 2, _to_number),
    "to_char": Signature(2, 2, _to_char),
}
ALIASES = {"to_varchar": "to_char"}

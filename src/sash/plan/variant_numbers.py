"""Numbers in variants: the type of a number by its text, and the texts of numbers of a type."""

from __future__ import annotations

from decimal import Decimal

from sash.plan.json_reader import JsonNumber, TypedScalar

_DIGITS = 38


def scalar_of(number: JsonNumber) -> int | Decimal | float:
    """The number with its type."""
    if number.whole and -(2**63) <= int(number.text) < 2**63:
        return int(number.text)
    if "e" not in number.text.lower():
        sign, digits, exponent = Decimal(number.text).as_tuple()
        assert isinstance(exponent, int)
        if len(digits) <= _DIGITS and -exponent <= _DIGITS:
            return _stripped(Decimal((sign, digits, exponent)))
    return float(number.text)


def _stripped(number: Decimal) -> Decimal:
    """The number without zeros at the end of its fraction."""
    if number == 0:
        return Decimal(0)
    sign, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    while exponent < 0 and digits[-1] == 0:
        digits, exponent = digits[:-1], exponent + 1
    return Decimal((sign, digits, exponent))


def double(number: float) -> JsonNumber | TypedScalar:
    """A DOUBLE as a value of a variant."""
    if number - number != 0.0:  # not finite
        return TypedScalar("e", repr(number))
    written = repr(number)
    return JsonNumber(written if "e" in written else f"{written}e0", whole=False)


def decimal(number: Decimal) -> JsonNumber:
    """A DECIMAL as a value of a variant; a whole one that is a BIGINT gets a point."""
    plain = format(number, "f")
    if "." not in plain and not -(2**63) <= int(plain) < 2**63:
        return JsonNumber(plain, whole=True)
    return JsonNumber(plain if "." in plain else f"{plain}.0", whole=False)

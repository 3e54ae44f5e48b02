"""Doubles as Java writes them."""

from __future__ import annotations

import decimal
import math

import numpy as np


def java_number(value: float, shortest: str) -> str:
    """The shortest digits that round-trip, in the format of Java.

    >>> java_number(1e10, repr(1e10)), java_number(0.25, repr(0.25))
    ('1.0E10', '0.25')
    """
    if math.isnan(value):
        return "NaN"
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    if math.isinf(value):
        return f"{sign}Infinity"
    if value == 0:
        return f"{sign}0.0"
    _, figures, exponent = decimal.Decimal(shortest).as_tuple()
    assert isinstance(exponent, int)
    point = len(figures) + exponent
    digits = "".join(map(str, figures)).rstrip("0") or "0"
    if not -3 < point <= 7:
        return f"{sign}{digits[0]}.{digits[1:] or '0'}E{point - 1}"
    if point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    return f"{sign}{digits[:point].ljust(point, '0')}.{digits[point:] or '0'}"


def double_text(text: str) -> str:
    """A number with a fraction as a DOUBLE in JSON; those that JSON does not have are strings."""
    number = float(text)
    return _in_json(java_number(number, repr(number)))


def float_text(text: str) -> str:
    """A number with a fraction as a FLOAT in JSON."""
    number = np.float32(text)
    return _in_json(java_number(float(number), str(number)))


def _in_json(written: str) -> str:
    return written if written[-1].isdigit() else f'"{written}"'

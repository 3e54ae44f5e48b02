"""Parses strings as numbers, booleans, dates and timestamps in Spark's formats; NULL for any other text."""

from __future__ import annotations

import datetime
import decimal
import re
import zoneinfo
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sash.operators.scalar import arrays
from sash.operators.scalar.arrays import Array, Numbers, kernel
from sash.operators.scalar.decimals import rescale, shape
from sash.time import DAY, SECOND

_BLANKS = "".join(map(chr, range(0x21))) + "\x7f"
_INTEGER = r"^[+-]?[0-9]+$"
_FLOAT = r"(?i)^[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?[df]?|inf|infinity)$|^nan$"
_DECIMAL = r"^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"
_DATE = r"(?P<sign>[+-]?)(?P<year>[0-9]{4,7})(?:-(?P<month>[0-9]{1,2})(?:-(?P<day>[0-9]{1,2})"
_CLOCK = (
    r"(?:[ T](?P<hour>[0-9]{1,2})(?::(?P<minute>[0-9]{1,2})(?::(?P<second>[0-9]{1,2})"
    r"(?:\.(?P<fraction>[0-9]*))?(?P<zone>[^0-9.].*)?)?)?)?"
)
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2})(?::?(\d{2}))?)?")
_TRUE, _FALSE = ("t", "true", "y", "yes", "1"), ("f", "false", "n", "no", "0")
_LONGEST_YEAR = 300_000
_NAIVE = pa.timestamp("us")


def parse_booleans(values: Array, dtype: pa.DataType) -> Array:
    """t, true, y, yes, 1 and their opposites, in any case."""
    lower = kernel("ascii_lower", _trim(values))
    true = kernel("is_in", lower, options=pc.SetLookupOptions(pa.array(_TRUE)))
    known = kernel("is_in", lower, options=pc.SetLookupOptions(pa.array(_TRUE + _FALSE)))
    return arrays.nullify(true, kernel("invert", known))


def parse_integers(values: Array, dtype: pa.DataType) -> Array:
    """Digits with an optional sign."""
    text = _replace(_only(_trim(values), _INTEGER), r"^\+", "")
    text = _replace(text, r"^(-?)0+([0-9])", r"\1\2")
    text = arrays.nullify(text, kernel("greater", kernel("binary_length", text), pa.scalar(20)))
    wide = text.cast(pa.decimal128(20, 0))
    low, high = (pa.scalar(limit).cast(wide.type) for limit in arrays.limits(dtype))
    outside = kernel("or", kernel("less", wide, low), kernel("greater", wide, high))
    return arrays.nullify(wide, outside).cast(dtype)


def parse_floats(values: Array, dtype: pa.DataType) -> Array:
    """Decimal and scientific notation, a trailing d or f, inf, infinity and nan."""
    text = _only(_trim(values), _FLOAT)
    return _replace(text, r"^\+|^(.*[0-9.])[dDfF]$", r"\1").cast(dtype)


def parse_decimals(values: Array, dtype: pa.DataType) -> Array:
    """Decimal and scientific notation, rounded HALF_UP; the latter in Python, once per distinct value."""
    text = _only(_trim(values), _DECIMAL)
    scientific = kernel("match_substring_regex", text, options=pc.MatchSubstringOptions("[eE]"))
    if arrays.holds_any(scientific):
        plain = arrays.map_distinct(text.filter(scientific), _without_exponent, pa.string())
        text = kernel("replace_with_mask", text, kernel("coalesce", scientific, pa.scalar(False)), plain)
    # HALF_UP depends on one digit past the scale only.
    precision, scale = shape(dtype)
    text = _replace(text, rf"^([+-]?[0-9]*\.[0-9]{{{scale + 1}}})[0-9]+$", r"\1")
    text = _replace(text, r"^([+-]?)0+([0-9])", r"\1\2")
    whole = kernel("binary_length", _replace(text, r"^[+-]|\.[0-9]*$", ""))
    room = max(precision - scale, 1)
    text = arrays.nullify(text, kernel("greater", whole, pa.scalar(room)))
    return rescale(text.cast(pa.decimal256(room + scale + 1, scale + 1)), dtype)


def parse_dates(values: Array, dtype: pa.DataType) -> Array:
    """yyyy, yyyy-[m]m and yyyy-[m]m-[d]d, the last with anything after a blank or a T."""
    fields = _extract(values, rf"(?s)^{_DATE}(?:[ T].*)?)?)?$")
    days, good = _days(fields)
    return arrays.from_numbers(days.astype(np.int32), dtype, pa.array(~good))


def parse_timestamps(values: Array, dtype: pa.DataType) -> Array:
    """A date, then optionally a blank or a T, [h]h[:[m]m[:[s]s[.fraction][zone]]].

    Fractions are cut to microseconds. A zone is Z, an offset, or a region; the latter in Python, row by row. A timestamp
    without time zone ignores it.
    """
    fields = _extract(values, rf"^{_DATE}{_CLOCK})?)?$")
    days, good = _days(fields)
    hour, minute, second = (_integers(fields[name], 0) for name in ("hour", "minute", "second"))
    good &= (hour < 24) & (minute < 60) & (second < 60)
    options = pc.PadOptions(6, "0")
    fraction = kernel("utf8_slice_codeunits", fields["fraction"], options=pc.SliceOptions(0, 6))
    micros = _integers(kernel("ascii_rpad", fraction, options=options), 0)
    micros = days * DAY + ((hour * 60 + minute) * 60 + second) * SECOND + micros
    in_utc, good = _leave_zone(micros, good, fields["zone"])
    return arrays.from_numbers(micros if dtype == _NAIVE else in_utc, dtype, pa.array(~good))


def _trim(values: Array) -> Array:
    return kernel("ascii_trim", values, options=pc.TrimOptions(_BLANKS))


def _only(text: Array, pattern: str) -> Array:
    matched = kernel("match_substring_regex", text, options=pc.MatchSubstringOptions(pattern))
    return arrays.nullify(text, kernel("invert", matched))


def _replace(text: Array, pattern: str, replacement: str) -> Array:
    return kernel("replace_substring_regex", text, options=pc.ReplaceSubstringOptions(pattern, replacement))


def _without_exponent(text: str) -> str | None:
    try:
        value = decimal.Decimal(text)
    except decimal.InvalidOperation:
        return None
    if value and value.adjusted() > 40:
        return None
    return format(value, "f") if value.adjusted() > -100 else "0"


def _extract(values: Array, pattern: str) -> dict[str, Array]:
    found: Any = kernel("extract_regex", _trim(values), options=pc.ExtractRegexOptions(pattern))
    names = [found.type.field(index).name for index in range(found.type.num_fields)]
    return dict(zip(names, found.flatten(), strict=True))


def _integers(text: Array, default: int) -> Numbers:
    filled = kernel("if_else", kernel("equal", text, pa.scalar("")), pa.scalar(str(default)), text)
    return arrays.numbers(filled.cast(pa.int64()))


def _days(fields: dict[str, Array]) -> tuple[Numbers, Numbers]:
    """Days since 1970, and the mask of fields that form a valid date."""
    good = fields["year"].is_valid().to_numpy(zero_copy_only=False)
    negative = kernel("coalesce", kernel("equal", fields["sign"], pa.scalar("-")), pa.scalar(False))
    year = _integers(fields["year"], 1)
    year = np.where(negative.to_numpy(zero_copy_only=False), -year, year)
    month, day = _integers(fields["month"], 1), _integers(fields["day"], 1)
    good = good & (np.abs(year) < _LONGEST_YEAR) & (month >= 1) & (month <= 12) & (day >= 1)
    months = np.where(good, (year - 1970) * 12 + month - 1, 0)
    first = months.astype("M8[M]").astype("M8[D]").astype(np.int64)
    following = (months + 1).astype("M8[M]").astype("M8[D]").astype(np.int64)
    days = first + day - 1
    good &= days < following
    return np.where(good, days, 0), good


def _leave_zone(micros: Numbers, good: Numbers, zones: Array) -> tuple[Numbers, Numbers]:
    """From local time to UTC."""
    zoned = kernel("coalesce", kernel("not_equal", zones, pa.scalar("")), pa.scalar(False))
    if not arrays.holds_any(zoned):
        return micros, good
    micros, good, encoded = micros.copy(), good.copy(), zones.dictionary_encode()
    codes = arrays.numbers(encoded.indices)
    for code, name in enumerate(encoded.dictionary.to_pylist()):
        rows = np.flatnonzero((codes == code) & good)
        offset = _offset(str(name).strip())
        if isinstance(offset, int):
            micros[rows] -= offset
        elif offset is None:
            good[rows] = False
        else:
            micros[rows] -= [_region_offset(offset, local) for local in micros[rows].tolist()]
    return micros, good


def _offset(name: str) -> int | zoneinfo.ZoneInfo | None:
    """A fixed offset in microseconds, a region, or None if the text is neither."""
    if name in ("", "Z", "UTC", "GMT", "UT"):
        return 0
    matched = _OFFSET.fullmatch(name)
    if matched:
        hours, minutes, seconds = (int(part or 0) for part in matched.groups()[1:])
        total = (hours * 60 + minutes) * 60 + seconds
        if minutes > 59 or seconds > 59 or total > 18 * 3600:
            return None
        return (-total if matched.group(1) == "-" else total) * SECOND
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return None


def _region_offset(zone: zoneinfo.ZoneInfo, micros: int) -> int:
    try:
        local = datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=micros)
    except OverflowError:
        local = datetime.datetime(1970, 1, 1)
    offset = zone.utcoffset(local)
    return 0 if offset is None else offset // datetime.timedelta(microseconds=1)

"""Time zones as Java reads and applies them: local times in a gap move forward, those in an overlap are the earlier ones."""

from __future__ import annotations

import datetime
import re
import zoneinfo
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from sash.errors import EvaluationError, excerpt
from sash.operators.scalar import arrays
from sash.operators.scalar.arrays import Array, Datum, Numbers
from sash.operators.scalar.function import Function
from sash.time import HOUR, SECOND

Zone: TypeAlias = "int | zoneinfo.ZoneInfo"
"""A fixed offset in microseconds, or a region."""

_EPOCH = datetime.datetime(1970, 1, 1)
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::(\d{1,2})(?::(\d{2}))?|(\d{2})(\d{2})?)?")
_SHORT = {
    "ACT": "Australia/Darwin", "AET": "Australia/Sydney", "AGT": "America/Argentina/Buenos_Aires", "ART": "Africa/Cairo",
    "AST": "America/Anchorage", "BET": "America/Sao_Paulo", "BST": "Asia/Dhaka", "CAT": "Africa/Harare",
    "CNT": "America/St_Johns", "CST": "America/Chicago", "CTT": "Asia/Shanghai", "EAT": "Africa/Addis_Ababa",
    "ECT": "Europe/Paris", "IET": "America/Indiana/Indianapolis", "IST": "Asia/Kolkata", "JST": "Asia/Tokyo",
    "MIT": "Pacific/Apia", "NET": "Asia/Yerevan", "NST": "Pacific/Auckland", "PLT": "Asia/Karachi",
    "PNT": "America/Phoenix", "PRT": "America/Puerto_Rico", "PST": "America/Los_Angeles", "SST": "Pacific/Guadalcanal",
    "VST": "Asia/Ho_Chi_Minh", "EST": "-05:00", "MST": "-07:00", "HST": "-10:00",
}  # fmt: skip


@lru_cache(maxsize=1024)
def zone_of(name: str) -> Zone | None:
    """The zone of that name or offset; None if there is none."""
    name = _SHORT.get(name, name)
    if name in ("Z", "UTC", "GMT", "UT"):
        return 0
    if matched := _OFFSET.fullmatch(name):
        sign, hours, minutes, seconds, more_minutes, more_seconds = matched.groups()
        parts = (int(hours), int(minutes or more_minutes or 0), int(seconds or more_seconds or 0))
        total = (parts[0] * 60 + parts[1]) * 60 + parts[2]
        if parts[1] > 59 or parts[2] > 59 or total > 18 * 3600:
            return None
        return (-total if sign == "-" else total) * SECOND
    if not re.fullmatch(r"[A-Z][A-Za-z0-9~/._+-]+", name):
        return None
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return None


def known_zone(function: str, name: str) -> Zone:
    """The zone of that name; raises EvaluationError if there is none."""
    zone = zone_of(name)
    if zone is None:
        raise EvaluationError(f"{function}: there is no time zone '{excerpt(name)}'; write one such as 'Europe/Berlin'")
    return zone


def to_local(micros: Numbers, zone: Zone) -> Numbers:
    """Local times of instants."""
    return micros + _offsets(
        micros, zone, lambda moment, region: moment.replace(tzinfo=datetime.UTC).astimezone(region)
    )


def to_utc(micros: Numbers, zone: Zone) -> Numbers:
    """Instants of local times."""
    return micros - _offsets(micros, zone, lambda moment, region: moment.replace(tzinfo=region))


def _offsets(
    micros: Numbers, zone: Zone, place: Callable[[datetime.datetime, zoneinfo.ZoneInfo], datetime.datetime]
) -> Numbers:
    """The offset at each time, in microseconds; by Python once per hour, and per value where it changes in the hour."""
    if isinstance(zone, int):
        return np.full(len(micros), zone, np.int64)

    @cache
    def at(time: int) -> int:
        try:
            moment = _EPOCH + datetime.timedelta(microseconds=time)
            offset = place(moment, zone).utcoffset()
        except OverflowError:
            raise EvaluationError("time zones are known for the years 1 to 9999 only") from None
        return 0 if offset is None else offset // datetime.timedelta(microseconds=1)

    hours, which = np.unique(micros // HOUR, return_inverse=True)
    first = np.array([at(hour * HOUR) for hour in hours.tolist()], np.int64)
    last = np.array([at(hour * HOUR + HOUR - 1) for hour in hours.tolist()], np.int64)
    which = which.reshape(-1)
    result: Numbers = first[which]
    for row in np.flatnonzero((first != last)[which]).tolist():
        result[row] = at(int(micros[row]))
    return result


def _moved(function: str, change: Callable[[Numbers, Zone], Numbers]) -> Function:
    def run(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
        def one(values: Array, name: str) -> Array:
            return arrays.from_numbers(change(arrays.numbers(values), known_zone(function, name)), dtype, [values])

        return arrays.for_each_parameter(one, arrays.broadcast_all(arguments)[0], arguments[1:], dtype)

    return Function(run, 2, 2, fails=True)


def _convert(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """CONVERT_TIMEZONE(source, target, local time)."""

    def one(values: Array, source: str, target: str) -> Array:
        micros = to_utc(arrays.numbers(values), known_zone("convert_timezone", source))
        return arrays.from_numbers(to_local(micros, known_zone("convert_timezone", target)), dtype, [values])

    return arrays.for_each_parameter(one, arrays.broadcast_all(arguments)[2], arguments[:2], dtype)


FUNCTIONS: dict[str, Function] = {
    "from_utc_timestamp": _moved("from_utc_timestamp", to_local),
    "to_utc_timestamp": _moved("to_utc_timestamp", to_utc),
    "convert_timezone": Function(_convert, 3, 3, fails=True),
}

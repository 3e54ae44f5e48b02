"""TO_TIMESTAMP and the like with a pattern: a pattern becomes a regular expression, and its fields a time."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa

from sash.errors import EvaluationError, excerpt
from sash.operators.scalar import arrays
from sash.operators.scalar.arrays import Array, Datum
from sash.operators.scalar.datetime_patterns import MONTHS, Letters, Optional, Part, read_pattern
from sash.operators.scalar.function import Function
from sash.operators.scalar.zones import to_utc, zone_of
from sash.time import DAY, SECOND

_DEFAULT = "yyyy-MM-dd HH:mm:ss"
_NUMERIC = frozenset("yDdHhKkms")
_OFFSETS = {
    ("X", 1): r"Z|[+-]\d{2}(?:\d{2})?", ("X", 2): r"Z|[+-]\d{4}", ("X", 3): r"Z|[+-]\d{2}:\d{2}",
    ("X", 4): r"Z|[+-]\d{4}(?:\d{2})?", ("X", 5): r"Z|[+-]\d{2}:\d{2}(?::\d{2})?",
    ("x", 1): r"[+-]\d{2}(?:\d{2})?", ("x", 2): r"[+-]\d{4}", ("x", 3): r"[+-]\d{2}:\d{2}",
    ("x", 4): r"[+-]\d{4}(?:\d{2})?", ("x", 5): r"[+-]\d{2}:\d{2}(?::\d{2})?",
    **{("Z", count): r"[+-]\d{4}" for count in (1, 2, 3)}, ("Z", 5): r"Z|[+-]\d{2}:\d{2}(?::\d{2})?",
    ("V", 2): r"[A-Za-z][A-Za-z0-9~/._+:-]*|[+-]\d{2}:\d{2}",
}  # fmt: skip


@dataclass(frozen=True)
class _Compiled:
    """The regular expression of a pattern, and the letters of its groups in order."""

    regex: re.Pattern[str]
    letters: tuple[Letters, ...]


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> _Compiled:
    letters: list[Letters] = []
    text = _regex(pattern, read_pattern(pattern, True), letters)
    return _Compiled(re.compile(text, re.IGNORECASE | re.ASCII), tuple(letters))


def _regex(pattern: str, parts: Sequence[Part], letters: list[Letters]) -> str:
    text = ""
    for index, part in enumerate(parts):
        if isinstance(part, str):
            text += re.escape(part)
        elif isinstance(part, Optional):
            text += f"(?:{_regex(pattern, part.parts, letters)})?"
        else:
            letters.append(part)
            following = parts[index + 1] if index + 1 < len(parts) else None
            fixed = isinstance(following, Letters) and (following.letter in _NUMERIC or following.letter in "MLS")
            text += f"({_field(pattern, part, fixed)})"
    return text


def _field(pattern: str, part: Letters, digits_follow: bool) -> str:
    """The regular expression of a field; a number of any length takes all digits, unless others follow it."""
    letter, count = part.letter, part.count
    if (letter, count) in _OFFSETS:
        return _OFFSETS[letter, count]
    if letter in "ML" and count > 2:
        return "|".join(sorted((name[:3] if count == 3 else name for name in MONTHS), key=len, reverse=True))
    if letter == "a":
        return "AM|PM"
    if letter == "S":
        return rf"\d{{1,{count}}}"
    if letter == "y" and count > 3:
        return rf"\+\d{{{count + 1},9}}|-?\d{{{count}}}"
    if letter == "y" and count != 2:
        return rf"-?\d{{{count},9}}" if digits_follow else rf"-?\d{{{count},9}}+"
    if count == 1:
        if digits_follow:
            raise EvaluationError(
                f"the pattern '{excerpt(pattern)}': {letter} before other digits has no fixed length; write {letter * 2}"
            )
        return r"\d{1,9}+"
    if letter in _NUMERIC or letter in "ML":
        return rf"\d{{{count}}}"
    raise EvaluationError(f"the pattern '{excerpt(pattern)}': Sash does not parse {letter * count}")


def parse_moment(text: str, pattern: str) -> tuple[int, str | None] | None:
    """Local microseconds since 1970, and the zone in the text; None if the text does not match."""
    compiled = _compiled(pattern)
    found = compiled.regex.fullmatch(text)
    if found is None:
        return None
    fields: dict[str, int] = {}
    zone = None
    for part, value in zip(compiled.letters, found.groups(), strict=True):
        if value is None:
            continue
        name = "M" if part.letter == "L" else part.letter
        if name in "XxZV":
            zone = value.upper() if name != "V" else value
            continue
        number = _number(part, value)
        if fields.setdefault(name, number) != number:
            return None
    micros = _resolved(fields)
    return None if micros is None else (micros, zone)


def _number(part: Letters, value: str) -> int:
    if part.letter == "a":
        return int(value.upper() == "PM")
    if part.letter == "S":
        return int(value.ljust(9, "0")) // 1000
    if part.letter in "ML" and part.count > 2:
        return [name[:3].upper() for name in MONTHS].index(value[:3].upper()) + 1
    return int(value) + (2000 if part.letter == "y" and part.count == 2 else 0)


def _resolved(fields: dict[str, int]) -> int | None:
    """The time that the fields denote; those that are missing are of 1970-01-01 00:00:00."""
    days = _days(fields)
    hour = _hour(fields)
    minute, second = fields.get("m", 0), fields.get("s", 0)
    if days is None or hour is None or minute > 59 or second > 59:
        return None
    return days * DAY + ((hour * 60 + minute) * 60 + second) * SECOND + fields.get("S", 0)


def _days(fields: dict[str, int]) -> int | None:
    year, month, day = fields.get("y", 1970), fields.get("M", 1), fields.get("d", 1)
    if abs(year) > 290_000 or not 1 <= month <= 12:
        return None
    if "D" in fields and "M" not in fields and "d" not in fields:
        first = np.datetime64(year - 1970, "Y").astype("M8[D]").astype(np.int64)
        following = np.datetime64(year - 1969, "Y").astype("M8[D]").astype(np.int64)
        found = int(first) + fields["D"] - 1
        return found if first <= found < following else None
    months = (year - 1970) * 12 + month - 1
    first, following = (int(np.datetime64(each, "M").astype("M8[D]").astype(np.int64)) for each in (months, months + 1))
    if not 1 <= day <= following - first:
        return None
    days = first + day - 1
    if "D" in fields:
        start = int(np.datetime64(year - 1970, "Y").astype("M8[D]").astype(np.int64))
        return days if days - start + 1 == fields["D"] else None
    return days


def _hour(fields: dict[str, int]) -> int | None:
    """The hour of the day; without AM or PM, hours of a half day are those of the morning."""
    if fields.get("h", 1) not in range(1, 13) or fields.get("K", 0) > 11 or fields.get("k", 1) not in range(1, 25):
        return None
    afternoon = 12 * fields.get("a", 0)
    found = set()
    if "H" in fields:
        found.add(fields["H"])
    if "k" in fields:
        found.add(fields["k"] % 24)
    if found and "a" in fields and any(hour // 12 != fields["a"] for hour in found):
        return None
    for half in ("h", "K"):
        if half in fields:
            found.add(fields[half] % 12 + (afternoon if "a" in fields or not found else min(found) // 12 * 12))
    if not found:
        return afternoon
    return found.pop() if len(found) == 1 and max(found) < 24 else None


def _parser(name: str, lenient: bool) -> Callable[[Sequence[Datum], pa.DataType], Array]:
    """Texts as timestamps, dates or seconds, by the type of the result."""

    def one(text: str, pattern: str, divisor: int, zoned: bool) -> int | None:
        parsed = parse_moment(text, pattern)
        if parsed is None:
            if lenient:
                return None
            raise EvaluationError(
                f"{name}: '{excerpt(text)}' is not of the pattern '{excerpt(pattern)}'; use try_to_timestamp to get NULL instead"
            )
        micros, zone_name = parsed
        if zone_name is not None and zoned:
            zone = zone_of(zone_name)
            if zone is None:
                if lenient:
                    return None
                raise EvaluationError(f"{name}: there is no time zone '{excerpt(zone_name)}'")
            micros = int(to_utc(np.array([micros], np.int64), zone)[0])
        return micros // divisor

    def run(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
        pattern = arguments[1] if len(arguments) > 1 else pa.scalar(_DEFAULT)
        divisor = DAY if pa.types.is_date32(dtype) else SECOND if pa.types.is_int64(dtype) else 1
        zoned = dtype != pa.timestamp("us")
        texts = arrays.broadcast_all([arguments[0], pattern])[0]
        return arrays.map_rows(lambda text, each: one(text, each, divisor, zoned), [texts, pattern], dtype)

    return run


FUNCTIONS: dict[str, Function] = {
    "to_timestamp": Function(_parser("to_timestamp", False), 2, 2, fails=True),
    "to_timestamp_ntz": Function(_parser("to_timestamp_ntz", False), 2, 2, fails=True),
    "parse_date": Function(_parser("to_date", False), 2, 2, fails=True),
    "to_unix_timestamp": Function(_parser("to_unix_timestamp", False), 1, 2, fails=True),
    "try_to_timestamp": Function(_parser("try_to_timestamp", True), 2, 2, fails=True),
    "try_to_date": Function(_parser("try_to_date", True), 2, 2, fails=True),
}

"""Functions that take text apart or compare it: positions and lengths count characters (code points), from 1."""

from __future__ import annotations

import unicodedata

from sash.errors import EvaluationError
from sash.operators.scalar.arrays import LONGEST_TEXT
from sash.operators.scalar.function import MANY, Function, by_value, by_value_or_null

_SOUNDEX = "01230127022455012623017202"
_LUHN = str.maketrans("0123456789", "0246813579")


def _locate(part: str | None, text: str | None, start: int | None) -> int | None:
    """The position of `part` from `start` on, or 0; a NULL start is 0, as in Hive."""
    if start is None:
        return 0
    if part is None or text is None:
        return None
    if start < 1:
        return 0
    return text.find(part, start - 1) + 1 if part else 1


def _substring_index(text: str, delimiter: str, count: int) -> str:
    """The text before the count-th delimiter, or after it, counted from the end; delimiters may overlap."""
    if not delimiter or count == 0:
        return ""
    if count > 0:
        at = -1
        for _ in range(count):
            at = text.find(delimiter, at + 1)
            if at < 0:
                return text
        return text[:at]
    end = len(text) + 1
    for _ in range(-count):
        end = text.rfind(delimiter, 0, end + len(delimiter) - 1) if end > 0 else -1
        if end < 0:
            return text
    return text[end + len(delimiter) :]


def _find_in_set(item: str, items: str) -> int:
    if "," in item:
        return 0
    parts = items.split(",")
    return parts.index(item) + 1 if item in parts else 0


def _slice(text: str | bytes, position: int, count: int) -> str | bytes:
    """SUBSTRING: a position before the text takes part of the count."""
    start = position - 1 if position > 0 else len(text) + position if position < 0 else 0
    return text[max(start, 0) : max(start + count, 0)]


def _overlay(text: str | bytes, new: str | bytes, position: int, count: int = -1) -> str | bytes:
    size = count if count >= 0 else len(new)
    return _slice(text, 1, position - 1) + new + _slice(text, position + size, 2**31)  # type: ignore[operator]


def _elt(number: int | None, *values: str | bytes | None) -> str | bytes | None:
    if number is None:
        return None
    if not 1 <= number <= len(values):
        raise EvaluationError(f"elt: {number} is not among its values, which are 1 to {len(values)}")
    return values[number - 1]


def _levenshtein(left: str, right: str, most: int | None = None) -> int:
    """The least number of characters to insert, delete or replace; -1 if it is more than `most`."""
    if most is not None and abs(len(left) - len(right)) > most:
        return -1
    before = list(range(len(right) + 1))
    for row, a in enumerate(left, 1):
        current = [row]
        for column, b in enumerate(right, 1):
            current.append(min(before[column] + 1, current[-1] + 1, before[column - 1] + (a != b)))
        before = current
    return -1 if most is not None and before[-1] > most else before[-1]


def _soundex(text: str) -> str:
    if not text or not ("A" <= text[0].upper() <= "Z" and text[0].isascii()):
        return text
    result = text[0].upper()
    last = _SOUNDEX[ord(result) - ord("A")]
    for character in text[1:]:
        upper = character.upper() if character.isascii() else ""
        if not "A" <= upper <= "Z":
            last = "0"
            continue
        code = _SOUNDEX[ord(upper) - ord("A")]
        if code == "7":
            continue
        if code not in ("0", last):
            result += code
            if len(result) == 4:
                break
        last = code
    return result.ljust(4, "0")


def _luhn_check(text: str) -> bool:
    if not text or not (text.isascii() and text.isdigit()):
        return False
    doubled = text[-2::-2].translate(_LUHN)
    return sum(map(int, text[-1::-2] + doubled)) % 10 == 0


def _mask(
    text: str | None,
    upper: str | None = "X",
    lower: str | None = "x",
    digit: str | None = "n",
    other: str | None = None,
) -> str | None:
    """Characters replaced by kind; NULL leaves a kind as it is."""
    if text is None:
        return None
    kinds = {"Lu": upper, "Ll": lower, "Nd": digit}
    result = []
    for character in text:
        found = kinds.get(unicodedata.category(character), other)
        result.append(character if found is None else found)
    return "".join(result)


def _space(count: int) -> str:
    if count > LONGEST_TEXT:
        raise EvaluationError(f"space: the result has more than {LONGEST_TEXT:,} bytes; make shorter text")
    return " " * count


def _quote(text: str) -> str:
    return "'" + text.replace("'", "\\'") + "'"


FUNCTIONS: dict[str, Function] = {
    "locate": by_value_or_null(_locate, 3),
    "substring_index": by_value(_substring_index, 3),
    "find_in_set": by_value(_find_in_set, 2),
    "overlay": by_value(_overlay, 3, 4),
    "elt": by_value_or_null(_elt, 2, MANY, fails=True),
    "levenshtein": by_value(_levenshtein, 2, 3),
    "soundex": by_value(_soundex, 1),
    "luhn_check": by_value(_luhn_check, 1),
    "mask": by_value_or_null(_mask, 1, 5),
    "space": by_value(_space, 1, fails=True),
    "quote": by_value(_quote, 1),
}

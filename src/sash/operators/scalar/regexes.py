"""RLIKE, REGEXP_EXTRACT, REGEXP_REPLACE and their kin, and SPLIT: Java's regular expressions, once per distinct text."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from sash.errors import EvaluationError, excerpt
from sash.operators.scalar import arrays
from sash.operators.scalar.arrays import Array, Datum, kernel
from sash.operators.scalar.function import Function, by_value
from sash.operators.scalar.java_regex import is_plain, java_regex


def match_regex(values: Array, pattern: str) -> Array:
    """RLIKE: whether the expression matches a part of the text."""
    if is_plain(pattern):
        try:
            return kernel("match_substring_regex", values, options=pc.MatchSubstringOptions(pattern))
        except pa.ArrowInvalid:
            pass
    regex = java_regex(pattern)
    search = regex.compiled.search
    return arrays.map_distinct(values, lambda text: search(regex.check(text)) is not None, pa.bool_())


def _rlike(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    return arrays.for_each_parameter(match_regex, arrays.broadcast_all(arguments)[0], arguments[1:], dtype)


def _group(pattern: str, compiled: re.Pattern[str], index: int) -> int:
    if not 0 <= index <= compiled.groups:
        raise EvaluationError(
            f"the regular expression '{excerpt(pattern)}' has the groups 0 to {compiled.groups}, not {index}"
        )
    return index


def _extract(text: str, pattern: str, index: int = 1) -> str:
    regex = java_regex(pattern)
    found = regex.compiled.search(regex.check(text))
    if found is None:
        return ""
    return found[_group(pattern, regex.compiled, index)] or ""


def _extract_all(text: str, pattern: str, index: int = 1) -> list[str]:
    regex = java_regex(pattern)
    found = list(regex.compiled.finditer(regex.check(text)))
    return [each[_group(pattern, regex.compiled, index)] or "" for each in found]


def _count(text: str, pattern: str) -> int:
    return len(_extract_all(text, pattern, 0))


def _instr(text: str, pattern: str, index: int = 0) -> int:
    """The position of the first match; Spark does not use the number of a group."""
    regex = java_regex(pattern)
    found = regex.compiled.search(regex.check(text))
    return 0 if found is None else found.start() + 1


def _substr(text: str, pattern: str) -> str | None:
    return _extract(text, pattern, 0) or None


def _replace(text: str, pattern: str, replacement: str, position: int = 1) -> str:
    """Every match replaced, from a position on, which begins the text for the expression."""
    if position < 1:
        raise EvaluationError("regexp_replace: the position is 1 or more")
    regex = java_regex(pattern)
    start = position - 1
    if start >= len(text) and start > 0:
        return text
    parts = _replacement(pattern, replacement, regex.compiled)

    def new(found: re.Match[str]) -> str:
        return "".join(part if isinstance(part, str) else (found[part] or "") for part in parts)

    return text[:start] + regex.compiled.sub(new, regex.check(text[start:]))


def _replacement(pattern: str, text: str, compiled: re.Pattern[str]) -> list[str | int]:
    """The text of a replacement and the numbers of its groups: $1, ${name}, and a backslash before any character."""
    parts: list[str | int] = []
    at = 0
    while at < len(text):
        if text[at] == "\\":
            if at + 1 == len(text):
                raise EvaluationError("regexp_replace: the replacement ends with a backslash; double it")
            parts.append(text[at + 1])
            at += 2
        elif text[at] == "$":
            named = re.match(r"\{([A-Za-z][A-Za-z0-9]*)\}", text[at + 1 :])
            digits = re.match(r"[0-9]", text[at + 1 :], re.ASCII)
            if named is not None and named[1] in compiled.groupindex:
                parts.append(compiled.groupindex[named[1]])
                at += 1 + named.end()
            elif digits is not None:
                at += 2
                index = _group(pattern, compiled, int(digits[0]))
                while at < len(text) and "0" <= text[at] <= "9" and index * 10 + int(text[at]) <= compiled.groups:
                    index, at = index * 10 + int(text[at]), at + 1
                parts.append(index)
            else:
                raise EvaluationError(
                    "regexp_replace: $ in a replacement begins a group such as $1; write \\$ for itself"
                )
        else:
            parts.append(text[at])
            at += 1
    return parts


def _split(text: str, pattern: str, limit: int = -1) -> list[str]:
    """The pieces between matches, at most `limit` if it is positive; an empty pattern gives the characters."""
    if not pattern and text:
        count = len(text) if limit > len(text) or limit <= 0 else limit
        return [*text[: count - 1], text[count - 1 :] if count < len(text) else text[count - 1]]
    regex = java_regex(pattern)
    pieces: list[str] = []
    start = 0
    for found in regex.compiled.finditer(regex.check(text)):
        if limit > 0 and len(pieces) == limit - 1:
            break
        if found.end() == 0:
            continue
        if found.start() == len(text) and found.end() == found.start() and start == len(text):
            continue
        pieces.append(text[start : found.start()])
        start = found.end()
    return [*pieces, text[start:]]


def _to_map(text: str, between: str = ",", within: str = ":") -> list[tuple[str, str | None]]:
    """STR_TO_MAP: pairs of a key and a value, which is NULL if there is no separator."""
    pairs = [_split(pair, within, 2) for pair in _split(text, between)]
    if len({pair[0] for pair in pairs}) < len(pairs):
        raise EvaluationError("str_to_map: the text has the same key twice: make the keys of a map distinct")
    return [(pair[0], pair[1] if len(pair) == 2 else None) for pair in pairs]


FUNCTIONS: dict[str, Function] = {
    "str_to_map": by_value(_to_map, 1, 3, fails=True),
    "rlike": Function(_rlike, 2, 2, fails=True),
    "regexp_extract": by_value(_extract, 2, 3, fails=True),
    "regexp_extract_all": by_value(_extract_all, 2, 3, fails=True),
    "regexp_count": by_value(_count, 2, fails=True),
    "regexp_instr": by_value(_instr, 2, 3, fails=True),
    "regexp_substr": by_value(_substr, 2, fails=True),
    "regexp_replace": by_value(_replace, 3, 4, fails=True),
    "split": by_value(_split, 2, 3, fails=True),
}

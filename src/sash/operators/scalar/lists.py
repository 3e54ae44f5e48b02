"""Functions of arrays whose elements Python compares as Spark does; once per distinct combination of arguments."""

from __future__ import annotations

from typing import Any

from sash.errors import EvaluationError
from sash.operators.scalar.function import Function, by_value, by_value_or_null

_LONGEST = 2**24
List = list[Any]


def _join(values: List, delimiter: str, instead: str | None = None) -> str:
    return delimiter.join(part for value in values if (part := instead if value is None else value) is not None)


def _distinct(values: List) -> List:
    return list(dict.fromkeys(values))


def _greatest(values: List) -> Any:
    return max((value for value in values if value is not None), default=None)


def _least(values: List) -> Any:
    return min((value for value in values if value is not None), default=None)


def _position(values: List, wanted: Any) -> int:
    return values.index(wanted) + 1 if wanted in values else 0


def _remove(values: List, unwanted: Any) -> List:
    return [value for value in values if value is None or value != unwanted]


def _repeat(value: Any, count: int | None) -> List | None:
    if count is None:
        return None
    if count > _LONGEST:
        raise EvaluationError(f"array_repeat: the array has more than {_LONGEST:,} elements")
    return [value] * count


def _slice(values: List, start: int, length: int) -> List:
    if start == 0 or length < 0:
        raise EvaluationError("slice: positions begin at 1, or at -1 from the end, and the length is 0 or more")
    first = start - 1 if start > 0 else len(values) + start
    return values[first : first + length] if first >= 0 else []


def _sort(values: List, ascending: bool = True) -> List:
    known = sorted((value for value in values if value is not None), reverse=not ascending)
    nulls = [None] * (len(values) - len(known))
    return nulls + known if ascending else known + nulls


def _sort_nulls_last(values: List) -> List:
    return [*sorted(value for value in values if value is not None), *(value for value in values if value is None)]


def _flatten(values: List) -> List | None:
    return None if any(value is None for value in values) else [each for value in values for each in value]


def _union(left: List, right: List) -> List:
    return _distinct([*left, *right])


def _intersect(left: List, right: List) -> List:
    return [value for value in _distinct(left) if value in right]


def _except(left: List, right: List) -> List:
    return [value for value in _distinct(left) if value not in right]


def _overlap(left: List, right: List) -> bool | None:
    if any(value is not None and value in right for value in left):
        return True
    return None if left and right and (None in left or None in right) else False


def _append(values: List | None, value: Any) -> List | None:
    return None if values is None else [*values, value]


def _prepend(values: List | None, value: Any) -> List | None:
    return None if values is None else [value, *values]


def _compact(values: List) -> List:
    return [value for value in values if value is not None]


def _sequence(start: int, stop: int, step: int | None = None) -> List:
    by = step if step is not None else 1 if start <= stop else -1
    if (by == 0 and start != stop) or (by > 0 and start > stop) or (by < 0 and start < stop):
        raise EvaluationError(f"sequence: no steps of {by} lead from {start} to {stop}")
    if by and (stop - start) // by > _LONGEST:
        raise EvaluationError(f"sequence: the array has more than {_LONGEST:,} elements")
    return list(range(start, stop + (1 if by > 0 else -1), by)) if by else [start]


FUNCTIONS: dict[str, Function] = {
    "array_join": by_value(_join, 2, 3),
    "array_distinct": by_value(_distinct, 1),
    "array_max": by_value(_greatest, 1),
    "array_min": by_value(_least, 1),
    "array_position": by_value(_position, 2),
    "array_remove": by_value(_remove, 2),
    "array_repeat": by_value_or_null(_repeat, 2, fails=True),
    "slice": by_value(_slice, 3, fails=True),
    "sort_array": by_value(_sort, 1, 2),
    "array_sort": by_value(_sort_nulls_last, 1),
    "flatten": by_value(_flatten, 1),
    "array_union": by_value(_union, 2),
    "array_intersect": by_value(_intersect, 2),
    "array_except": by_value(_except, 2),
    "arrays_overlap": by_value(_overlap, 2),
    "array_append": by_value_or_null(_append, 2),
    "array_prepend": by_value_or_null(_prepend, 2),
    "array_compact": by_value(_compact, 1),
    "sequence": by_value(_sequence, 2, 3, fails=True),
}

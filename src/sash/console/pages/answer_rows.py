"""Rows of an answer with an identity, so that the page can tell a row that changes from one that leaves and one that enters."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

_NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal", "long", "integer", "short", "byte")
_LONGEST = 200

Row = Sequence[Any]


def is_number(kind: str) -> bool:
    """Whether values of the type can be drawn.

    >>> is_number("BIGINT"), is_number("decimal(10, 2)"), is_number("interval day")
    (True, True, False)
    """
    return kind.lower().split("(")[0].strip() in _NUMBERS


def key_width(rows: Sequence[Row], kinds: Sequence[str]) -> int:
    """Return the least number of leading columns that tell all rows apart; all columns if no fewer do.

    A GROUP BY usually has its grouping columns first, and its row changes while they stay. A leading column of fractions
    is no key, even if all of its values differ.

    >>> key_width([["a", 1], ["b", 1]], ["string", "bigint"])
    1
    """
    columns = len(kinds)
    if columns and is_number(kinds[0]) and _fraction(kinds[0]):
        return columns
    return next(
        (width for width in range(1, columns) if len({identity(row[:width]) for row in rows}) == len(rows)), columns
    )


def identity(values: Row) -> str:
    """Return a text that only equal values have."""
    return json.dumps(values, default=str, separators=(",", ":"))


def identified(rows: Sequence[Row], width: int) -> list[str]:
    """Return an identity of every row: its leading columns, and a number for rows that agree in them.

    >>> identified([["a", 1], ["b", 1], ["b", 1]], 1)
    ['["a"]', '["b"]', '["b"]2']
    """
    seen: Counter[str] = Counter()
    found = []
    for row in rows:
        key = identity(row[:width])
        if len(key) > _LONGEST:
            key = blake2b(key.encode(), digest_size=16).hexdigest()
        seen[key] += 1
        found.append(key if seen[key] == 1 else f"{key}{seen[key]}")
    return found


def _fraction(kind: str) -> bool:
    return kind.lower().startswith(("float", "double", "decimal"))

"""A query whose names, values and errors are what a page must not trust: markup, marks, long texts, many columns and rows."""

from __future__ import annotations

import math
from typing import Any

ATTACK = "<img src=x onerror=\"document.title='hacked'\">"
NAME = f"it's {ATTACK} 100%2e"
ERROR = f"{ATTACK} could not be parsed\nat '\u202egnp.exe'"
SQL = f"SELECT * FROM `{ATTACK}`"
KINDS = ["string", "double", "decimal(38,3)", "timestamp", "array<struct<a:int>>", "bigint"]
FIRST = [
    [ATTACK, math.nan, "12345678901234567890.120", 1_700_000_000_123_456, [{"a": None}, {"a": 2}], 1],
    ["nul \0 and mark \u202etxt.exe", math.inf, "-0.001", None, [], 2],
    [None, -math.inf, None, -62_135_596_800_000_000, None, None],
    ["NULL", 0.1, "0.000", 253_402_300_799_999_999, [None], -9_223_372_036_854_775_808],
    ["long " * 5_000, 1e300, "7.000", 10**18, [{"a": 1}] * 500, 3],
]
EXTRA = 994
COLUMNS = [{"name": f"{ATTACK if i == 0 else 'c'}{i}", "type": kind} for i, kind in enumerate(KINDS)]
COLUMNS += [{"name": f"x{i}", "type": "bigint"} for i in range(EXTRA)]
ROWS = 100_000


def row(i: int) -> list[Any]:
    return [*(FIRST[i] if i < len(FIRST) else [f"row {i}", *FIRST[3][1:]]), *[i] * EXTRA]


def answer(at: int, limit: int) -> dict[str, Any]:
    rows = [row(i) for i in range(min(limit, ROWS))]
    counts = [3] + [1] * (len(rows) - 1)
    known = {"as_of": at, "watermark": at, "total": ROWS, "known": True, "reason": None}
    return {"columns": COLUMNS, "rows": rows, "counts": counts, **known}


def changes(at: int) -> dict[str, Any]:
    found = [{"batch": 1, "index": i, "ts": at, "op": "+", "row": row(i)} for i in range(len(FIRST))]
    return {"changes": found, "last": [1, len(found) - 1], "restart": False}

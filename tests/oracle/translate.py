"""Sash SQL into DuckDB SQL and views, by regular expressions: for queries that come in one dialect only.

It knows windows, LEFT SEMI and LEFT ANTI JOIN, MINUS, PERCENTILE, FIRST, LAST, MIN_BY, MAX_BY, and Spark's place for
NULLs in ORDER BY. It does not break LIMIT's ties: such a query must order by all its output columns.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from tests.oracle.duck import MICROSECONDS, View

_DURATIONS = {"microsecond": 1, "millisecond": 1_000, "second": 1_000_000, "minute": 60_000_000, "hour": 3_600_000_000}
_WINDOW = re.compile(
    r"\b(\w+)\s*\[([^\]]*)\](\s+AS\s+\w+|\s+(?!WHERE|GROUP|JOIN|ON|LEFT|RIGHT|FULL|CROSS|INNER|ORDER|"
    r"HAVING|UNION|EXCEPT|MINUS|INTERSECT|LIMIT|WINDOW|USING)\w+)?",
    re.IGNORECASE,
)
_TRAILING = re.compile(r"\s+WINDOW\s+(\d+)\s+(\w+)\s*;?\s*$", re.IGNORECASE)
_DURATION = re.compile(r"(\d+)\s+(\w+)")


def duck_sql_from(
    sash_sql: str, streams: Iterable[str], unit: str = "s", columns: Sequence[str] = ("ts",)
) -> tuple[str, dict[str, View]]:
    """The DuckDB text and its views; `columns` is the order in which FIRST, LAST, MIN_BY and MAX_BY see rows.

    >>> duck_sql_from("SELECT k FROM s [RANGE 5 SECONDS] MINUS SELECT k FROM r WINDOW 2 SECONDS", ["s", "r"])[0]
    'SELECT k FROM s_range_5_seconds AS s EXCEPT SELECT k FROM r_window AS r'
    """
    views: dict[str, View] = {}
    trailing = _TRAILING.search(sash_sql)
    text = _TRAILING.sub("", sash_sql)

    def windowed(match: re.Match[str]) -> str:
        stream, window, alias = match.groups()
        name = f"{stream}_{re.sub(r'[^A-Za-z0-9]+', '_', window.lower()).strip('_')}"
        views[name] = _view(stream, window, unit)
        return f"{name}{alias or f' AS {stream}'}"

    text = _WINDOW.sub(windowed, text)
    rest = View("", _units(trailing.group(1), trailing.group(2), unit)) if trailing else View("")
    for stream in streams:
        bare = re.compile(rf"((?:FROM|JOIN)\s+|,\s*)\b{stream}\b(?!\.)(\s+AS\s+\w+)?", re.IGNORECASE)
        if bare.search(text):
            views[f"{stream}_window"] = View(stream, rest.length)
            aliased = bare.sub(rf"\1{stream}_window\2", text)
            text = re.sub(rf"\b{stream}_window\b(?!\s+AS\b)", f"{stream}_window AS {stream}", aliased)
    text = re.sub(r"\bLEFT\s+(SEMI|ANTI)\s+JOIN\b", r"\1 JOIN", text, flags=re.IGNORECASE)
    text = re.sub(r"\bMINUS\b", "EXCEPT", text, flags=re.IGNORECASE)
    text = re.sub(r"\bPERCENTILE\(", "quantile_cont(", text, flags=re.IGNORECASE)
    for function, rewrite in _ordered(columns).items():
        text = _calls(text, function, rewrite)
    return _explicit_nulls(text), views


def _units(count: str, duration: str, unit: str) -> int:
    return int(count) * _DURATIONS[duration.lower().removesuffix("s")] // MICROSECONDS[unit]


def _view(stream: str, window: str, unit: str) -> View:
    words = window.upper().split()
    if words == ["NOW"]:
        return View(stream, 0)
    if words == ["RANGE", "UNBOUNDED"]:
        return View(stream)
    if "ROWS" in words:
        by = re.search(r"PARTITION\s+BY\s+(.*?)\s+ROWS", window, re.IGNORECASE)
        partition = tuple(column.strip() for column in by.group(1).split(",")) if by else ()
        return View(stream, rows=int(words[-1]), partition=partition)
    length, *slide = (_units(count, duration, unit) for count, duration in _DURATION.findall(window))
    return View(stream, length, slide=slide[0] if slide else None)


def _ordered(columns: Sequence[str]) -> Mapping[str, Callable[..., str]]:
    order = ", ".join(f"{column} NULLS FIRST" for column in columns)
    backward = ", ".join(f"{column} DESC NULLS LAST" for column in columns)
    return {
        "FIRST": lambda value: f"first({value} ORDER BY {order})",
        "LAST": lambda value: f"first({value} ORDER BY {backward})",
        "MIN_BY": lambda value, by: f"first({value} ORDER BY {by}, {order}) FILTER (WHERE {by} IS NOT NULL)",
        "MAX_BY": lambda value, by: f"first({value} ORDER BY {by} DESC, {order}) FILTER (WHERE {by} IS NOT NULL)",
    }


def _calls(text: str, function: str, rewrite: Callable[..., str]) -> str:
    """Every call of a function, rewritten from its arguments."""
    done = ""
    while match := re.search(rf"\b{function}\(", text):
        depth, start, arguments = 1, match.end(), []
        for place in range(match.end(), len(text)):
            depth += {"(": 1, ")": -1}.get(text[place], 0)
            if depth == 0 or (depth == 1 and text[place] == ","):
                arguments.append(text[start:place].strip())
                start = place + 1
            if depth == 0:
                break
        done += text[: match.start()] + rewrite(*arguments)
        text = text[start:]
    return done + text


def _explicit_nulls(text: str) -> str:
    """The ORDER BY before each LIMIT with NULLS FIRST or LAST written out as Spark defaults it."""

    def item(part: str) -> str:
        if re.search(r"\bNULLS\b", part, re.IGNORECASE):
            return part
        return part + (" NULLS LAST" if re.search(r"\bDESC$", part, re.IGNORECASE) else " NULLS FIRST")

    def clause(match: re.Match[str]) -> str:
        return match[1] + ", ".join(item(part.strip()) for part in match[2].split(",")) + match[3]

    return re.sub(r"(\bORDER\s+BY\s+)([^()]*?)(\s+LIMIT\b)", clause, text, flags=re.IGNORECASE)

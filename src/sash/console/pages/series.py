"""A numeric column over time: the steps of each row, from the answer now and the changes that led to it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sash.console.pages.answer_rows import Row, identity
from sash.console.pages.formats import cell

_LONGEST = 40

Point = tuple[int, float | None]


@dataclass
class Series:
    """The value of a row from each instant on; None where the row is not in the answer."""

    name: str
    points: list[Point] = field(default_factory=list)

    @property
    def last(self) -> float | None:
        """The value now."""
        return self.points[-1][1] if self.points else None


def series_of(
    rows: Sequence[Row],
    changes: Sequence[dict[str, Any]],
    width: int,
    column: int,
    now: int,
    most: int = 8,
) -> list[Series]:
    """Return the series of a column: those with the largest values now first, at most `most` of them.

    `rows` is the answer at `now`, and `changes` are the changes before it in order, none missing. The first `width` columns
    are the identity of a row. A retraction tells the value before it, and so what held at the first change, unless an
    insertion of the same row came first. Several values of one identity at a time have one series, with the last of them.

    >>> changes = [{"ts": 5, "op": "-", "row": ["a", 1]}, {"ts": 5, "op": "+", "row": ["a", 2]}]
    >>> [(s.name, s.points) for s in series_of([["a", 2], ["b", 7]], changes, 1, 1, 9)]
    [('b', [(5, 7.0), (9, 7.0)]), ('a', [(5, 2.0), (9, 2.0)])]
    """
    found: dict[str, Series] = {}
    start = changes[0]["ts"] if changes else now
    for change in changes:
        row, at = change["row"], change["ts"]
        series = found.setdefault(identity(row[:width]), Series(_name(row, width)))
        if change["op"] == "-" and not series.points and at > start:
            series.points.append((start, _value(row[column])))
        _step(series.points, at, _value(row[column]) if change["op"] == "+" else None, change["op"] == "+")
    for row in rows:
        series = found.setdefault(identity(row[:width]), Series(_name(row, width)))
        if not series.points:
            series.points.append((start, _value(row[column])))
    for series in found.values():
        if series.points and series.points[-1][0] < now:
            series.points.append((now, series.points[-1][1]))
    ranked = sorted(found.values(), key=lambda series: (series.last is None, -(series.last or 0), series.name))
    return ranked[:most]


def _step(points: list[Point], at: int, value: float | None, insertion: bool) -> None:
    """Let the value hold from an instant on; of the changes of one instant an insertion wins."""
    if points and points[-1][0] == at:
        if insertion:
            points[-1] = (at, value)
        return
    points.append((at, value))


def _name(row: Row, width: int) -> str:
    if width >= len(row):
        return "answer"
    text = ", ".join(cell(value) for value in row[:width])
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _value(value: Any) -> float | None:
    try:
        number = None if value is None else float(value)
    except (TypeError, ValueError):
        return None
    return None if number is None or not math.isfinite(number) else number

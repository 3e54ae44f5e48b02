"""A test case: a query in both dialects, its input, and the standard streams most cases read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.oracle.duck import Row, Rows, View

_UNIT_NAMES = {"us": "MICROSECONDS", "ms": "MILLISECONDS", "s": "SECONDS"}


@dataclass(frozen=True, eq=False)
class Case:
    """A query as Sash SQL and as DuckDB SQL over `views`, and the rows it runs on."""

    name: str
    sql: str
    duck: str
    streams: Mapping[str, Rows]
    views: Mapping[str, View]
    relations: Mapping[str, Rows] = field(default_factory=dict)
    nrrs: Mapping[str, Rows] = field(default_factory=dict)
    schemas: Mapping[str, str] = field(default_factory=dict)
    unit: str = "s"
    until: int | None = None
    empties: bool = True
    """Whether empty windows leave nothing to remember: not so above a global aggregate, whose row never goes."""
    keys: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The key columns of the relations that have such."""
    scale: float = 1.0
    """The sum of absolute values within 1e-9 of which doubles must be right; 1e-9 of the result always does."""

    @property
    def endless(self) -> bool:
        """Whether a window never ends, all of whose rows re-evaluation would have to keep."""
        return any(view.length is None and view.rows is None and view.aligned is None for view in self.views.values())

    @property
    def drains(self) -> bool:
        """Whether nothing is left to remember once every window is empty."""
        updated = any("_op" in row for rows in (*self.relations.values(), *self.nrrs.values()) for row in rows)
        return self.empties and all(view.drains for view in self.views.values()) and not updated


def table(columns: str, *rows: tuple[Any, ...]) -> list[Row]:
    """Rows as dicts.

    >>> table("ts v", (1, 2))
    [{'ts': 1, 'v': 2}]
    """
    names = columns.split()
    return [dict(zip(names, row, strict=True)) for row in rows]


def clause(view: View, unit: str) -> str:
    """The window clause of a view, as Sash writes it."""
    if view.rows is not None:
        partition = f"PARTITION BY {', '.join(view.partition)} " if view.partition else ""
        return f"[{partition}ROWS {view.rows}]"
    if view.aligned is not None:
        return ""
    if view.length is None:
        return "[RANGE UNBOUNDED]"
    if view.length == 0:
        return "[NOW]"
    slide = f" SLIDE {view.slide} {_UNIT_NAMES[unit]}" if view.slide is not None else ""
    return f"[RANGE {view.length} {_UNIT_NAMES[unit]}{slide}]"


def case(
    name: str,
    text: str,
    views: Mapping[str, int | View | None],
    *,
    sash: str | None = None,
    duck: str | None = None,
    streams: Mapping[str, Rows] | None = None,
    relations: Mapping[str, Rows] | None = None,
    nrrs: Mapping[str, Rows] | None = None,
    schemas: Mapping[str, str] | None = None,
    unit: str = "s",
    until: int | None = None,
    empties: bool = True,
    keys: Mapping[str, Sequence[str]] | None = None,
) -> Case:
    """A case from one text in which `{s}` stands for view `s`: with its window for Sash, bare for DuckDB.

    A view is given by its window's length, by None for an unbounded one, or in full. Where a dialect needs other words,
    `sash` or `duck` is its whole text, with the same placeholders.
    """
    full = {key: view if isinstance(view, View) else View(key, view) for key, view in views.items()}
    everything = {**STREAMS, **(streams or {})}
    windowed = {key: f"{view.stream} {clause(view, unit)}" for key, view in full.items()}
    return Case(
        name,
        (sash or text).format(**windowed),
        (duck or text).format(**{key: key for key in full}),
        {view.stream: everything[view.stream] for view in full.values()},
        full,
        relations or {},
        nrrs or {},
        schemas or {},
        unit,
        until,
        empties,
        keys or {},
    )


COLUMNS = "ts k g v x"
SCHEMA = "ts BIGINT, k BIGINT, g STRING, v BIGINT, x DOUBLE"

S = table(
    COLUMNS,
    (1, 1, "a", 4, 0.5),
    (1, 2, "b", 7, 1.25),
    (2, 1, "a", 4, 0.5),
    (2, 1, "a", 4, 0.5),
    (4, None, "a", 3, None),
    (5, 2, None, None, 2.0),
    (6, 3, "c", 7, -1.5),
    (6, 1, "b", 9, 0.25),
    (20, 2, "b", 1, 8.0),
    (21, 2, "b", 1, 8.0),
    (25, None, None, None, None),
    (26, 1, "a", 4, 0.5),
)
"""Ties, NULLs, duplicates, expiry at the instant of an arrival (6, 25), and a gap longer than most windows."""

R = table(
    COLUMNS,
    (0, 2, "b", 7, 1.25),
    (3, 1, "a", 4, 0.5),
    (3, 1, "a", 4, 0.5),
    (5, None, "a", 3, None),
    (6, 3, "c", 9, -1.5),
    (7, 1, "b", None, 0.25),
    (13, 2, "b", 1, 8.0),
    (24, 2, "b", 1, 8.0),
    (25, 1, "a", 4, 0.5),
)
"""Shares rows with S (some as duplicates, one with NULLs) and some of its instants."""

Q = table(COLUMNS, (2, 1, "a", 5, 0.5), (4, 2, "b", 7, 3.0), (6, 1, None, 9, 0.25), (22, 2, "b", 1, 8.0))

STREAMS: Mapping[str, Rows] = {"s": S, "r": R, "q": Q}
